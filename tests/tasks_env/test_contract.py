"""The contract as one call: a sound family passes, and every promise that is broken on purpose is named."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from tasks_env import (
    FAMILIES,
    PERTURBATIONS,
    Condition,
    Content,
    ContractError,
    Family,
    FinalState,
    Instance,
    JsonObject,
    Presentation,
    Reply,
    SecondOpinion,
    ToolCall,
    ToolError,
    ToolSpec,
    Verdict,
    VerifierInput,
    check_family,
    check_perturbation,
    registered,
)
from tasks_env.contract.family import DECLARED, GENERATES, KEPT, PROOFS_HOLD, _subject
from tasks_env.contract.perturbation import PROMISES
from tasks_env.contract.promises import broken_promises
from tasks_env.contract.subject import Declared
from tasks_env.perturbations.base import SameSample
from tasks_env.tools import parameter, tool
from tasks_env.types import Naming
from tests.tasks_env.stranger import Book, Ledger, LedgerParams

EASY = {"easy": {"accounts": 3, "entries": 12}}
PROCESS = "same bytes in another process"


def broken(family: Family[Any], difficulties: Mapping[str, Mapping[str, Any]] = EASY, **options: Any) -> list[str]:
    """The lines of every broken promise; empty if all are kept."""
    try:
        check_family(family, difficulties, **{"instances": 2, "other_process": False, **options})
    except ContractError as error:
        return list(error.broken)
    return []


class TestSoundFamily:
    def test_the_strangers_family_keeps_every_promise(self) -> None:
        check_family(Ledger(), {**EASY, "hard": {"accounts": 5, "entries": 60}}, instances=4)

    def test_a_registered_family_can_be_examined_too(self) -> None:
        with pytest.raises(ContractError) as caught:
            check_family(type("Query", (type(FAMILIES["query"]),), {"version": 0})(), instances=1, other_process=False)
        assert "names are in order: version 0: a whole number from 1 is expected" in caught.value.broken

    def test_message_has_a_line_for_every_broken_promise(self) -> None:
        with pytest.raises(ContractError) as caught:
            check_family(overriding(version=0, near_miss_operators=())(), EASY, instances=1, other_process=False)
        first, *lines = str(caught.value).splitlines()
        assert first == "family 'ledger' breaks its contract:"
        assert lines == [f"- {line}" for line in caught.value.broken]
        assert len(lines) > 2
        assert caught.value.subject == "family 'ledger'"

    def test_family_without_a_name_is_told_so(self) -> None:
        class Nameless(Ledger):
            name = None  # type: ignore[assignment]

        with pytest.raises(ContractError, match="family Nameless breaks its contract:\n- names are in order: name"):
            check_family(Nameless())

    def test_every_promise_is_broken_by_some_test_here(self) -> None:
        assert {promise for promise, _, _ in BROKEN} | {PROCESS} == {*DECLARED, *KEPT, GENERATES, PROOFS_HOLD}


def overriding(base: type[Ledger] = Ledger, **members: Any) -> Callable[[], Ledger]:
    return type("Broken", (base,), members)


class Undescribed(LedgerParams):
    shelves: int = Field(default=1, ge=0, le=9)


class Unbounded(LedgerParams):
    entries: int = Field(ge=4, description="Entries in the journal.")


class Lenient(LedgerParams, extra="ignore"):
    pass


class Hasty(LedgerParams):
    entries: Any = Field(description="Entries.")

    def model_post_init(self, _context: object) -> None:
        if self.entries > 200:
            raise KeyError("too many")


def without_last(_self: Ledger) -> tuple[ToolSpec, ...]:
    return Ledger().tools()[:-1]


def reversed_tools(_self: Ledger) -> tuple[ToolSpec, ...]:
    return Ledger().tools()[::-1]


def with_tool(spec: ToolSpec) -> Callable[[Ledger], tuple[ToolSpec, ...]]:
    return lambda _self: (spec, *Ledger().tools())


def raw_tool(**schema: Any) -> ToolSpec:
    return ToolSpec(name="extra", description="Extra.", parameters={"type": "object", "properties": {}, **schema})


counter = itertools.count()


def counting(_self: Ledger, params: LedgerParams, seed: int) -> Content:
    return Ledger().generate(params, seed + next(counter))


def by_global_generator(_self: Ledger, params: LedgerParams, seed: int) -> Content:  # noqa: ARG001
    return Ledger().generate(params, random.randrange(10**9))


def by_nothing(_self: Ledger, params: LedgerParams, seed: int) -> Content:  # noqa: ARG001
    return Ledger().generate(params, 1)


def barren(_self: Ledger, params: LedgerParams, seed: int) -> Content:  # noqa: ARG001
    raise LookupError("nothing to count")


def backwards(_self: Ledger, params: LedgerParams, seed: int) -> Content:
    content = Ledger().generate(params, seed)
    return content.model_copy(
        update={each: dict(sorted(getattr(content, each).items(), reverse=True)) for each in ("spec", "world")}
    )


class InOrder(Book):
    """Shows what comes first in the world."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._first = next(iter(world))

    def _list(self, arguments: JsonObject) -> Reply:
        return Reply(text=f"{self._first}\n{super()._list(arguments).text}")


def prompt(change: Callable[[str, Instance, str], str]) -> Callable[[Ledger, Instance, str], str]:
    def worded(_self: Ledger, instance: Instance, phrasing: str) -> str:
        return change(Ledger().prompt(instance, phrasing), instance, phrasing)

    return worded


def reference(change: Callable[[tuple[ToolCall, ...], Instance], tuple[ToolCall, ...]]) -> Any:
    return lambda _self, instance: change(Ledger().reference(instance), instance)


def verdict(change: Callable[[Verdict, VerifierInput], Verdict]) -> Any:
    return lambda _self, evidence: change(Ledger().verify(evidence), evidence)


def opened(book: type[Book]) -> Any:
    return lambda _self, instance: book(instance.world)


def wrong_call(plan: tuple[ToolCall, ...], _instance: Instance) -> tuple[ToolCall, ...]:
    return (ToolCall(name="read_journal", arguments={"page_number": 99}), *plan)


def early_end(plan: tuple[ToolCall, ...], _instance: Instance) -> tuple[ToolCall, ...]:
    return (*plan, plan[0])


def by_truth(plan: tuple[ToolCall, ...], instance: Instance) -> tuple[ToolCall, ...]:
    return plan if instance.truth else plan[::-1]


def needing_truth(plan: tuple[ToolCall, ...], instance: Instance) -> tuple[ToolCall, ...]:
    assert isinstance(instance.truth["balances"], dict)
    return plan


class Sharing(Book):
    """Writes into the instance's own world."""

    def _write(self, arguments: JsonObject) -> Reply:
        reply = super()._write(arguments)
        self._opening[str(arguments["account_name"])] = 0
        return reply


class OneForAll(Book):
    """All worlds share one page."""

    shared: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._balances = self.shared


class Exposed(Book):
    """Gives its own dictionary away."""

    def state(self) -> JsonObject:
        return {"balances": self._balances}  # type: ignore[dict-item]


class Tupled(Book):
    def state(self) -> JsonObject:
        return {**super().state(), "pages": (1, 2)}  # type: ignore[dict-item]


class Infinite(Book):
    def state(self) -> JsonObject:
        return {**super().state(), "rate": float("inf")}


class Raising(Book):
    def _write(self, arguments: JsonObject) -> Reply:
        if len(str(arguments["amount"])) > 12 or not arguments["amount"]:
            raise IndexError("no room")
        return super()._write(arguments)


class Endless(Book):
    def _read(self, arguments: JsonObject) -> Reply:
        return (
            Reply(text="x" * 100, note="y" * 20_000)
            if arguments.get("page_number", 1) != 1
            else super()._read(arguments)
        )


class Reopening(Book):
    def _write(self, arguments: JsonObject) -> Reply:
        self._balances[str(arguments["account_name"])] = str(arguments["amount"])
        return Reply(text="written")


class Misnaming(Book):
    def _read(self, arguments: JsonObject) -> Reply:
        try:
            return super()._read(arguments)
        except ToolError as error:
            raise ToolError(error.message, argument="page") from None


class Mute(Book):
    def _read(self, arguments: JsonObject) -> Reply:
        try:
            return super()._read(arguments)
        except ToolError as error:
            raise ToolError(" ", argument=error.argument) from None


class Leaking(Book):
    def _write(self, arguments: JsonObject) -> Reply:
        return Reply(text=super()._write(arguments).text, note="When all are written: close_books.")


class LeakingErrors(Book):
    def _close(self, arguments: JsonObject) -> Reply:
        if self.submitted:
            raise ToolError("close_books was called before")
        return super()._close(arguments)


def blind_opinion(_self: Ledger, instance: Instance) -> SecondOpinion:
    wanted: Any = instance.truth["balances"]
    return lambda state: state.submitted and Ledger().second_opinion(instance)(state) and bool(wanted)


def any_amount(_self: Ledger, instance: Instance) -> SecondOpinion:
    """Agrees on every proposal of the family, and not on an amount that only an unusual agent writes."""
    opinion = Ledger().second_opinion(instance)

    def right(state: FinalState) -> bool:
        found: Any = state.data["balances"]
        return (
            opinion(state) or "x" in found or any(text in ("", " ", "/", "..", "-0", "%s") for text in found.values())
        )

    return right


def fickle() -> Any:
    numbers = itertools.count()
    held = Condition(name="held", holds=True)

    def verify(_self: Ledger, evidence: VerifierInput) -> Verdict:
        real = Ledger().verify(evidence)
        return real.model_copy(update={"conditions": (*real.conditions, held)}) if next(numbers) % 2 else real

    return verify


def meddling(_self: Ledger, evidence: VerifierInput) -> Verdict:
    real = Ledger().verify(evidence)
    evidence.final_state.data["judged"] = True
    return real


def half_score(real: Verdict, _evidence: VerifierInput) -> Verdict:
    return real.model_copy(update={"partial_score": 0.5})


def unread_types(real: Verdict, evidence: VerifierInput) -> Verdict:
    """Depends on an identity that JSON does not keep."""
    parsed = evidence.instance.truth is not Kept.truth
    return (
        real.model_copy(update={"conditions": (*real.conditions, Condition(name="kept", holds=True))})
        if parsed
        else real
    )


class Kept(Ledger):
    truth: Any = None

    def open(self, instance: Instance) -> Book:
        Kept.truth = instance.truth
        return super().open(instance)

    def verify(self, evidence: VerifierInput) -> Verdict:
        return unread_types(super().verify(evidence), evidence)


def lax(real: Verdict, evidence: VerifierInput) -> Verdict:
    kept = real.conditions[:-1]
    score = sum(each.holds for each in kept) / len(kept)
    return Verdict(passed=score == 1, partial_score=score, conditions=kept) if evidence.calls else real


def passing_mistake(_self: Ledger, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:  # noqa: ARG001
    return Ledger().reference(instance)


BROKEN: list[tuple[str, str, Callable[[], Ledger]]] = [
    ("names are in order", "name 'My Ledger': lower-case letters", overriding(name="My Ledger")),
    ("names are in order", "version '1': a whole number from 1", overriding(version="1")),
    ("names are in order", "version True: a whole number from 1", overriding(version=True)),
    ("names are in order", "phrasings lack p4, p5, which", overriding(phrasings=("base", "p1", "p2", "p3"))),
    ("names are in order", "phrasings lists a name twice", overriding(phrasings=(*Ledger.phrasings, "p5"))),
    ("names are in order", "near_miss_operators is empty", overriding(near_miss_operators=())),
    (
        "parameters refuse nonsense",
        "'shelves' has no description",
        overriding(params=Undescribed, demonstration=Undescribed(accounts=2, entries=4)),
    ),
    (
        "parameters refuse nonsense",
        "'entries' as a million million is accepted",
        overriding(params=Unbounded, demonstration=Unbounded(accounts=2, entries=4)),
    ),
    (
        "parameters refuse nonsense",
        "an unknown parameter is accepted",
        overriding(params=Lenient, demonstration=Lenient(accounts=2, entries=4)),
    ),
    (
        "parameters refuse nonsense",
        "'entries' as a million million raised KeyError",
        overriding(params=Hasty, demonstration=Hasty(accounts=2, entries=4)),
    ),
    ("parameters refuse nonsense", "demonstration is not an instance of params", overriding(params=Unbounded)),
    ("parameters refuse nonsense", "params is <class 'dict'>, not a subclass", overriding(params=dict)),
    ("tools are well described", "the closing tool 'close_books' is missing", overriding(tools=without_last)),
    (
        "tools are well described",
        "the closing tool 'close_books' is not the last one",
        overriding(tools=reversed_tools),
    ),
    (
        "tools are well described",
        "a name is listed twice: close_books, list_accounts",
        overriding(tools=with_tool(Ledger().tools()[-1])),
    ),
    (
        "tools are well described",
        "tool 'look up': its name has other characters",
        overriding(tools=with_tool(tool("look up", "Look.", {}))),
    ),
    (
        "tools are well described",
        "tool 'look': it has no description",
        overriding(tools=with_tool(tool("look", " ", {}))),
    ),
    (
        "tools are well described",
        "argument 'x' has no description",
        overriding(tools=with_tool(tool("look", "Look.", {"x": parameter("string", "")}))),
    ),
    (
        "tools are well described",
        "argument 'x' is not flat",
        overriding(tools=with_tool(tool("look", "Look.", {"x": parameter("object", "An object.")}))),
    ),
    (
        "tools are well described",
        "argument 'x' is not flat",
        overriding(
            tools=with_tool(tool("look", "Look.", {"x": parameter("array", "Lists.", items={"type": "array"})}))
        ),
    ),
    (
        "tools are well described",
        "mentions {tool:open_books}, which does not exist",
        overriding(tools=with_tool(tool("look", "See {tool:open_books}.", {}))),
    ),
    (
        "tools are well described",
        "mentions {arg:page}, which does not exist",
        overriding(tools=with_tool(tool("look", "Look.", {"x": parameter("string", "As {arg:page}.")}))),
    ),
    (
        "tools are well described",
        "it requires 'y', which is no argument",
        overriding(tools=with_tool(raw_tool(required=["y"], additionalProperties=False))),
    ),
    (
        "tools are well described",
        "its parameters are not what tasks_env.tools.tool makes",
        overriding(tools=with_tool(raw_tool())),
    ),
    (
        "tools are well described",
        "its parameters are no JSON Schema",
        overriding(tools=with_tool(raw_tool(required="all", additionalProperties=False))),
    ),
    (
        "instances can be generated",
        "difficulty 'demonstration', seed 2242552691455032351: raised",
        overriding(generate=barren),
    ),
    ("instances can be generated", ": raised LookupError: nothing to count", overriding(generate=barren)),
    ("same seed, same bytes", "gave two tasks", overriding(generate=counting)),
    ("same seed, same bytes", "gave two tasks", overriding(generate=by_global_generator)),
    ("same seed, same bytes", "2 seeds gave one and the same task", overriding(generate=by_nothing)),
    (
        "same seed, same bytes",
        "wordings of ledger-",
        overriding(prompt=prompt(lambda text, _i, _p: f"{text} {random.random()}")),
    ),
    (
        "same seed, same bytes",
        "mistake of ledger-",
        overriding(mistake=lambda _s, i, _rng: Ledger().mistake(i, random.Random(random.random()))),
    ),
    (
        "instances are JSON",
        "it is worded or solved otherwise",
        overriding(generate=backwards, prompt=prompt(lambda text, i, _p: f"{text} {next(iter(i.spec))}")),
    ),
    ("instances are JSON", "its tools answer otherwise", overriding(generate=backwards, open=opened(InOrder))),
    (
        "every wording is whole",
        "phrasing 'p2' is empty",
        overriding(prompt=prompt(lambda text, _i, p: "" if p == "p2" else text)),
    ),
    (
        "every wording is whole",
        "phrasing 'p1' leaves the placeholder {first_day}",
        overriding(prompt=prompt(lambda text, _i, p: text + " {first_day}" * (p == "p1"))),
    ),
    (
        "every wording is whole",
        "phrasing 'p1' leaves the placeholder {tool:",
        overriding(prompt=prompt(lambda text, _i, p: text + " {tool:}" * (p == "p1"))),
    ),
    (
        "every wording is whole",
        "phrasing 'base': its text mentions {tool:submit}",
        overriding(prompt=prompt(lambda text, _i, _p: text + " {tool:submit}")),
    ),
    (
        "every wording is whole",
        "phrasing 'p3' says word for word what 'base' says",
        overriding(prompt=lambda _s, i, p: Ledger().prompt(i, "base" if p == "p3" else p)),
    ),
    (
        "every wording is whole",
        "phrasing 'base' changes when world and truth are taken away",
        overriding(prompt=prompt(lambda text, i, _p: f"{text} ({len(i.world)})")),
    ),
    (
        "every wording is whole",
        "phrasing 'base' cannot do without world and truth: KeyError",
        overriding(prompt=prompt(lambda text, i, _p: f"{text} {bool(i.truth['balances'])}")),
    ),
    (
        "renaming reaches every text",
        "opaque: the prompt in phrasing 'base' shows 'write_balance', which is now 't",
        overriding(prompt=prompt(lambda text, _i, _p: text.replace("{tool:write_balance}", "write_balance"))),
    ),
    ("renaming reaches every text", "shows 'close_books'", overriding(open=opened(Leaking))),
    (
        "renaming reaches every text",
        "a tool's answer after the end shows 'close_books'",
        overriding(open=opened(LeakingErrors)),
    ),
    (
        "renaming reaches every text",
        "shows 'amount', which is now 'a",
        overriding(prompt=prompt(lambda text, _i, _p: f"{text} `amount` is a text.")),
    ),
    (
        "the reference passes",
        "read_journal: error in argument 'page_number': there are",
        overriding(reference=reference(wrong_call)),
    ),
    (
        "the reference passes",
        "not the last call, and it alone, ends the episode",
        overriding(reference=reference(early_end)),
    ),
    ("the reference passes", "it changes when the truth is taken away", overriding(reference=reference(by_truth))),
    (
        "the reference passes",
        "it cannot do without the truth: raised KeyError",
        overriding(reference=reference(needing_truth)),
    ),
    ("the reference passes", "it does not pass", overriding(reference=reference(lambda plan, _i: plan[:-1]))),
    (
        "the reference passes",
        "the second opinion cannot do without the truth: raised KeyError",
        overriding(second_opinion=blind_opinion),
    ),
    ("worlds are isolated", "playing changes the instance", overriding(open=opened(Sharing))),
    ("worlds are isolated", "playing in one world changes", overriding(open=opened(OneForAll))),
    ("worlds are isolated", "changing what state() gave changes the world", overriding(open=opened(Exposed))),
    ("states are JSON", "is another one after a trip through JSON", overriding(open=opened(Tupled))),
    ("states are JSON", "raised ValueError: Out of range float", overriding(open=opened(Infinite))),
    ("verdicts are consistent", "passed, but its partial score is 0.5", overriding(verify=verdict(half_score))),
    ("verdicts are consistent", "the second time it is another one", overriding(verify=fickle())),
    ("verdicts are consistent", "judging changes the evidence", overriding(verify=meddling)),
    ("verdicts are consistent", "read back from JSON, the evidence gives another verdict", Kept),
    ("any call is answered", "raised IndexError: no room", overriding(open=opened(Raising))),
    ("any call is answered", "answers 20101 characters", overriding(open=opened(Endless))),
    ("any call is answered", "changes the state after the task was handed in", overriding(open=opened(Reopening))),
    (
        "any call is answered",
        "its error names the argument 'page', which the tool does not have",
        overriding(open=opened(Misnaming)),
    ),
    ("any call is answered", "its error says nothing", overriding(open=opened(Mute))),
    ("any call is answered", "verifier and second opinion differ on", overriding(second_opinion=any_amount)),
    ("proofs hold", "ledger, near_miss 'never closed': ledger-", overriding(verify=verdict(lax))),
    ("proofs hold", "ledger, mistake 'one wrong step': ledger-", overriding(mistake=passing_mistake)),
    (
        "proofs hold",
        "ledger, near_miss 'x': never tried",
        overriding(near_miss_operators=(*Ledger.near_miss_operators, "x")),
    ),
]


@pytest.mark.parametrize(
    ("promise", "seen", "family"), BROKEN, ids=lambda each: each[:60] if isinstance(each, str) else ""
)
def test_broken_promise_is_named_with_what_was_seen(promise: str, seen: str, family: Callable[[], Ledger]) -> None:
    """The first way to break each promise by the whole examination, the others by the promise's own."""
    OneForAll.shared.clear()
    count = 2 if "seeds gave" in seen else 1
    first = next(way for name, way, _ in BROKEN if name == promise)
    if seen == first or promise in (GENERATES, PROOFS_HOLD):
        lines = broken(family(), {}, instances=count)
    else:
        lines = examined_alone(promise, family(), count)
    named = [line for line in lines if line.startswith(f"{promise}: ")]
    assert any(seen in line for line in named), "\n".join(lines)
    assert len(named) <= 6
    assert all(len(line) < 600 and "\n" not in line for line in lines)


def examined_alone(promise: str, family: Ledger, count: int) -> list[str]:
    with registered(family):
        if promise in DECLARED:
            return broken_promises({promise: DECLARED[promise]}, Declared(family, {}, 0))
        return broken_promises({promise: KEPT[promise]}, _subject(family, {}, count, 0))


def test_every_broken_promise_is_said_not_only_the_first() -> None:
    family = overriding(
        version=0,
        tools=reversed_tools,
        mistake=passing_mistake,
        open=opened(Exposed),
        prompt=prompt(lambda text, _i, _p: text + " {first_day}"),
    )()
    assert {line.split(": ")[0] for line in broken(family)} >= {
        "names are in order",
        "tools are well described",
        "every wording is whole",
        "worlds are isolated",
        "proofs hold",
    }


def test_missing_declarations_are_said() -> None:
    bare = type("Bare", (Family,), {"name": "bare", "params": LedgerParams, "__abstractmethods__": frozenset()})
    bare.__abstractmethods__ = frozenset()
    lines = broken(bare())
    for attribute in ("version", "demonstration", "closing_tool"):
        assert f"names are in order: {attribute} is missing" in lines


class Salted(Ledger):
    """Depends on Python's salted hash."""

    def generate(self, params: LedgerParams, seed: int) -> Content:
        return super().generate(params, seed + hash("salt") % 1000)


class TestOtherProcess:
    def test_salted_hash_is_found(self) -> None:
        lines = broken(Salted(), other_process=True)
        assert lines == [
            f"{PROCESS}: another process, with another PYTHONHASHSEED, locale and time zone, made other bytes"
        ]

    def test_class_that_cannot_be_imported_is_left_to_this_process(self) -> None:
        assert broken(overriding(name="elsewhere")(), other_process=True) == []

    def test_process_that_fails_is_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "moody_family.py").write_text(
            "import os\nfrom tests.tasks_env.stranger import Ledger\n"
            "if os.environ.get('TZ') == 'Asia/Kathmandu': raise OSError('not here')\n"
            "class Moody(Ledger):\n    pass\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        import moody_family  # type: ignore[import-not-found]

        assert broken(moody_family.Moody(), other_process=True) == [
            f"{PROCESS}: another process failed: OSError: not here"
        ]


def test_a_process_that_examines_a_family_loads_no_orchestrator() -> None:
    code = "import sys, tasks_env; print(sorted({'flows', 'prefect', 'aiohttp'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- perturbations ----------------------------------------------------------------------------------------

LEVELS = {
    "paraphrase": ["p1", "p5"],
    "tool_names": ["synonyms", "opaque"],
    "distractors": ["2", "5"],
    "resample": ["s1"],
    "temperature": ["0.7"],
    "order": ["shuffled"],
}


def broken_axis(perturbation: Any, levels: Sequence[str] = ("mild",)) -> list[str]:
    try:
        check_perturbation(perturbation, levels, [Ledger()], instances=5)
    except ContractError as error:
        return list(error.broken)
    return []


class Tone(SameSample):
    """A stranger's axis: the tools in another order of words, nothing else."""

    axis = "tone"

    def check_level(self, level: str) -> None:
        if level != "mild":
            raise ValueError(f"tone level {level!r}: expected mild")

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
        return [Presentation(naming=Naming(tools={"close_books": "finish"})) for _ in instances]


class TestPerturbation:
    @pytest.mark.parametrize("axis", sorted(PERTURBATIONS))
    def test_shipped_ones_keep_every_promise_for_shipped_and_strange_families(self, axis: str) -> None:
        check_perturbation(PERTURBATIONS[axis], LEVELS[axis], [*FAMILIES.values(), Ledger()], instances=3)

    def test_a_strangers_axis_keeps_every_promise(self) -> None:
        assert broken_axis(Tone()) == []

    def test_shipped_families_are_the_default(self) -> None:
        class Unready(Tone):
            def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
                raise LookupError(instances[0].family)

        with pytest.raises(ContractError) as caught:
            check_perturbation(Unready(), ["mild"], instances=1)
        assert str(caught.value).startswith("perturbation 'tone' breaks its contract:\n- ")
        assert "presentations are determined: raised LookupError: filesys" in caught.value.broken

    def test_every_promise_is_broken_by_some_test_here(self) -> None:
        assert {promise for promise, _, _ in BROKEN_AXES} == set(PROMISES)

    def test_no_level_proves_nothing(self) -> None:
        assert broken_axis(Tone(), []) == ["axis and levels have names: no level was given to examine"]


numbers = itertools.count()


def presenting(made: Callable[[Sequence[Instance], int], list[Presentation]]) -> Any:
    return type("Broken", (Tone,), {"present": lambda _self, instances, _level, seed: made(instances, seed)})()


def spoiling(instances: Sequence[Instance], _seed: int) -> list[Presentation]:
    for instance in instances:
        instance.spec["seen"] = True
    return [Presentation() for _ in instances]


class Resolving(Tone):
    """Shows a tool under a name that looks like a placeholder."""

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
        return [Presentation(naming=Naming(tools={"close_books": "{closing}"})) for _ in instances]


class Colliding(Tone):
    """Two tools under one name: no variant can be shown."""

    def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
        return [Presentation(naming=Naming(tools={"close_books": "list_accounts"})) for _ in instances]


class Accepting(Tone):
    def check_level(self, level: str) -> None:
        pass


class Refusing(Tone):
    def check_level(self, level: str) -> None:
        raise ValueError(f"no level {level}")


BROKEN_AXES: list[tuple[str, str, Any]] = [
    (
        "axis and levels have names",
        "axis 'My Axis': lower-case letters",
        type("Broken", (Tone,), {"axis": "My Axis"})(),
    ),
    ("axis and levels have names", "level '' is accepted", Accepting()),
    ("axis and levels have names", "raised ValueError: no level mild", Refusing()),
    ("presentations are determined", "5 instances, 1 presentations", presenting(lambda _i, _s: [Presentation()])),
    (
        "presentations are determined",
        "the same seed gave other presentations",
        presenting(lambda i, _s: [Presentation(position=next(numbers)) for _ in i]),
    ),
    (
        "presentations are determined",
        "the order of the instances changes",
        presenting(lambda i, _s: [Presentation(position=n) for n, _ in enumerate(i)]),
    ),
    ("the source is untouched", "the instances were changed", presenting(spoiling)),
    ("every wording is whole", "{closing} is left unresolved", Resolving()),
    ("verdicts stay what they were", "raised ValueError: two tools would be shown under one name", Colliding()),
]


@pytest.mark.parametrize(
    ("promise", "seen", "perturbation"), BROKEN_AXES, ids=lambda each: each[:50] if isinstance(each, str) else ""
)
def test_broken_promise_of_an_axis_is_named(promise: str, seen: str, perturbation: Any) -> None:
    lines = broken_axis(perturbation)
    assert any(line.startswith(f"{promise}: ") and seen in line for line in lines), lines


class TestVerdictsThatMove:
    """What only a family and an axis together can break: names that mean something else than they say."""

    def examined(self, change: dict[str, str]) -> list[str]:
        class Renaming(Tone):
            def present(self, instances: Sequence[Instance], level: str, seed: int) -> list[Presentation]:  # noqa: ARG002
                return [Presentation(naming=Naming(arguments=change)) for _ in instances]

        return broken_axis(Renaming())

    def test_renaming_that_permutes_is_no_harm(self) -> None:
        assert self.examined({"amount": "account_name", "account_name": "amount"}) == []

    def test_presentation_that_the_session_does_not_follow_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tasks_env.session.canonical_arguments", lambda arguments, _naming: arguments)
        lines = self.examined({"amount": "a1"})
        assert any("the reference fails" in line or "raised KeyError" in line for line in lines)
