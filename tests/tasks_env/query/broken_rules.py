"""Verifiers of the query family with one rule broken: the sources of `answers` and `verifier`, edited."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks_env import Instance, ToolCall, Verdict, VerifierInput
from tasks_env.families.query import Query, answers, verifier
from tests.tasks_env.query.levels import FAMILY

Edit = tuple[Any, str, str]
"""Module, text, and what is put in its place."""


@dataclass(frozen=True)
class BrokenRule:
    """A rule made lax or strict. `operator`: the one that must tell, on answers of this form."""

    form: str
    operator: str
    edits: tuple[Edit, ...]


def family_with(broken: BrokenRule) -> Query:
    """The family with the broken verifier, everything else unchanged."""
    names = _run(answers, broken, {})
    judge = _run(verifier, broken, {name: names[name] for name in ("Answer", "parse_answer", "written")})["verify"]

    class Broken(Query):
        def verify(self, evidence: VerifierInput) -> Verdict:
            return judge(evidence)

        def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
            return FAMILY.mistake(instance, rng)

    return Broken()


def _run(module: Any, broken: BrokenRule, names: dict[str, Any]) -> dict[str, Any]:
    """The names that the edited source of `module` defines; `names` replace what it imports."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    for edited, old, new in broken.edits:
        if edited is module:
            assert source.count(old) == 1, old
            source = source.replace(old, new)
    defined: dict[str, Any] = {"__name__": f"broken_{module.__name__}"}
    exec(compile(source, str(module.__file__), "exec"), defined)
    defined.update(names)
    return defined


def comparison(expression: str) -> Edit:
    """Another test of equality of `given` and `truth`."""
    return verifier, "given is not None and given == truth", f"given is not None and ({expression})"


def _read(old: str, new: str) -> Edit:
    return answers, old, new


def _number(first: str) -> Edit:
    """A step before a number is read."""
    test = "if not _NUMBER.fullmatch(text):"
    return _read(test, f"{first}\n    {test}")


def _stripped(expression: str) -> Edit:
    return _read("stripped = text.strip()", f"stripped = {expression}")


_SPLIT = "stripped.split(LIST_SEPARATOR.strip())"
_WORDS = (
    "from tasks_env.families.query.miswritten import in_words\n"
    "    text = {in_words(n): str(n) for n in range(100)}.get(text, text)"
)
_SENTENCE = "text.rstrip('.').removesuffix(' (checked)').removeprefix('The answer is ').removeprefix('Answer: ')"
_JSON = "'; '.join(__import__('json').loads(text)) if text.startswith('[') else text.strip()"
_LIKENESS = "__import__('difflib').SequenceMatcher(None, given, truth).ratio() > 0.6"

_READING = [
    ("number", "surrounding white space", _stripped("text")),
    ("text", "surrounding white space", _stripped("text")),
    ("number", "in quotes", _stripped("text.strip('\"`*').strip(chr(39))")),
    ("text", "in quotes", _stripped("text.strip('\"`*').strip(chr(39))")),
    ("date", "in a sentence", _stripped(_SENTENCE)),
    ("list", "as JSON", _stripped(_JSON)),
    ("list", "white space around values", _read("[part.strip() for part in", "[part.removeprefix(' ') for part in")),
    ("pair", "white space around values", _read("[part.strip() for part in", "[part.removeprefix(' ') for part in")),
    ("list", "other separator", _read(_SPLIT, r"re.split('[;,:|\n]', stripped)")),
    ("pair", "other separator", _read(_SPLIT, "re.split('[;,:=]', stripped)")),
    (
        "list",
        "empty value",
        _read("            return parts", "            return [part for part in parts if part]"),
    ),
    ("pair", "third part", _read("len(parts) == 2 and", "len(parts) >= 2 and")),
    ("pair", "pair swapped", _read(f"in {_SPLIT}]", f"in {_SPLIT}]\n        parts.sort(reverse=form.kind == 'pair')")),
    (
        "date",
        "other date format",
        _read("return stripped if _DATE", "return stripped[:10].replace('/', '-') if True or _DATE"),
    ),
    ("number", "unit or currency", _number("text = re.sub('[^0-9.+-]', '', text)")),
    ("decimals", "comma or other separator", _number("text = text.replace(',', '.')")),
    ("number", "number in words", _number(_WORDS)),
    ("number", "digits of another script", _read("[+-]?[0-9]{1,15}(", r"[+-]?\d{1,15}(")),
    ("number", "plus sign", _read("[+-]?[0-9]{1,15}(", "-?[0-9]{1,15}(")),
    ("number", "leading zeros", _read("[+-]?[0-9]{1,15}(", "[+-]?(?:0|[1-9][0-9]*)(")),
    ("number", "exponent notation", _read("[0-9]{1,30})?", "[0-9]{1,30})?(e[+][0-9]+)?")),
    ("decimals", "inside the tolerance", _read("[0-9]{1,30})?", "[0-9]{1,2})?")),
    ("number", "trailing zeros", _read(r"(\.[0-9]{1,30})?", "")),
    ("number", "outside the tolerance", _read("number != number.to_integral_value()", "False")),
    ("decimals", "inside the tolerance", _read("rounding=ROUND_HALF_UP", "rounding='ROUND_DOWN'")),
    ("decimals", "inside the tolerance", _read("rounding=ROUND_HALF_UP", "rounding='ROUND_HALF_EVEN'")),
    ("decimals", "outside the tolerance", _read("rounding=ROUND_HALF_UP", "rounding='ROUND_UP'")),
    ("number", "sign changed", _read("return canonical_number(number,", "return canonical_number(abs(number),")),
]
_COMPARING = [
    ("text", "another case", "given.casefold() == truth.casefold()"),
    ("list", "another case", "str(given).casefold() == str(truth).casefold()"),
    ("pair", "part of the text", "truth[0].startswith(given[0]) or truth[0].endswith(given[0])"),
    ("text", "extra word", "truth in given"),
    ("text", "one letter changed", _LIKENESS),
    ("text", "look-alike letter", _LIKENESS),
    ("text", "neighbour value", "given.istitle() == truth.istitle()"),
    ("date", "date off", "given[:4] == truth[:4]"),
    ("list", "values swapped", "sorted(given) == sorted(truth)"),
    ("list", "reversed", "sorted(given) == sorted(truth)"),
    ("list", "order ignored", "sorted(given) == sorted(truth)"),
    ("list", "value duplicated", "list(dict.fromkeys(given)) == truth"),
    ("list", "duplicates kept", "set(given) == set(truth)"),
    ("list", "value missing", "set(given) <= set(truth)"),
    ("list", "value extra", "set(given) >= set(truth)"),
    ("list", "neighbour value", "len(given) == len(truth)"),
    ("pair", "last digit off by one", "given[0] == truth[0]"),
    ("pair", "neighbour value", "given[1] == truth[1]"),
    ("number", "last digit off by one", "abs(float(given) - float(truth)) <= 1"),
    ("decimals", "last digit off by one", "abs(float(given) - float(truth)) < 0.015"),
    ("decimals", "off by one", "abs(float(given) - float(truth)) < 1.5"),
    ("decimals", "fewer decimals", "abs(float(given) - float(truth)) < 0.06"),
    ("decimals", "truncated", "int(float(given)) == int(float(truth))"),
    ("number", "another digit", "len(given) == len(truth)"),
    ("list", "empty answer", "not text.strip() or given == truth"),
]

BROKEN_RULES = (
    *(BrokenRule(form, operator, (edit,)) for form, operator, edit in _READING),
    *(BrokenRule(form, operator, (comparison(expression),)) for form, operator, expression in _COMPARING),
    BrokenRule(
        "pair",
        "half of the pair",
        (
            _read("number is not None else None", "number is not None else [parts[0], '']"),
            comparison("given[0] == truth[0]"),
        ),
    ),
    BrokenRule("number", "never handed in", ((verifier, " and evidence.final_state.submitted", ""),)),
    BrokenRule(
        "number",
        "answer of another type",
        ((verifier, "answer if isinstance(answer, str) and", "str(answer) if answer is not None and"),),
    ),
)
