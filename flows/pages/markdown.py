"""An episode as markdown. Nothing that a model or a server wrote can pose as the page itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.pages.differences import SAME, Difference
from flows.pages.printable import SHOWN_CHARS, bounded, escaped
from flows.pages.seen import Seen, look
from tasks_env import Instance
from tasks_env.canonical import canonical_json

DIFFERENCE_CHARS = 20_000


def episode_markdown(events: Sequence[dict[str, Any]], instance: Instance, path: Path) -> str:
    """A whole transcript: identity, conversation, calls and results, usage, final state, verdict, what differs."""
    return markdown_of(look(events, instance, path))


def markdown_of(seen: Seen) -> str:
    """As `episode_markdown`, of an episode that has been judged."""
    events = seen.events
    head, end = events[0], events[-1]
    lines = [
        f"# Episode {head['episode_id']}",
        "",
        f"- model: {head['model']} ({head['adapter_version']})",
        f"- cell: {head['cell_id']}, instance {head['instance_id']}",
        f"- run seed {head['run_seed']}, attempt {head['attempt']}",
        f"- temperature: {head['temperature']}, started {head['started_at']}, {end['wall_clock_s']:.2f} s",
        f"- file: {seen.path.name}",
    ]
    for event in events[1:-1]:
        lines += _EVENTS[event["event"]](event)
    lines += [
        "",
        "## End",
        "",
        f"- outcome: **{end['outcome']}**" + (f" ({end['kind']})" if end["kind"] else ""),
    ]
    if end["detail"]:
        lines.append(f"- detail: {_code(end['detail'])}")
    lines.append(
        f"- {end['steps']} steps, tokens in {end['tokens_in']}, out {end['tokens_out']}, cost {end['cost_usd']} USD"
    )
    lines += ["", "Final state:", "", *_block(canonical_json(end["final_state"]["data"]), "json")]
    lines += ["", "## Expected and produced", "", *_difference_lines(seen.difference)]
    return "\n".join(lines + _verdict_lines(seen))


def _verdict_lines(seen: Seen) -> list[str]:
    if seen.verdict is None:
        problem = "" if seen.problem is None else f": {_code(seen.problem)}"
        return ["", "## Verdict", "", f"none: {seen.no_verdict}{problem}"]
    lines = ["", f"## Verdict: {seen.word}, partial score {seen.verdict.partial_score:.3f}", ""]
    return lines + [
        f"- [{'x' if condition.holds else ' '}] {_code(condition.name)}"
        + (f": {_code(condition.detail)}" if condition.detail else "")
        for condition in seen.verdict.conditions
    ]


def _difference_lines(difference: Difference) -> list[str]:
    if not difference.lines:
        return [f"{difference.what}: {SAME}"]
    shown = [f"{line.sign}{' ' if line.sign == '@' else ''}{line.text}" for line in difference.lines]
    return [f"{difference.what}, - expected, + produced:", "", *_block("\n".join(shown), "diff", DIFFERENCE_CHARS)]


def _opening(event: dict[str, Any]) -> list[str]:
    lines = ["", "## Tools", ""]
    for tool in event["tools"]:
        arguments = ", ".join(tool["parameters"]["properties"])
        lines.append(f"- `{tool['name']}({arguments})`: {_inline(tool['description'])}")
    return lines


def _request(event: dict[str, Any]) -> list[str]:
    lines = []
    for message in event["added"]:
        if message["role"] in ("system", "user"):
            lines += ["", f"## {message['role'].capitalize()}", "", *_block(message["text"])]
        elif event["step"] == 1:
            lines += _before(message)
    return lines


def _before(message: dict[str, Any]) -> list[str]:
    """What the agent sees of calls before its first step: a worked example's, or the last ones of the task before."""
    if message["role"] == "assistant":
        lines = ["", f"(before) {_code(message['text'])}"] if message["text"] else []
        return lines + [
            line
            for call in message["calls"]
            for line in ("", f"(before) call {_code(call['name'])}", "", *_block(call["raw_arguments"], "json"))
        ]
    return [line for answer in message["answers"] for line in ("", "(before) result", "", *_block(answer["content"]))]


def _conversation(event: dict[str, Any]) -> list[str]:
    """The tasks of the conversation, this one marked."""
    lines = ["", f"## Task {event['conversation_position']} of conversation {event['conversation_id']}", ""]
    return lines + [
        f"{number}. {task['instance_id']}, episode {task['episode_id']}"
        + (" (this one)" if number == event["conversation_position"] else "")
        for number, task in enumerate(event["tasks"], start=1)
    ]


def _answer(event: dict[str, Any]) -> list[str]:
    usage = event["usage"]
    tokens = f"{usage['input_total']} in, {usage['output_total']} out" if usage else "usage unknown"
    lines = ["", f"## Step {event['step']} ({event['stop']}; {tokens})"]
    if event["text"]:
        lines += ["", *_block(event["text"])]
    for call in event["calls"]:
        lines += ["", f"call {_code(call['name'])}", "", *_block(call["raw_arguments"], "json")]
        if call["problem"]:
            lines += ["", f"problem: {_code(call['problem'])}"]
    return lines


def _attempt(event: dict[str, Any]) -> list[str]:
    if event["error"] is None:
        return []
    wait = "no further attempt" if event["wait_s"] is None else f"next attempt after {event['wait_s']:.1f} s"
    return ["", f"attempt {event['attempt']} failed: {event['error']}: {_code(event['detail'])} ({wait})"]


def _result(event: dict[str, Any]) -> list[str]:
    label = "error" if event["is_error"] else "result"
    return ["", f"{label} of {_code(event['name'])}", "", *_block(event["content"])]


_EVENTS = {
    "conversation": _conversation,
    "opening": _opening,
    "request": _request,
    "attempt": _attempt,
    "answer": _answer,
    "result": _result,
}


def _block(text: str, language: str = "", limit: int = SHOWN_CHARS) -> list[str]:
    """A fenced block that the text cannot break out of; control characters and surrogates escaped."""
    shown = bounded(text, limit)
    fence = "```"
    while fence in shown:
        fence += "`"
    return [f"{fence}{language}", escaped(shown), fence]


def _inline(text: str) -> str:
    """On one line, for texts of this project."""
    return escaped(" ".join(text.split()))


def _code(text: str) -> str:
    """A code span on one line that the text cannot break out of: for what a model or a server wrote."""
    shown = _inline(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")
    fence = "`"
    while fence in shown:
        fence += "`"
    padding = " " if not shown or "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{padding}{shown}{padding}{fence}"
