"""Every figure of the report as inline SVG, by name: those of the analysis and one for each axis."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from flows.report.blocks import Block, Picture
from flows.report.forest import axis_forest
from flows.report.inline import inline_svg
from flows.report.style import table_of

DESCRIPTIONS = {
    "deltas_forest": "Changes of pass rate by axis and model, with intervals and noise floor",
    "paraphrase_strip": "Pass rate under each paraphrase, and its range beside the range of noise",
    "rank_slopes": "Pass rates of every model across the levels of each axis",
    "variance_components": "Variance components as standard deviations with intervals",
    "power_curves": "Power against number of instances for several differences",
}
"""Figure of the analysis -> what a screen reader says of it."""

Pictures = Mapping[str, str]


def inline_pictures(
    figures: Mapping[str, tuple[Figure, pd.DataFrame]], tables: Mapping[str, pd.DataFrame]
) -> dict[str, str]:
    """Name -> SVG. A figure without data is left out, and so are axes without results.

    Args:
        figures: The figures of the analysis with what they plot (`flows.report.figures`).
        tables: The tables of the analysis.
    """
    shown = {name: (figure, DESCRIPTIONS[name]) for name, (figure, rows) in figures.items() if len(rows)}
    deltas = table_of(tables, "deltas")
    for axis in sorted(set(deltas["axis"])) if len(deltas) else []:
        figure, rows = axis_forest(tables, axis)
        if len(rows):
            shown[axis_picture(axis)] = (figure, f"Change of pass rate by level and model: {axis}")
    return {name: inline_svg(figure, name, description) for name, (figure, description) in shown.items()}


def axis_picture(axis: str) -> str:
    """Name of an axis's figure, and of its section: letters, digits and dashes."""
    safe = "".join(character if character.isalnum() and character.isascii() else "-" for character in axis)
    return f"axis-{safe}"


def picture(pictures: Pictures, name: str, caption: str) -> list[Block]:
    """The figure with its caption, if there is one."""
    return [Picture(pictures[name], caption)] if name in pictures else []
