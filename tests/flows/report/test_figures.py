"""Figures: the data they plot, deterministic bytes, no cut or overlapping text, and partial studies."""

from __future__ import annotations

import io
import itertools
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from flows.report.components import component_rows
from flows.report.figures import FIGURES, draw_figures, render_png, render_svg
from flows.report.forest import forest_rows
from flows.report.glossary import FIGURE_COLUMNS
from flows.report.power_curves import EXACT, power_rows
from flows.report.slopes import slope_rows
from flows.report.strip import strip_rows
from flows.report.style import MODEL_COLOURS, MODEL_LINES, MODEL_MARKERS, model_looks, shorten
from flows.stats.hypotheses import Registration, parse_hypotheses
from flows.stats.inference_tables import inference_tables
from flows.stats.tables import core_tables
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results
from tests.flows.stats.test_hypotheses import REGISTERED

REGISTRATION = Registration(parse_hypotheses(REGISTERED.read_text("utf-8")))
PLAN = Plan(
    models=("frontier-model-2026-01-01-preview", "small", "tiny"),
    instances=12,
    runs=2,
    skill={"frontier-model-2026-01-01-preview": 0.3, "tiny": -0.2},
    effects={("frontier-model-2026-01-01-preview", "tool_names", "opaque"): -0.6},
    spread=Spread(instance=0.1, model_instance=0.05),
)


def analysed(frame: pd.DataFrame, resamples: int = 100) -> dict[str, pd.DataFrame]:
    return {
        **core_tables(frame, seed=1, resamples=resamples),
        **inference_tables(frame, [REGISTRATION], seed=1, resamples=resamples),
    }


FRAME = synthetic_results(PLAN, 1)


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return analysed(FRAME)


@pytest.fixture(scope="module")
def drawn(tables: dict[str, pd.DataFrame]) -> dict[str, tuple[Figure, pd.DataFrame]]:
    return draw_figures(tables)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_data_and_renders_to_both_formats(
    name: str, drawn: dict[str, tuple[Figure, pd.DataFrame]]
) -> None:
    figure, data = drawn[name]
    assert len(data) > 0
    assert list(data.columns) == list(FIGURE_COLUMNS[name])
    buffer = io.BytesIO()
    data.to_parquet(buffer)
    assert len(pd.read_parquet(buffer)) == len(data)
    image = imread(io.BytesIO(render_png(figure)), format="png")
    assert image.shape[1] == 1340
    assert float(image[..., :3].std()) > 0.02
    assert b"<svg" in render_svg(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_drawing_and_rendering_again_give_the_same_bytes(
    name: str, tables: dict[str, pd.DataFrame], drawn: dict[str, tuple[Figure, pd.DataFrame]]
) -> None:
    figure, _ = drawn[name]
    again, _ = FIGURES[name](tables)
    assert render_svg(figure) == render_svg(figure) == render_svg(again)
    assert render_png(figure) == render_png(again)


@pytest.mark.parametrize("name", FIGURES)
def test_svg_carries_no_date_and_no_version(name: str, drawn: dict[str, tuple[Figure, pd.DataFrame]]) -> None:
    svg = render_svg(drawn[name][0])
    assert b"dc:date" not in svg
    assert mpl.__version__.encode() not in svg


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_cut_off_or_printed_over_other_text(
    name: str, drawn: dict[str, tuple[Figure, pd.DataFrame]], monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, _ = drawn[name]
    last_drawn: dict[int, tuple[str, Bbox]] = {}
    draw = Text.draw

    def record(text: Text, renderer: RendererBase, *arguments: object, **keywords: object) -> None:
        if text.get_visible() and text.get_text().strip():
            last_drawn[id(text)] = (text.get_text(), text.get_window_extent(renderer))
        draw(text, renderer, *arguments, **keywords)

    monkeypatch.setattr(Text, "draw", record)
    render_png(figure)
    boxes = list(last_drawn.values())
    assert len(boxes) > 5
    width, height = figure.bbox.width, figure.bbox.height
    for label, box in boxes:
        assert box.x0 >= -1, label
        assert box.y0 >= -1, label
        assert box.x1 <= width + 1, label
        assert box.y1 <= height + 1, label
    for (first, a), (second, b) in itertools.combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 2 or down < 2, (first, second)


@pytest.mark.parametrize("name", FIGURES)
def test_type_can_be_read_in_a_column_of_85_millimetres(
    name: str, drawn: dict[str, tuple[Figure, pd.DataFrame]]
) -> None:
    figure, _ = drawn[name]
    column = 85 / 25.4
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text().strip()]
    assert min(sizes) * column / figure.get_figwidth() >= 6.4


TINY = synthetic_results(
    replace(PLAN, models=("small", "tiny"), strata=(("query", "hard"),), instances=3, effects={}), 1
)
PARTIAL = {
    "no row": TINY.iloc[:0],
    "one row": TINY.iloc[:1],
    "baseline alone": TINY[TINY["axis"] == "none"],
    "no baseline": TINY[TINY["axis"] != "none"],
    "one model": TINY[TINY["model"] == "small"],
    "no paraphrase": TINY[TINY["axis"] != "paraphrase"],
    "one axis": TINY[TINY["axis"].isin(["none", "temperature"])],
    "one instance": TINY[TINY["instance_id"].str.endswith("000000")],
    "all pass": TINY.assign(passed=pd.array([True] * len(TINY), dtype="boolean")),
    "all infrastructure errors": TINY.assign(
        passed=pd.array([pd.NA] * len(TINY), dtype="boolean"), infra_error=True, outcome="infra_error"
    ),
}


QUICK = ("no row", "baseline alone", "one model", "no paraphrase")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PARTIAL])
def test_a_partial_study_draws_every_figure(name: str) -> None:
    found = draw_figures(analysed(PARTIAL[name], resamples=20))
    assert list(found) == list(FIGURES)
    for _, data in found.values():
        data.to_parquet(io.BytesIO())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for figure, _ in found.values():
            assert len(render_svg(figure)) > 1000


def test_missing_tables_give_figures_that_say_so() -> None:
    for figure, data in draw_figures({}).values():
        assert len(data) == 0
        words = " ".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))
        assert "No " in words or "Needs " in words


def test_forest_shows_each_axis_once_with_controls_last(tables: dict[str, pd.DataFrame]) -> None:
    rows = forest_rows(tables)
    groups = list(dict.fromkeys(rows["group"]))
    assert groups[:3] == ["distractors: 2", "distractors: 5", "paraphrase"]
    assert groups[-2:] == ["order: shuffled", "new instances: s1"]
    assert list(rows["control"]) == sorted(rows["control"])
    assert set(rows["smallest_effect"]) == {0.03}
    deltas = tables["deltas"].set_index(["scope", "axis", "level"])
    own = rows[(rows["model"] == "all") & (rows["axis"] == "paraphrase")].iloc[0]
    assert own["delta"] == deltas.loc[("overall", "paraphrase", "mean"), "delta"]
    assert rows["noise_floor"].notna().all()


def test_strip_never_prints_a_range_without_its_null(tables: dict[str, pd.DataFrame]) -> None:
    rows = strip_rows(tables)
    assert set(rows["level"]) == {"baseline", "p1", "p2", "p3", "p4", "p5"}
    known = rows[rows["range"].notna()]
    assert len(known) == len(rows)
    assert known[["null_mean", "null_q95", "p"]].notna().all(axis=None)


def test_slopes_mark_the_confirmed_flip(tables: dict[str, pd.DataFrame]) -> None:
    rows = slope_rows(tables)
    flipped = rows[rows["flips"].notna()]
    confirmed = tables["pair_gaps"].query("confirmed_flip and level != 'mean'")
    assert len(confirmed) > 0
    expected = {(row.axis, row.level, m) for row in confirmed.itertuples() for m in (row.model_a, row.model_b)}
    assert {(row.axis, row.level, row.model) for row in flipped.itertuples()} == expected
    assert ("tool_names", "opaque", "frontier-model-2026-01-01-preview") in expected
    assert rows.loc[rows["level"] == "baseline", "concordance"].isna().all()
    assert rows.loc[rows["level"] != "baseline", "concordance"].notna().all()


def test_components_are_clipped_in_the_plot_alone(tables: dict[str, pd.DataFrame]) -> None:
    rows = component_rows(tables)
    assert (rows["sd_lo"].dropna() >= 0).all()
    assert rows["variance"].min() < 0
    assert np.allclose(rows["sd"].astype(float) ** 2, rows["variance"].astype(float).clip(lower=0))


def test_power_curves_rise_with_instances_and_stop_at_their_ceiling(tables: dict[str, pd.DataFrame]) -> None:
    rows = power_rows(tables)
    assert set(rows["delta"]) == {0.03, 0.05, 0.10}
    for (curve, _), own in rows.groupby(["curve", "delta"]):
        assert own["power"].between(0, 1).all()
        if curve == EXACT:
            assert own["power"].is_monotonic_increasing
            assert own["ceiling"].iloc[0] == pytest.approx(1.0)


def test_models_differ_by_colour_marker_and_line() -> None:
    looks = model_looks(["a", "b", "c", "d", "e"])
    for key in ("color", "marker", "linestyle"):
        assert len({str(look[key]) for look in looks.values()}) == 5
    assert len(MODEL_COLOURS) == len(MODEL_MARKERS) == 6
    assert len(MODEL_LINES) == 5
    lightness = sorted(_lightness(colour) for colour in MODEL_COLOURS[:3])
    assert min(b - a for a, b in itertools.pairwise(lightness)) > 0.04


def _lightness(colour: str) -> float:
    red, green, blue = mpl.colors.to_rgb(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_long_names_keep_both_ends() -> None:
    assert shorten("short") == "short"
    assert shorten("frontier-model-2026-01-01-preview", 12) == "fronti…eview"
    assert len(shorten("x" * 99)) == 26


def test_no_layout_depends_on_the_last_digits_of_the_solver(drawn: dict[str, tuple[Figure, pd.DataFrame]]) -> None:
    """Two drawings of one figure differed by 1e-16 in an axes' place, and so in the names of their clip paths."""
    places = [value for figure, _ in drawn.values() for axes in figure.axes for value in axes.get_position().extents]
    assert len(places) > 20
    assert max(abs(1e6 * value - round(1e6 * value)) for value in places) < 1e-6
