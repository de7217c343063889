"""A recorded episode carried out again: the same calls must give the same results, final state and verdict."""

from __future__ import annotations

from typing import Any

from tasks_env.canonical import canonical_json
from tasks_env.session import Session, verify
from tasks_env.types import FinalState, Frozen, Instance, JsonObject, ToolCall, ToolResult, Variant

EXCERPT_CHARS = 160
"""Of each of two texts that differ, around the first difference."""
ARGUMENT_CHARS = 200
_LEAD = 40


class RecordedCall(Frozen):
    """One call of an episode and what the agent was answered."""

    name: str
    """As the agent called it."""
    arguments: JsonObject
    """As the agent wrote them: under shown names."""
    call: ToolCall | None
    """The same in canonical names; null for a tool that does not exist."""
    content: str
    is_error: bool


class Recording(Frozen):
    """What an episode says happened in its world."""

    calls: tuple[RecordedCall, ...]
    """The calls that reached the tools, in order."""
    carried_out: tuple[ToolCall, ...]
    """Those that were carried out without error on the real tools: what the verifier was shown."""
    final_state: FinalState


class Difference(Frozen):
    """The first thing that did not come out again."""

    what: str
    """`call`, `calls carried out`, `final state` or `verdict`."""
    recorded: str
    """An excerpt, around the first difference."""
    replayed: str
    number: int | None = None
    """Of a call: its place among the recorded calls, from 1."""
    tool: str = ""
    """Of a call: as the agent called it."""
    arguments: str = ""

    def __str__(self) -> str:
        where = self.what if self.number is None else f"call {self.number}, {self.tool}({self.arguments})"
        return f"{where}: recorded {self.recorded}; replayed {self.replayed}"


def replay(instance: Instance, variant: Variant, recording: Recording, max_output_chars: int) -> Difference | None:
    """Carry out the recorded calls on a fresh world. Returns the first difference; null if there is none.

    A tool, a state or a verifier that raises differs from one that answered, and equals one that raised the same.
    """
    session = Session(instance, variant, max_output_chars)
    for number, recorded in enumerate(recording.calls, start=1):
        outcome = _outcome(session, recorded)
        wanted = _shown(recorded.content, recorded.is_error, recorded.call)
        if outcome != wanted:
            return _difference("call", wanted, outcome, number, recorded)
    for what, wanted, outcome in (
        ("calls carried out", _json(recording.carried_out), _json(session.calls)),
        ("final state", _json(recording.final_state), _attempted(lambda: _json(session.final_state()))),
    ):
        if outcome != wanted:
            return _difference(what, wanted, outcome)
    wanted = _attempted(lambda: _json(verify(instance, recording.carried_out, recording.final_state)))
    outcome = _attempted(lambda: _json(session.verdict()))
    return None if outcome == wanted else _difference("verdict", wanted, outcome)


def _outcome(session: Session, recorded: RecordedCall) -> str:
    if session.submitted:
        return "nothing: the task had been handed in"

    def called() -> str:
        result: ToolResult = session.call(recorded.name, recorded.arguments)
        return _shown(result.content, result.is_error, result.call)

    return _attempted(called)


def _shown(content: str, is_error: bool, call: ToolCall | None) -> str:
    return f"{'error' if is_error else 'result'} {content!r} of {'no tool' if call is None else _json(call)}"


def _attempted(step: Any) -> str:
    try:
        return str(step())
    except Exception as error:  # noqa: BLE001 - what breaks now and did not then is the difference looked for
        return f"raised {type(error).__name__}: {error}"


def _json(value: Any) -> str:
    dumped = (
        [each.model_dump(mode="json") for each in value]
        if isinstance(value, list | tuple)
        else value.model_dump(mode="json")
    )
    return canonical_json(dumped)


def _difference(
    what: str, wanted: str, outcome: str, number: int | None = None, call: RecordedCall | None = None
) -> Difference:
    start = next(
        (i for i, (a, b) in enumerate(zip(wanted, outcome, strict=False)) if a != b), min(len(wanted), len(outcome))
    )
    arguments = canonical_json(call.arguments) if call else ""
    return Difference(
        what=what,
        recorded=_excerpt(wanted, start),
        replayed=_excerpt(outcome, start),
        number=number,
        tool=call.name[:100] if call else "",
        arguments=arguments if len(arguments) <= ARGUMENT_CHARS else f"{arguments[:ARGUMENT_CHARS]}…",
    )


def _excerpt(text: str, start: int) -> str:
    """At most `EXCERPT_CHARS` of `text` from a little before `start`."""
    begin = max(0, start - _LEAD)
    if len(text) <= EXCERPT_CHARS:
        begin = 0
    end = begin + EXCERPT_CHARS
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}" or "nothing"
