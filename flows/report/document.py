"""The report: one HTML file that needs nothing else, the same bytes for the same analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from flows.report.about import Study, about, gap_warnings, has_value, overall_of, words
from flows.report.appendix import dictionary, methods
from flows.report.axes import all_axes
from flows.report.blocks import Section
from flows.report.calibration import Calibration
from flows.report.floor import baseline_scores, noise_floor
from flows.report.judged import Text, judged, preregistration_warnings
from flows.report.pictures import Pictures
from flows.report.precision import power, variance
from flows.report.ranking import confirmed_flips, ranking
from flows.report.repeating import costs, repeating
from flows.report.style import axis_label, table_of
from flows.report.wording import count, delta_interval, known, percent, points, rate_interval, size, span
from flows.stats.cells import MEAN_LEVEL
from flows.stats.planning import MODELS

TEMPLATE, STYLE = "report.html.jinja", "report.css"


def render_report(
    study: Study,
    tables: Mapping[str, pd.DataFrame],
    texts: Sequence[Text],
    columns: Mapping[str, Mapping[str, str]],
    pictures: Pictures,
    calibration: Calibration,
) -> str:
    """The whole report as HTML.

    Args:
        study: What was run.
        tables: Every table of the analysis.
        texts: The texts of the hypotheses file, in the order they came into force.
        columns: Table -> column -> meaning.
        pictures: The figures (`flows.report.pictures`).
        calibration: Measured properties of the methods.
    """
    sections: list[Section] = [
        words(),
        about(study, tables),
        noise_floor(tables),
        baseline_scores(tables),
        *all_axes(tables, pictures),
        ranking(tables, pictures),
        repeating(tables),
        variance(tables, pictures),
        power(tables, pictures),
        costs(tables),
        judged(tables, texts),
        methods(calibration),
        dictionary(columns, tables),
    ]
    folder = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(folder, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["figure"] = Markup
    environment.filters["code"] = code
    style = Markup((folder / STYLE).read_text(encoding="utf-8"))
    warnings = [*preregistration_warnings(tables), *gap_warnings(tables), *_infra_warnings(tables)]
    return environment.get_template(TEMPLATE).render(
        study=study, sections=sections, warnings=warnings, summary=summary(study, tables), style=style
    )


def code(words: str) -> Markup:
    """The words, escaped, what stands between backticks set as code; a lone backtick stays one."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def _infra_warnings(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    rates = table_of(tables, "infra_errors")
    own = rates if rates.empty else rates[rates["scope"] == "model"]
    lost, total = (int(own[name].sum()) if len(own) else 0 for name in ("infra_errors", "episodes"))
    if not lost:
        return []
    return [
        f"{count(lost)} of {count(total)} episodes ({percent(lost / total)}) ended in an infrastructure error "
        "and belong to no rate."
    ]


def summary(study: Study, tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """The findings in a few lines: heading and sentence."""
    models = study.models
    lines = [
        (
            "run",
            f"{count(models['episodes'].sum())} episodes of {count(len(models))} "
            f"{'model' if len(models) == 1 else 'models'}"
            + (f", {span(models['first'].min(), models['last'].max())}." if models["first"].notna().any() else "."),
        )
    ]
    floors = has_value(overall_of(table_of(tables, "negative_controls")), "noise_floor")
    if len(floors):
        each = [
            f"±{size(row['noise_floor'])} points ({axis_label(row['axis'], 'mean')})"
            for row in floors.to_dict("records")
        ]
        lines.append(
            (
                "noise floor",
                f"Where nothing differs, 95% of the changes of the mean over models stay within {', '.join(each)}.",
            )
        )
    rates = table_of(tables, "pass_rates")
    if len(rates):
        base = has_value(rates[(rates["axis"] == "none") & (rates["scope"] == "model")], "pass_rate")
        each = [
            f"{row['model']} {percent(row['pass_rate'])} ({rate_interval(row['ci_low'], row['ci_high'])})"
            for row in base.sort_values(["pass_rate", "model"], ascending=[False, True]).to_dict("records")
        ]
        if each:
            lines.append(("pass rate at the baseline, 95% interval", "; ".join(each) + "."))
    lines += _changes(tables)
    flips = confirmed_flips(tables)
    if flips:
        lines.append(
            (
                "ranking",
                f"{count(len(flips))} confirmed {'flip' if len(flips) == 1 else 'flips'} of order. {' '.join(flips)}",
            )
        )
    elif len(table_of(tables, "pair_gaps")):
        lines.append(("ranking", "No flip of order between two models is confirmed."))
    detectable = table_of(tables, "detectable")
    if len(detectable):
        own = detectable[(detectable["comparison"] == MODELS) & detectable["as_run"] & (detectable["power"] == 0.8)]
        own = has_value(own, "detectable")
        if len(own):
            least, most = float(own["detectable"].min()), float(own["detectable"].max())
            spread = size(least) if size(least) == size(most) else f"{size(least)} to {size(most)}"
            lines.append(
                (
                    "power",
                    f"Two models are told apart, with 80% power and on these exact prompts, from {spread} points on.",
                )
            )
    verdicts = table_of(tables, "verdicts")
    if len(verdicts):
        labels = verdicts["final_label"].value_counts()
        each = [f"{count(labels.get(label, 0))} {label}" for label in ("supported", "refuted", "inconclusive")]
        lines.append(
            (
                "hypotheses",
                f"Of {count(len(verdicts))} registered: {', '.join(each)} (after correction for their number).",
            )
        )
    return lines


def _changes(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """Which changes moved the mean over models beyond doubt, of those that could."""
    deltas, controls = table_of(tables, "deltas"), table_of(tables, "negative_controls")
    if deltas.empty:
        return []
    passive = set(controls["axis"]) if len(controls) else set()
    own = deltas[(deltas["scope"] == "overall") & ~deltas["axis"].isin(passive)]
    own = has_value(own, "ci_low")
    if own.empty:
        return []
    levels = own[own["level"] != MEAN_LEVEL].groupby("axis")["level"].nunique()
    own = own[(own["level"] != MEAN_LEVEL) | own["axis"].isin(levels[levels > 1].index)]
    moved = own[(own["ci_low"] > 0) | (own["ci_high"] < 0)]
    each = [
        f"{axis_label(row['axis'], row['level'])}{' (mean of levels)' if row['level'] == MEAN_LEVEL else ''} "
        f"{points(row['delta'])} ({delta_interval(row['ci_low'], row['ci_high'])})"
        for row in moved.to_dict("records")
        if known(row["delta"])
    ]
    text = "; ".join(each) + "." if each else "No interval of the mean over models excludes zero."
    return [("changes that moved the score, points, 95% interval", text)]
