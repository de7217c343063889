"""The example tasks of tasks_env/README.md, rendered. `python -m tests.tasks_env.readme_tasks` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import tasks_env
from tasks_env import Session, ToolResult, family, generate_instance, play, render
from tasks_env.canonical import canonical_json

README = Path(tasks_env.__file__).parent / "README.md"
SEEDS = {"tabular": 1, "filesys": 1, "query": 1}
"""Families with an example, and the seed of the smallest task that is shown."""
SHOWN_LINES = 12
_SECTION = re.compile(r"(<!-- example: ([a-z]+) -->\n).*?(<!-- end of example -->)", re.DOTALL)


def example(name: str) -> str:
    """One whole task as an agent meets it: prompt, tools, the reference's calls with their results, the verdict."""
    chosen = family(name)
    instance = generate_instance(name, chosen.demonstration, SEEDS[name])
    session = Session(instance, render(instance))
    lines = ["prompt", *_indented(session.variant.prompt), "", "tools"]
    for spec in session.variant.tools:
        lines.append(f"  {spec.name}({', '.join(spec.parameters['properties'])}): {_first_sentence(spec.description)}")
    plan = chosen.reference(instance)
    for call, result in zip(plan, play(session, plan), strict=True):
        lines += ["", f"call {call.name} {canonical_json(call.arguments)}", *_indented(_shortened(result))]
    verdict = session.verdict()
    lines += ["", f"verdict: {'passed' if verdict.passed else 'failed'}, partial score {verdict.partial_score}"]
    lines += [f"  {'ok ' if each.holds else 'not'} {each.name}" for each in verdict.conditions]
    fence = "~~~~"
    return "\n".join([f"{fence}text", *(line.rstrip() for line in lines), fence, ""])


def rendered(text: str) -> str:
    """The README with every example made anew."""
    return _SECTION.sub(lambda match: f"{match[1]}{example(match[2])}{match[3]}", text)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.]) ", " ".join(text.split()))[0]


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _shortened(result: ToolResult) -> str:
    lines = result.content.splitlines()
    if len(lines) > SHOWN_LINES:
        lines = [*lines[:SHOWN_LINES], f"… {len(lines) - SHOWN_LINES} more lines"]
    return "\n".join(lines)


if __name__ == "__main__":
    README.write_text(rendered(README.read_text(encoding="utf-8")), encoding="utf-8")
