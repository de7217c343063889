"""One look for every figure, and bytes that depend on nothing but what is drawn.

Colours are those of Okabe and Ito, told apart by readers with any colour vision and, with markers and line styles
beside them, in grey. Figures are made without pyplot, so there is no global state and no display.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH = 6.6
"""Width of every figure in inches, that of a column of text: type is 8 to 9.5 points there."""

BLACK, ORANGE, BLUE, GREEN, VERMILLION, PURPLE, SKY = (
    "#000000",
    "#E69F00",
    "#0072B2",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
)
MODEL_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, "#555555")
"""Vermillion is left out: it marks what stands out."""
MODEL_MARKERS = ("o", "^", "D", "v", "P", "X")
MODEL_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
GREY, PALE, HATCH = "#767676", "#E4E4E4", "#B0B0B0"

POINTS = 100
"""From fractions to percentage points."""

_RC: dict[Any, Any] = {
    "backend": "agg",
    "figure.dpi": 200,
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.3,
    "hatch.linewidth": 0.5,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "svg.hashsalt": "agent-bench-stability",
    "svg.fonttype": "path",
    "path.simplify": True,
    "text.usetex": False,
    "text.parse_math": False,
    "axes.formatter.use_locale": False,
    "timezone": "UTC",
}


@contextmanager
def styled() -> Iterator[None]:
    """The style for everything drawn inside, whatever the user's own settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in _RC.items():
            mpl.rcParams[name] = value
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure with an Agg canvas; sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def finished(figure: Figure) -> Figure:
    """The figure with its layout made and frozen, so that drawing it again moves nothing."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        # The layout's solver depends on addresses in the last digits, and an SVG names its clip paths by all digits.
        left, bottom, width, height = (round(float(value), 6) for value in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))
    return figure


def notice(title: str, message: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = new_figure(1.0)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_title(title)
    axes.text(0.0, 0.6, message, transform=axes.transAxes, va="center", color=GREY, wrap=True)
    return finished(figure)


def render_png(figure: Figure) -> bytes:
    """The figure as PNG, the same bytes for the same drawing."""
    with styled():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


def render_svg(figure: Figure) -> bytes:
    """The figure as SVG with text as paths, no date, and ids from a fixed salt."""
    with styled():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return buffer.getvalue()


def model_looks(models: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line style per model, in the order given."""
    return {
        model: {
            "color": MODEL_COLOURS[k % len(MODEL_COLOURS)],
            "marker": MODEL_MARKERS[k % len(MODEL_MARKERS)],
            "linestyle": MODEL_LINES[k % len(MODEL_LINES)],
        }
        for k, model in enumerate(models)
    }


def table_of(tables: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """A table, or an empty one if the analysis did not make it."""
    return tables.get(name, pd.DataFrame())


def shorten(text: str, length: int = 26) -> str:
    """The text, its middle cut out if it is longer than `length`."""
    if len(text) <= length:
        return text
    keep = length - 1
    return f"{text[: keep - keep // 2]}…{text[len(text) - keep // 2 :]}"


def axis_label(axis: str, level: str) -> str:
    """An axis and level as a reader says them."""
    words = {"tool_names": "tool names", "none": "baseline", "resample": "new instances"}
    axis_words = words.get(axis, axis.replace("_", " "))
    if axis == "none":
        return axis_words
    return axis_words if level == "mean" else f"{axis_words}: {level.replace('_', ' ')}"


def zero_line(axes: Axes) -> None:
    """A vertical line at no difference."""
    axes.axvline(0, color=BLACK, linewidth=0.8, zorder=1)
