"""Every figure of the report, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from matplotlib.figure import Figure

from flows.report.components import components_figure
from flows.report.forest import forest
from flows.report.power_curves import power_curves
from flows.report.slopes import slopes
from flows.report.strip import strip
from flows.report.style import render_png, render_svg

Tables = Mapping[str, pd.DataFrame]

FIGURES: dict[str, Callable[[Tables], tuple[Figure, pd.DataFrame]]] = {
    "deltas_forest": forest,
    "paraphrase_strip": strip,
    "rank_slopes": slopes,
    "variance_components": components_figure,
    "power_curves": power_curves,
}
"""Figure name -> maker: from the tables of an analysis to the figure and the data it plots."""

__all__ = ["FIGURES", "draw_figures", "render_png", "render_svg"]


def draw_figures(tables: Tables) -> dict[str, tuple[Figure, pd.DataFrame]]:
    """Every figure with the data it plots; a table that is missing or empty gives a figure that says so."""
    return {name: make(tables) for name, make in FIGURES.items()}
