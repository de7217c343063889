"""What an agent reads: every wording whole and different, from the spec alone, under whatever names are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks_env.canonical import canonical_json
from tasks_env.contract.declarations import unknown_mentions
from tasks_env.contract.subject import Subject
from tasks_env.perturbations.tool_names import rename
from tasks_env.session import Session, play, render
from tasks_env.types import Instance, Presentation

LEFT_OVER = re.compile(r"\{(?:(?:tool|arg):|[A-Za-z_][A-Za-z0-9_.]*\})")
"""A placeholder that nothing resolved: of a name, or of a format string."""


def wordings(subject: Subject) -> Iterator[str]:
    """Every phrasing renders without leftovers, differs from the others, and is made from `spec` alone."""
    family = subject.family
    tools = [spec.name for spec in family.tools()]
    arguments = {name for spec in family.tools() for name in spec.parameters["properties"]}
    for instance in subject.instances:
        bare = instance.model_copy(update={"world": {}, "truth": {}})
        texts: dict[str, str] = {}
        for phrasing in family.phrasings:
            text = family.prompt(instance, phrasing)
            where = f"phrasing {phrasing!r}"
            if not text.strip():
                yield f"{where} is empty"
            yield from (f"{where}: {line}" for line in unknown_mentions(text, tools, arguments))
            left = LEFT_OVER.search(render(instance, Presentation(phrasing=phrasing)).prompt)
            if left:
                yield f"{where} leaves the placeholder {left[0]}"
            same = next((name for name, other in texts.items() if other == text), None)
            if same is not None:
                yield f"{where} says word for word what {same!r} says"
            texts[phrasing] = text
            try:
                if family.prompt(bare, phrasing) != text:
                    yield f"{where} changes when world and truth are taken away"
            except Exception as error:  # noqa: BLE001 - a wording that misses the world or the truth breaks somehow
                yield f"{where} cannot do without world and truth: {type(error).__name__}: {error}"


def renaming(subject: Subject) -> Iterator[str]:
    """Under other names no text shows an old one: not the prompt, the tools, a result or an error."""
    family = subject.family
    for level in ("opaque", "synonyms"):
        naming = rename(family.tools(), level, subject.seed)
        shown = Presentation(naming=naming)
        for instance in subject.instances:
            data = canonical_json([instance.spec, instance.world])
            for where, text in _texts(subject, instance, shown):
                for old, new in {**naming.tools, **naming.arguments}.items():
                    if old != new and _mentions(text, old) and not _mentions(data, old):
                        yield f"{level}: {where} shows {old!r}, which is now {new!r}"


def _texts(subject: Subject, instance: Instance, shown: Presentation) -> Iterator[tuple[str, str]]:
    """What an agent reads in an episode, errors included."""
    for phrasing in subject.family.phrasings:
        variant = render(instance, shown.model_copy(update={"phrasing": phrasing}))
        yield f"the prompt in phrasing {phrasing!r}", variant.prompt
    variant = render(instance, shown)
    for spec in variant.tools:
        yield f"the description of tool {spec.name!r}", spec.model_dump_json()
    session = Session(instance, variant)
    for spec in variant.tools:
        yield f"an error of tool {spec.name!r}", session.call(spec.name, {"no such argument": 1}).content
        required = spec.parameters.get("required", [])
        if required:
            yield f"an error of tool {spec.name!r}", session.call(spec.name, {}).content
    for result in play(session, subject.family.reference(instance)):
        yield "a tool's result", result.content
    for result in play(session, subject.family.reference(instance)):
        yield "a tool's answer after the end", result.content


def _mentions(text: str, name: str) -> bool:
    """Whether `text` speaks of `name`: a name of several words anywhere, one that may be a plain word only as code."""
    if "_" in name:
        return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None
    return f"`{name}`" in text or re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}\(", text) is not None
