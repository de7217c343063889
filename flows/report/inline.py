"""A figure as SVG inside a page: no outside reference, ids of its own, neutral colours from the page's theme."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from flows.report.style import BLACK, BLUE, GREY, HATCH, PALE, render_svg

THEMED = {
    BLACK: "ink",
    GREY: "mute",
    "#555555": "mute-strong",
    PALE: "pale",
    "#e6e6e6": "line",
    "#bbbbbb": "line-strong",
    HATCH: "line-strong",
    "#ffffff": "paper",
    BLUE: "blue",
}
"""Colour of a figure -> variable of the page that takes its place, so that dark pages have dark figures."""

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_SIZE = re.compile(r'<svg ([^>]*?)width="[\d.]+pt" height="[\d.]+pt"')
_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'(xlink:href="|url\()#([^")]+)')
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_PATH = re.compile(r'\bd="[^"]*"')
_DECIMALS = re.compile(r"(\d+\.\d{2})\d+")


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """The figure as an SVG element.

    Args:
        name: Distinguishes its ids from those of other figures of the page: letters, digits, `-` and `_`.
        description: What a screen reader says; escaped here.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ValueError(f"a figure's name is letters, digits, - and _, not {name!r}")
    svg = render_svg(figure).decode("utf-8")
    svg = svg[svg.index("<svg") :]
    for pattern in (_COMMENT, _METADATA, _STYLE):
        svg = pattern.sub("", svg)
    svg = _COLOUR.sub(_themed, svg)
    svg = _ID.sub(lambda match: f'id="{name}-{match[1]}"', svg)
    svg = _REFERENCE.sub(lambda match: f"{match[1]}#{name}-{match[2]}", svg)
    svg = _PATH.sub(lambda match: _DECIMALS.sub(r"\1", match[0]), svg)
    label = _escaped(description)
    svg, replaced = _SIZE.subn(rf'<svg \1role="img" aria-label="{label}"', svg, count=1)
    if not replaced:
        raise ValueError("the figure's SVG does not begin as expected")
    return "\n".join(line for line in svg.splitlines() if line.strip())


def _themed(match: re.Match[str]) -> str:
    variable = _VARIABLES.get(match[0])
    return f"var(--{variable})" if variable else match[0]


_VARIABLES = {colour.lower(): variable for colour, variable in THEMED.items()}


def _escaped(description: str) -> str:
    """As an attribute's value, and for a replacement in which a backslash would be read."""
    plain = description.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return plain.replace("\\", "&#92;")
