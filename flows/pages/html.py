"""Episodes as one self-contained HTML page: no script, no request, and every text escaped.

The page is ASCII: characters beyond it are references, so that it is the same in every locale. What a model or a server
wrote reaches it through `_text` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from flows.pages.differences import SAME, Difference
from flows.pages.printable import SHOWN_CHARS, bounded, escaped
from flows.pages.seen import Seen
from flows.pages.style import STYLE
from tasks_env.canonical import canonical_json

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_SIGNS = {"-": "minus", "+": "plus", "@": "hunk", " ": "both"}


def page(title: str, body: str, *, wide: bool = False) -> str:
    """The whole document around `body`."""
    kind = ' class="wide"' if wide else ""
    document = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main{kind}>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return document.encode("ascii", "xmlcharrefreplace").decode("ascii")


def episode_html(seen: Seen) -> str:
    """One episode as a page: identity, verdict, difference, usage, then the transcript."""
    title = f"Episode {seen.head['episode_id']}"
    body = [f"<h1>{_text(title)} {_badge(seen)}</h1>", _facts(seen), judged(seen), told(seen)]
    return page(title, "\n".join(body))


def judged(seen: Seen) -> str:
    """Verdict with its conditions, difference of states, usage and attempts."""
    return "\n".join((_verdict(seen), _difference(seen.difference), _usage(seen.events)))


def told(seen: Seen) -> str:
    """What happened, in its order."""
    parts = [_EVENTS[event["event"]](event) for event in seen.events[1:-1]]
    return "\n".join([*(part for part in parts if part), _ending(seen.end)])


def pair(seen: Seen, number: int, total: int) -> str:
    """Transcript and verdict side by side, as one of the episodes of an audit."""
    head = seen.head
    return (
        f'<article class="pair" id="{_text(head["episode_id"])}"><h2>{number} of {total}: '
        f"<code>{_text(head['episode_id'])}</code> {_badge(seen)}</h2>\n"
        f'<div class="told">{_facts(seen)}\n{told(seen)}</div>\n<div class="judged">{judged(seen)}</div></article>'
    )


def rows_table(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """A table; columns of `numbers` are set to the right. Cells that are HTML come as `Html`."""

    def cell(tag: str, column: int, value: object) -> str:
        shown = value if isinstance(value, Html) else _text("" if value is None else str(value))
        kind = ' class="number"' if column in numbers else ' class="long"' if len(str(value)) > 40 else ""
        return f"<{tag}{kind}>{shown}</{tag}>"

    lines = ["".join(cell("th", n, each) for n, each in enumerate(headings))]
    lines += ["".join(cell("td", n, each) for n, each in enumerate(row)) for row in rows]
    top, *others = (f"<tr>{line}</tr>" for line in lines)
    body = "".join(others)
    return f'<div class="scroll"><table><thead>{top}</thead><tbody>{body}</tbody></table></div>'


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def link(episode_id: str) -> Html:
    """To an episode on the same page."""
    return Html(f'<a href="#{_text(episode_id)}"><code>{_text(episode_id)}</code></a>')


def _text(text: str) -> str:
    return escape(escaped(text))


def _block(text: str, kind: str = "text") -> str:
    return f'<pre class="{kind}" dir="auto">{_text(bounded(text))}</pre>'


def _code(text: str) -> str:
    return f"<code>{_text(bounded(' '.join(text.split()), 400))}</code>"


def _badge(seen: Seen) -> str:
    return f'<span class="badge {seen.word}">{seen.word if seen.verdict else "no verdict"}</span>'


def _facts(seen: Seen) -> str:
    head, end = seen.head, seen.end
    facts = {
        "model": f"{head['model']} ({head['adapter_version']})",
        "cell": head["cell_id"],
        "instance": head["instance_id"],
        "run seed, attempt": f"{head['run_seed']}, {head['attempt']}",
        "temperature": "the provider's default" if head["temperature"] is None else head["temperature"],
        "outcome": end["outcome"] + (f" ({end['kind']})" if end["kind"] else ""),
        "started": f"{head['started_at']}, {end['wall_clock_s']:.2f} s",
        "code": f"{head['git_sha']}, manifest {head['manifest_hash']}",
        "file": seen.path.name,
    }
    lines = "".join(f"<dt>{_text(name)}</dt><dd>{_text(str(value))}</dd>" for name, value in facts.items())
    return f"<section><dl>{lines}</dl></section>"


def _verdict(seen: Seen) -> str:
    if seen.verdict is None:
        problem = "" if seen.problem is None else f": {_code(seen.problem)}"
        return f"<section><h2>Verdict: none</h2><p>{_text(seen.no_verdict)}{problem}</p></section>"
    items = "".join(
        f'<li><span class="badge {"passed" if each.holds else "failed"}">{"holds" if each.holds else "fails"}</span> '
        f"<strong>{_text(each.name)}</strong>{f': {_code(each.detail)}' if each.detail else ''}</li>"
        for each in seen.verdict.conditions
    )
    return (
        f"<section><h2>Verdict: {seen.word}, partial score {seen.verdict.partial_score:.3f}</h2>"
        f'<ul class="conditions">{items}</ul></section>'
    )


def _difference(difference: Difference) -> str:
    if not difference.lines:
        shown = f"<p>{_text(difference.what)}: {SAME}</p>"
    else:
        lines = "".join(
            f'<span class="{_SIGNS[line.sign]}">{line.sign}&#160;{_text(line.text)}</span>' for line in difference.lines
        )
        shown = f'<p class="soft">{_text(difference.what)}; - expected, + produced</p><pre class="diff">{lines}</pre>'
    return f"<section><h2>Expected and produced</h2>{shown}</section>"


def _usage(events: Sequence[dict[str, Any]]) -> str:
    end = events[-1]
    sums = (
        f"{end['steps']} steps, {end['http_attempts']} requests; tokens in {_known(end['tokens_in'])} (cached "
        f"{_known(end['tokens_cached'])}), out {_known(end['tokens_out'])} (reasoning "
        f"{_known(end['tokens_reasoning'])}); {_known(end['cost_usd'])} USD"
    )
    usages = {event["step"]: event["usage"] or {} for event in events if event["event"] == "answer"}
    rows = []
    for event in events:
        if event["event"] != "attempt":
            continue
        answered = event["error"] is None
        usage = usages.get(event["step"], {}) if answered else {}
        said = "answered" if answered else " ".join([event["error"], str(event.get("detail", ""))])[:200]
        wait, cost = event.get("wait_s"), event["cost_usd"]
        rows.append(
            (
                f"{event['step']}.{event['attempt']}",
                said,
                f"{event['latency_s']:.2f}",
                "" if wait is None else f"{wait:.1f}",
                usage.get("input_total", ""),
                usage.get("output_total", ""),
                "unknown" if cost is None else f"{cost:.6f}",
            )
        )
    headings = ("step.attempt", "came of it", "s", "wait s", "in", "out", "USD")
    table = rows_table(headings, rows, numbers=(2, 3, 4, 5, 6)) if rows else ""
    return f"<section><h2>Usage and attempts</h2><p>{_text(sums)}</p>{table}</section>"


def _known(value: object) -> str:
    return "unknown" if value is None else f"{value:.6f}" if isinstance(value, float) else str(value)


def _opening(event: dict[str, Any]) -> str:
    items = "".join(
        f"<li><code>{_text(tool['name'])}({_text(', '.join(tool['parameters']['properties']))})</code>: "
        f"{_text(bounded(tool['description']))}</li>"
        for tool in event["tools"]
    )
    return f'<section class="task"><h2>Tools</h2><ul>{items}</ul></section>'


def _conversation(event: dict[str, Any]) -> str:
    here = event["conversation_position"]
    items = "".join(
        f"<li>{_text(task['instance_id'])}, episode {_text(task['episode_id'])}"
        + (" (this one)</li>" if n == here else "</li>")
        for n, task in enumerate(event["tasks"], start=1)
    )
    title = _text(f"Task {here} of conversation {event['conversation_id']}")
    return f'<section class="task"><h2>{title}</h2><ol>{items}</ol></section>'


def _request(event: dict[str, Any]) -> str:
    parts = []
    for message in event["added"]:
        if message["role"] in ("system", "user"):
            parts.append(
                f'<section class="task"><h2>{message["role"].capitalize()}</h2>{_block(message["text"])}</section>'
            )
        elif event["step"] == 1:
            parts.append(f'<section class="task"><h2>Before the task</h2>{_before(message)}</section>')
    return "\n".join(parts)


def _before(message: dict[str, Any]) -> str:
    """A worked example's calls and results, or the last ones of the task before."""
    if message["role"] == "assistant":
        text = _block(message["text"]) if message["text"] else ""
        return text + "".join(_call(call) for call in message["calls"])
    return "".join(f"<h3>result</h3>{_block(answer['content'])}" for answer in message["answers"])


def _call(call: dict[str, Any]) -> str:
    problem = f'<p><span class="badge error">problem</span> {_code(call["problem"])}</p>' if call["problem"] else ""
    return f"<h3>call {_code(call['name'])}</h3>{_block(call['raw_arguments'])}{problem}"


def _answer(event: dict[str, Any]) -> str:
    usage = event["usage"]
    tokens = f"{usage['input_total']} in, {usage['output_total']} out" if usage else "usage unknown"
    text = _block(event["text"]) if event["text"] else ""
    raw = canonical_json(event["raw"])
    came = f"<details><summary>the answer as it came, {len(raw)} characters</summary>{_block(raw)}</details>"
    came = "" if event["raw"] is None else came
    said = f'<span class="soft">({_text(event["stop"])}; {tokens})</span>'
    return (
        f'<section class="step"><h2>Step {event["step"]} {said}</h2>'
        f"{text}{''.join(_call(call) for call in event['calls'])}"
        f"{came}</section>"
    )


def _attempt(event: dict[str, Any]) -> str:
    if event["error"] is None:
        return ""
    wait = "no further attempt" if event["wait_s"] is None else f"next attempt after {event['wait_s']:.1f} s"
    return (
        f'<section><p><span class="badge error">attempt {event["attempt"]} failed</span> {_text(event["error"])}: '
        f"{_code(event['detail'])} ({wait})</p></section>"
    )


def _result(event: dict[str, Any]) -> str:
    label, kind = ("error", "fault") if event["is_error"] else ("result", "text")
    size = f" <span>({len(event['content'])} characters)</span>" if len(event["content"]) > SHOWN_CHARS else ""
    return f"<section><h3>{label} of {_code(event['name'])}{size}</h3>{_block(event['content'], kind)}</section>"


def _ending(end: dict[str, Any]) -> str:
    detail = f"<p>{_code(end['detail'])}</p>" if end["detail"] else ""
    kind = f" ({_text(end['kind'])})" if end["kind"] else ""
    state = canonical_json(end["final_state"]["data"])
    return (
        f"<section><h2>End: {_text(end['outcome'])}{kind}</h2>{detail}<details><summary>final state, {len(state)} "
        f"characters</summary>{_block(state)}</details></section>"
    )


_EVENTS = {
    "conversation": _conversation,
    "opening": _opening,
    "request": _request,
    "attempt": _attempt,
    "answer": _answer,
    "result": _result,
}
