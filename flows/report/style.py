"""One look for every figure, and bytes that depend on nothing but what is drawn.

Colours are those of Okabe and Ito, told apart by readers with any colour vision and, with markers and line styles
beside them, in grey. Figures are made without pyplot, so there is no global state and no display.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

WIDTH = 3.35
"""Width of every figure in inches: 85 mm, a column of a two-column page, where type is 6.5 to 7.5 points."""
TITLE_SIZE, SMALL = 7.5, 6.5
"""Points: of titles, and of the smallest type."""
_TITLE_CHARACTERS = 54
"""What of a title fits a line."""

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
    "figure.dpi": 400,
    "savefig.dpi": 400,
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": TITLE_SIZE,
    "axes.titlelocation": "left",
    "axes.titlepad": 3,
    "axes.labelsize": 7,
    "axes.labelpad": 2,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.labelspacing": 0.35,
    "legend.handletextpad": 0.6,
    "legend.borderaxespad": 0.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.4,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
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
    """The figure with its layout made and frozen, so that drawing it again moves nothing. Only while `styled`."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)  # "none" would leave one that does nothing, and have everything drawn twice for it
    for axes in figure.axes:
        # The layout's solver depends on addresses in the last digits, and an SVG names its clip paths by all digits.
        left, bottom, width, height = (round(float(value), 6) for value in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))
    return figure


def notice(title: str, message: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    lines = textwrap.wrap(message, _TITLE_CHARACTERS + 4)
    figure = new_figure(0.45 + 0.12 * len(lines))
    axes = figure.subplots()
    axes.set_axis_off()
    headline(figure, title)
    axes.text(0.0, 0.5, "\n".join(lines), transform=axes.transAxes, va="center", color=GREY)
    return finished(figure)


def headline(figure: Figure, text: str) -> None:
    """A title from the figure's left edge on, over as many lines as it takes."""
    figure.suptitle(textwrap.fill(text, _TITLE_CHARACTERS), x=0.01, ha="left", fontsize=TITLE_SIZE)


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


def crossed(terms: str) -> str:
    """Sources of variance as a reader says them: the tables join the factors of an interaction by x."""
    return terms.replace(" x ", " × ")


def zero_line(axes: Axes) -> None:
    """A vertical line at no difference."""
    axes.axvline(0, color=BLACK, linewidth=0.6, zorder=1)
