"""The proof of the verifier holds, and it notices every rule that the verifier lacks or invents."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType

import pytest
from pydantic import JsonValue

from tasks_env.families import FAMILIES
from tasks_env.families.base import SecondOpinion
from tasks_env.families.filesys import Filesys, FilesysParams, second_opinion, verifier
from tasks_env.families.filesys.near_misses import KINDS
from tasks_env.generation import generate_instance
from tasks_env.perturbations import perturbation
from tasks_env.proofs import Finding, Proof, prove
from tasks_env.types import FinalState, Instance, Presentation, Verdict, VerifierInput
from tests.tasks_env.filesys.levels import FAMILY, SHIPPED, expected, shipped

SEEDS = range(20)
TASKS = [(level, seed) for seed in SEEDS for level in SHIPPED]


def findings(instance: Instance, shown: Presentation | None = None) -> list[Finding]:
    return list(prove(instance, shown or Presentation(), rng=random.Random(instance.seed)))


@lru_cache(maxsize=256)
def opinion(level: str, seed: int) -> SecondOpinion:
    return FAMILY.second_opinion(shipped(level, seed))


def test_the_verifier_of_both_shipped_difficulties_is_proven() -> None:
    proof = Proof(["filesys"])
    for level, seed in TASKS:
        found = findings(shipped(level, seed))
        assert 15 <= sum(finding.kind == "near_miss" for finding in found) <= 80
        proof.add(found)
    assert proof.problems() == []
    assert not [tally.operator for tally in proof.tallies.values() if tally.equivalent]
    assert {difficulty for _, difficulty, _, _ in proof.variants} == {"easy", "hard"}


@pytest.mark.parametrize(("axis", "level"), [("tool_names", "opaque"), ("distractors", "5")])
def test_the_proof_holds_under_other_names_and_with_other_tools(axis: str, level: str) -> None:
    for difficulty in SHIPPED:
        task = shipped(difficulty, 3)
        [shown] = perturbation(axis).present([task], level, seed=5)
        assert {finding.outcome for finding in findings(task, shown)} == {"held"}


@pytest.mark.parametrize("seed", range(4))
def test_the_proof_holds_for_the_smallest_trees(seed: int) -> None:
    for files, goals in ((1, 1), (2, 1), (2, 2)):
        shape = FilesysParams(files=files, depth=1, goals=goals, searches=0, conditionals=0, matches=1, decoys=0)
        assert {finding.outcome for finding in findings(generate_instance("filesys", shape, seed))} == {"held"}


def test_the_same_generator_draws_the_same_near_misses() -> None:
    task = shipped("hard", 1)
    right = FinalState(submitted=True, data={"files": dict(expected(task))})
    first, again, other = (list(FAMILY.near_misses(task, right, random.Random(draw))) for draw in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_second_opinion_shares_no_code_with_the_package_but_the_second_solver() -> None:
    parsed = ast.parse(inspect.getsource(second_opinion))
    imported = {
        name.name if isinstance(node, ast.Import) else f"{node.module}.{name.name}"
        for node in ast.walk(parsed)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    ours = {name for name in imported if name.split(".")[0] in ("tasks_env", "flows")}
    assert ours == {"tasks_env.families.filesys.second_solver.solve"}
    assert not [node for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom) and node.level]


def test_the_second_opinion_never_reads_the_truth() -> None:
    for level, seed in TASKS[:4]:
        task = shipped(level, seed)
        right = FinalState(submitted=True, data={"files": dict(expected(task))})
        blind = FAMILY.second_opinion(task.model_copy(update={"truth": {}, "params": {}, "seed": 0}))
        assert blind(right)
        assert not blind(FinalState(submitted=True, data=task.world))


def test_a_wrong_truth_is_noticed() -> None:
    for level, seed in TASKS[:4]:
        task = shipped(level, seed)
        files: dict[str, JsonValue] = {**expected(task), "/stray.md": "stray\n"}
        broken = [
            finding.kind
            for finding in findings(task.model_copy(update={"truth": {**task.truth, "files": files}}))
            if finding.outcome == "broken"
        ]
        assert "reference" in broken


class Mutant(Filesys):
    """The family with another verifier; second opinions are remembered, because only the verifier differs."""

    def __init__(self, judge: Callable[[VerifierInput], Verdict]) -> None:
        self._judge = judge

    def verify(self, evidence: VerifierInput) -> Verdict:
        return self._judge(evidence)

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        return opinion(instance.difficulty, instance.seed)


def mutated(old: str, new: str) -> Callable[[VerifierInput], Verdict]:
    """The verifier with one piece of its source replaced."""
    source = inspect.getsource(verifier)
    assert source.count(old) == 1, old
    module = ModuleType("mutated_verifier")
    exec(compile(source.replace(old, new), "mutated_verifier", "exec"), module.__dict__)
    judge: Callable[[VerifierInput], Verdict] = module.verify
    return judge


FOUND = "found = final_tree(evidence.final_state.data)"
COMPARED = "canonical_text(wanted) != canonical_text(got)"
REST = "rest = sorted((expected.keys() | found.keys()) - concerned)"
NORMAL = 'unicodedata.normalize("NFC", plain).rstrip("\\n")'
BREAKS = 'plain = text if "\\r" not in text else text.replace("\\r\\n", "\\n").replace("\\r", "\\n")'


def paths_known_by(key: str) -> str:
    """`FOUND` with each path replaced by an expected one that `key` does not tell from it."""
    return (
        f"{FOUND}\n    key = lambda path: {key}\n    known = {{key(path): path for path in expected}}"
        "\n    found = found and {path if path in expected else known.get(key(path), path): text"
        " for path, text in found.items()}"
    )


LAX: dict[str, tuple[str, str, set[str]]] = {
    "goals are not looked at": (
        "_condition(name, _differences(paths, expected, found))",
        "_condition(name, [])",
        {*(f"{kind}: unmet" for kind in KINDS), "goal half done", "count off by one", "number with a word"}
        | {f"{kind}: misread" for kind in ("create", "delete", "edit", "append", "count", "count_rows", "collect")},
    ),
    "one goal suffices": (
        "passed=all(scored)",
        "passed=score > 0",
        {"condition the wrong way", "bound the other way", "collected in reverse", "found by name, not content"}
        | {"find: misread", "conditional: misread", "extra file"},
    ),
    "damage elsewhere is not looked at": (
        "_differences(rest, expected, found)",
        "[]",
        {"extra file", "extra empty file", "purge: misread"}
        | {f"untouched: {what}" for what in ("deleted", "renamed", "character changed", "emptied", "lines swapped")},
    ),
    "further files are allowed": (
        REST,
        "rest = sorted(expected.keys() - concerned)",
        {"extra file", "extra empty file"},
    ),
    "files may be lost": (REST, "rest = sorted(found.keys() - concerned)", {"untouched: deleted", "purge: misread"}),
    "the submission is not asked for": ("evidence.final_state.submitted", "True", {"never submitted"}),
    "any data counts as a tree": (
        'return tree(data.get("files"))',
        'return {str(path): str(text) for path, text in dict(data.get("files") or {}).items()}',
        {"text of the wrong type", "no tree"},
    ),
    "a missing file is forgiven": (
        "if got is None:",
        "if got is None:\n            continue",
        {"written file missing"},
    ),
    "a file too many is forgiven": (
        "elif wanted is None:",
        "elif wanted is None:\n            continue",
        {"deleted file kept", "copied instead of moved", "extra file", "purge: unmet", "delete: unmet"},
    ),
    "an empty file counts as none": (
        "elif wanted is None:",
        "elif wanted is None and not got:\n            continue\n        elif wanted is None:",
        {"deleted file left empty", "extra empty file", "delete: misread"},
    ),
    "texts are not compared": (
        COMPARED,
        "False",
        {"edit: unmet", "append: unmet", "text of a neighbour", "line missing"},
    ),
    "the order of lines is not compared": (
        COMPARED,
        "sorted(canonical_text(wanted).split('\\n')) != sorted(canonical_text(got).split('\\n'))",
        {"lines swapped", "collected in reverse", "untouched: lines swapped"},
    ),
    "repeated lines count once": (
        COMPARED,
        "[*dict.fromkeys(canonical_text(wanted).split('\\n'))] != [*dict.fromkeys(canonical_text(got).split('\\n'))]",
        {"line duplicated"},
    ),
    "further lines are allowed": (
        COMPARED,
        "not {*canonical_text(wanted).split('\\n')} <= {*canonical_text(got).split('\\n')}",
        {"line duplicated", "blank line added"},
    ),
    "fewer lines are allowed": (
        COMPARED,
        "not {*canonical_text(got).split('\\n')} <= {*canonical_text(wanted).split('\\n'), ''}",
        {"line missing", "written file emptied", "untouched: emptied"},
    ),
    "the first number counts": (
        COMPARED,
        "canonical_text(wanted) != canonical_text(got)"
        " and not (wanted.strip().isdigit() and wanted.strip() in got.replace(':', ' ').replace('.', ' ').split())",
        {"number with a word", "number in another form"},
    ),
    "numbers within one are equal": (
        COMPARED,
        "canonical_text(wanted) != canonical_text(got)"
        " and not (wanted.strip().isdigit() and got.strip().isdigit() and abs(int(wanted) - int(got)) < 2)",
        {"count off by one"},
    ),
    "texts are compared without case": (NORMAL, f"{NORMAL}.casefold()", {"letter in another case"}),
    "white space at the end is dropped": (NORMAL, f"{NORMAL}.rstrip()", {"space added"}),
    "white space in lines is dropped": (
        NORMAL,
        f"'\\n'.join(line.strip() for line in {NORMAL}.split('\\n'))",
        {"space added", "untouched: space added"},
    ),
    "all spaces are dropped": (NORMAL, f"{NORMAL}.replace(' ', '')", {"edit: misread", "space added"}),
    "empty lines at the start are dropped": (NORMAL, f"{NORMAL}.lstrip('\\n')", {"blank line added"}),
    "empty lines are dropped": (NORMAL, f"'\\n'.join({NORMAL}.split())", {"blank line added"}),
    "compatibility characters are equal": (NORMAL, NORMAL.replace("NFC", "NFKC"), {"look-alike letter"}),
    "accents are dropped": (
        NORMAL,
        f"{NORMAL.replace('NFC', 'NFD')}.encode('ascii', 'ignore').decode()",
        {"untouched: accent dropped"},
    ),
    "paths are compared without case": (FOUND, paths_known_by("path.lower()"), {"path in another case"}),
    "paths are compared by name": (
        FOUND,
        paths_known_by("path.rsplit('/')[-1]"),
        {"path in another folder"},
    ),
    "paths are compared in compatibility form": (
        FOUND,
        paths_known_by("unicodedata.normalize('NFKC', path)"),
        {"look-alike name"},
    ),
    "only the texts count": (
        "wanted, got = expected.get(path), found.get(path)",
        "wanted, got = expected.get(path), found.get(path)"
        "\n        if (wanted is None or wanted in found.values()) and (got is None or got in expected.values()):"
        "\n            continue",
        {"two files exchanged", "untouched: renamed", "path in another case", "look-alike name"},
    ),
}
"""Rule that is lacking → the piece of source, what stands there instead, and operators that must notice."""

STRICT: dict[str, tuple[str, str, set[str]]] = {
    "no break but LF": (BREAKS, "plain = text", {"CRLF line breaks", "CR line breaks", "several of these at once"}),
    "no break but LF and CRLF": (BREAKS, BREAKS.replace('.replace("\\r", "\\n")', ""), {"CR line breaks"}),
    "CRLF counts twice": (BREAKS, BREAKS.replace('.replace("\\r\\n", "\\n")', ""), {"CRLF line breaks"}),
    "no form but C": (NORMAL, 'plain.rstrip("\\n")', {"normal form D", "several of these at once"}),
    "newlines at the end count": (
        NORMAL,
        'unicodedata.normalize("NFC", plain)',
        {"no newline at the end", "more newlines at the end"},
    ),
    "one newline at the end is forgiven": (
        NORMAL,
        'unicodedata.normalize("NFC", plain).removesuffix("\\n")',
        {"more newlines at the end"},
    ),
    "the order of files counts": (
        FOUND,
        f"{FOUND}\n    found = found if list(found or ()) == sorted(found or ()) else None",
        {"files in another order"},
    ),
    "nothing passes": ("passed=all(scored)", "passed=False", {"reference"}),
}
"""Rule that is invented → the same."""


@pytest.mark.parametrize("rule", [*LAX, *STRICT])
def test_a_verifier_with_one_rule_fewer_or_more_is_found_out(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, operators = {**LAX, **STRICT}[rule]
    monkeypatch.setitem(FAMILIES, "filesys", Mutant(mutated(old, new)))
    noticed: set[str] = set()
    for level, seed in TASKS:
        noticed |= {finding.operator for finding in findings(shipped(level, seed)) if finding.outcome == "broken"}
        if operators <= noticed:
            return
    raise AssertionError(f"not noticed by {sorted(operators - noticed)}; noticed by {sorted(noticed)}")


def test_the_unchanged_verifier_is_not_found_out_by_the_same_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "filesys", Mutant(mutated("NAMED_PATHS = 3", "NAMED_PATHS = 4")))
    for level, seed in TASKS[:6]:
        assert {finding.outcome for finding in findings(shipped(level, seed))} == {"held"}


def test_a_laxity_that_both_judges_share_shows_as_equivalents(monkeypatch: pytest.MonkeyPatch) -> None:
    class BothLax(Mutant):
        def second_opinion(self, instance: Instance) -> SecondOpinion:
            return lambda state: self.verify(VerifierInput(instance=instance, calls=(), final_state=state)).passed

    old, new, operators = LAX["further files are allowed"]
    monkeypatch.setitem(FAMILIES, "filesys", BothLax(mutated(old, new)))
    proof = Proof(["filesys"])
    for level, seed in TASKS[:6]:
        proof.add(findings(shipped(level, seed)))
    assert operators <= {tally.operator for tally in proof.tallies.values() if tally.equivalent}
    assert [problem for problem in proof.problems() if "of the near misses are equivalent" in problem]
