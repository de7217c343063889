"""One episode's transcript as markdown, for a person who checks a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flows.context import Study
from flows.errors import ConfigurationError, StudyError
from flows.grid import Episode
from flows.results import INFRA_ERROR
from flows.scoring import judge, whole_transcript
from tasks_env import Instance
from tasks_env.canonical import canonical_json

LISTED = 40
SHOWN_CHARS = 4000


def view_text(study: Study, wanted: str | None) -> str:
    """The transcript of the episode whose id begins with `wanted`; without it a list of finished episodes.

    In the smoke profile the first finished episode is shown instead of the list.

    Raises:
        ConfigurationError: no such episode, or several.
        StudyError: nothing has been run yet.
    """
    finished = list(finished_episodes(study))
    if not finished:
        raise StudyError(f"{study.store.runs}: no finished episode of this selection; run `agent-bench run` first")
    if wanted is None:
        if study.manifest.profile != "smoke":
            return _listing(study, finished)
        wanted = finished[0].episode_id
    episode = one_of(finished, wanted)
    path = study.transcript(episode)
    instance = study.instances(episode.cell)[episode.instance_id]
    return episode_markdown(whole_transcript(path), instance, path)


def one_of(finished: Sequence[Episode], wanted: str) -> Episode:
    """The episode whose id begins with `wanted`. Raises `ConfigurationError` unless there is exactly one."""
    chosen = [episode for episode in finished if episode.episode_id.startswith(wanted)]
    if len(chosen) != 1:
        what = "no finished episode" if not chosen else f"{len(chosen)} episodes"
        raise ConfigurationError(
            f"{what} of this selection whose id begins with {wanted!r}; `agent-bench view` lists them"
        )
    return chosen[0]


def any_finished(study: Study) -> bool:
    """Whether there is an episode to show."""
    return next(finished_episodes(study), None) is not None


def finished_episodes(study: Study) -> Iterator[Episode]:
    """The episodes of the selection that have a marked transcript, in the order of the grid."""
    for model, cell in study.work:
        if study.has_variants(cell):
            finished = study.finished(model, cell)
            for episode in study.episodes(model, cell):
                if episode.episode_id in finished:
                    yield episode


def _listing(study: Study, episodes: Sequence[Episode]) -> str:
    lines = [f"{len(episodes)} finished episodes; `agent-bench view ID` shows one"]
    for episode in episodes[:LISTED]:
        marker = study.store.marker(study.transcript(episode)) or {}
        lines.append(
            f"  {episode.episode_id}  {episode.model}  {episode.cell.id}  {episode.instance_id}  "
            f"run {episode.run_seed}  {marker.get('outcome')}{_place(episode)}"
        )
    if len(episodes) > LISTED:
        lines.append(f"  … and {len(episodes) - LISTED} more; narrow with --model and --cell")
    return "\n".join(lines)


def _place(episode: Episode) -> str:
    if episode.conversation_id is None:
        return ""
    return f"  (task {episode.conversation_position} of conversation {episode.conversation_id})"


def episode_markdown(events: Sequence[dict[str, Any]], instance: Instance, path: Path) -> str:
    """A whole transcript: identity, conversation, calls and results, usage, final state, verdict."""
    head, end = events[0], events[-1]
    lines = [
        f"# Episode {head['episode_id']}",
        "",
        f"- model: {head['model']} ({head['adapter_version']})",
        f"- cell: {head['cell_id']}, instance {head['instance_id']}",
        f"- run seed {head['run_seed']}, attempt {head['attempt']}",
        f"- temperature: {head['temperature']}, started {head['started_at']}, {end['wall_clock_s']:.2f} s",
        f"- file: {path.name}",
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
    return "\n".join(lines + _verdict_lines(instance, events))


def _verdict_lines(instance: Instance, events: Sequence[dict[str, Any]]) -> list[str]:
    if events[-1]["outcome"] == INFRA_ERROR:
        return ["", "## Verdict", "", "none: an infra_error belongs to no pass rate"]
    try:
        verdict = judge(instance, events)
    except Exception as error:  # noqa: BLE001 - the page is for finding out why a verdict broke
        return ["", "## Verdict", "", f"none: the verifier failed: {_code(f'{type(error).__name__}: {error}')}"]
    lines = [
        "",
        f"## Verdict: {'passed' if verdict.passed else 'failed'}, partial score {verdict.partial_score:.3f}",
        "",
    ]
    return lines + [
        f"- [{'x' if condition.holds else ' '}] {condition.name}"
        + (f": {_code(condition.detail)}" if condition.detail else "")
        for condition in verdict.conditions
    ]


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


def _block(text: str, language: str = "") -> list[str]:
    """A fenced block that the text cannot break out of; control characters and surrogates escaped."""
    shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}\n… {len(text) - SHOWN_CHARS} more characters"
    fence = "```"
    while fence in shown:
        fence += "`"
    return [f"{fence}{language}", _escaped(shown), fence]


def _inline(text: str) -> str:
    """On one line, for texts of this project."""
    return _escaped(" ".join(text.split()))


def _code(text: str) -> str:
    """A code span on one line that the text cannot break out of: for what a model or a server wrote."""
    shown = _inline(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")
    fence = "`"
    while fence in shown:
        fence += "`"
    padding = " " if not shown or "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def _escaped(text: str) -> str:
    """Printable as it is; everything else, line breaks and tabs apart, as an escape."""
    return "".join(
        character if character in "\n\t" or character.isprintable() else ascii(character)[1:-1] for character in text
    )
