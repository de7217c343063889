"""The report: whole, self-contained, escaped, the same bytes for the same analysis; what is missing is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

from flows.analysis.coverage import COVERAGE_COLUMNS
from flows.analysis.inputs import PREREGISTRATION_COLUMNS, REGISTERED_COLUMNS
from flows.analysis.outputs import TABLE_COLUMNS
from flows.preregistration import CODES
from flows.report.about import described
from flows.report.calibration import COLUMNS, Calibration
from flows.report.document import code, render_report
from flows.report.figures import draw_figures
from flows.report.glossary import TABLES
from flows.report.judged import Text
from flows.report.pictures import inline_pictures
from flows.report.wording import delta_interval, points
from tests.flows.report.test_figures import analysed
from tests.flows.stats.synthetic import Plan, Spread, synthetic_results
from tests.flows.stats.test_hypotheses import REGISTERED

PLAN = Plan(
    models=("alpha", "beta"),
    strata=(("tabular", "easy"), ("query", "hard")),
    levels={
        "none": ("baseline",),
        "paraphrase": ("p1", "p2"),
        "tool_names": ("opaque",),
        "temperature": ("0.7",),
        "order": ("shuffled",),
        "resample": ("s1",),
    },
    instances=8,
    skill={"alpha": 0.2},
    effects={(None, "tool_names", "opaque"): -0.5},
    spread=Spread(instance=0.1),
    infra_rate=0.02,
)
METADATA: dict[str, Any] = {
    "study": "a-study",
    "profile": "full",
    "seed": 5,
    "grid": {
        "models": ["alpha", "beta"],
        "families": {"tabular": ["easy"], "query": ["hard"]},
        "axes": {"paraphrase": ["p1"]},
        "instances": 8,
        "runs": {"baseline": 2},
    },
    "analysis": {"resamples": 50},
    "manifest_hash": "0123456789abcdef",
}
RATE, CHANGE = ("pass_rates", "95% interval, one run", "cell"), ("deltas", "excludes 0, paired", "model")
MEASURED = Calibration(
    pd.DataFrame(
        [
            ("scripted", 20, *RATE, "coverage", 0.95, 0.9613, 0.01, None, 25, 600, False),
            ("no effects", 20, *RATE, "coverage", 0.95, 0.9, 0.01, None, 25, 600, True),
            ("scripted", 20, *CHANGE, "false conclusions", 0.05, 0.04, 0.01, 0.0, 25, 90, False),
            ("scripted", 20, *CHANGE, "right conclusions", None, 0.3, 0.1, 0.02, 25, 25, None),
        ],
        columns=list(COLUMNS),
    ).astype(COLUMNS),
    "agent-bench calibration --studies 25",
    shipped=True,
)
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>$\\frac{$ </style></svg>&amp;'
SECTIONS = (
    *("words", "what-was-run", "noise-floor", "scores", "changes", "ranks", "repeating", "variance", "power", "costs"),
    *("verdicts", "methods", "dictionary"),
)


class Page(HTMLParser):
    """What a browser would see of a page: elements with attributes, and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more element; all but code set things apart."""
        self.elements.append((tag, dict(attrs)))
        self.words.append("" if tag == "code" else " ")

    def handle_endtag(self, tag: str) -> None:
        """What ends an element sets it apart from what follows."""
        self.words.append("" if tag == "code" else " ")

    def handle_data(self, data: str) -> None:
        """One more run of text."""
        self.words.append(data)

    @property
    def text(self) -> str:
        """All text, white space folded."""
        return " ".join("".join(self.words).split())

    def values(self, name: str) -> list[str]:
        """An attribute's value wherever it stands."""
        return [str(attrs[name]) for _, attrs in self.elements if name in attrs]


def tables_of(frame: pd.DataFrame, *, warned: bool = False, gaps: bool = False) -> dict[str, pd.DataFrame]:
    code = "changed_after_first_row" if warned else "ok"
    coverage = [("alpha", "tabular-easy-none-baseline", 16, 16, 0, 2, "complete", None)]
    if gaps:
        coverage += [
            ("beta", "query-hard-paraphrase-p3", 8, 5, 3, 1, "partial", None),
            ("beta", "query-hard-paraphrase-p4", 8, 0, 8, None, "all infra_error", None),
            ("beta", "query-hard-temperature-0.7", 0, 0, 0, None, "unsupported", "has no temperature"),
        ]
    return {
        "coverage": pd.DataFrame(coverage, columns=list(COVERAGE_COLUMNS)),
        "preregistration": pd.DataFrame([(code, CODES.get(code, "fine"))], columns=list(PREREGISTRATION_COLUMNS)),
        **analysed(frame, 50),
    }


def rendered(
    frame: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    metadata: Mapping[str, Any] | None = None,
    texts: tuple[Text, ...] = (),
    calibration: Calibration | None = None,
    pictures: Mapping[str, str] | None = None,
) -> str:
    study = described(frame, METADATA if metadata is None else metadata)
    return render_report(study, tables, texts, TABLE_COLUMNS, pictures or {}, calibration or MEASURED)


FRAME = synthetic_results(PLAN, 1)
TEXT = Text("0123456789ab (fedc)", datetime(2026, 1, 1, tzinfo=UTC), REGISTERED.read_text("utf-8"))


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return tables_of(FRAME)


@pytest.fixture(scope="module")
def pictures(tables: dict[str, pd.DataFrame]) -> dict[str, str]:
    return inline_pictures(draw_figures(tables), tables)


@pytest.fixture(scope="module")
def html(tables: dict[str, pd.DataFrame], pictures: dict[str, str]) -> str:
    return rendered(FRAME, tables, texts=(TEXT,), pictures=pictures)


def test_the_sections_stand_in_their_order(html: str) -> None:
    found = [attrs["id"] for tag, attrs in Page(html).elements if tag == "section"]
    assert [name for name in found if not str(name).startswith("axis-")] == list(SECTIONS)
    controls_last = ["axis-paraphrase", "axis-temperature", "axis-tool-names"]
    assert [name for name in found if str(name).startswith("axis-")] == [*controls_last, "axis-order", "axis-resample"]


def outside_references(page: Page) -> Iterator[str]:
    for name in ("src", "href", "xlink:href", "action", "srcset", "poster", "data"):
        yield from (value for value in page.values(name) if not value.startswith("#"))
    for value in page.values("style"):
        yield from (url for url in re.findall(r"url\(([^)]*)\)", value) if not url.startswith("#"))


def test_the_page_needs_no_other_file(html: str) -> None:
    page = Page(html)
    assert list(outside_references(page)) == []
    assert not {"script", "link", "iframe", "object", "embed", "img"} & {tag for tag, _ in page.elements}
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style


def test_ids_are_unique_and_every_reference_has_its_target(html: str) -> None:
    page = Page(html)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    linked = {value[1:] for name in ("href", "xlink:href") for value in page.values(name)}
    clipped = set(re.findall(r"url\(#([^)]+)\)", html))
    assert len(clipped) > 5
    assert linked | clipped <= set(ids)


def test_numbers_are_those_of_the_tables(html: str, tables: dict[str, pd.DataFrame]) -> None:
    deltas = tables["deltas"]
    row = deltas[(deltas["scope"] == "overall") & (deltas["level"] == "opaque")].iloc[0]
    said = (
        f"opaque: {points(row['delta'])} points ({delta_interval(row['ci_low'], row['ci_high'])}), which excludes zero"
    )
    assert row["delta"] < -0.2
    assert said in Page(html).text
    verdict = tables["verdicts"].set_index("id").loc["H-TOOLS-OPAQUE"]
    article = html[html.index("<h3>H-TOOLS-OPAQUE") :].split("</article>")[0]
    assert f'<span class="label">{verdict["final_label"]}</span>' in article
    assert " ".join(str(verdict["text"]).split()[:6]) in article


def test_the_registered_text_stands_whole_in_the_page(html: str) -> None:
    assert " ".join(TEXT.content.split()) in Page(html).text


def test_every_column_of_every_table_is_explained(html: str) -> None:
    text = Page(html).text
    missing = [
        (table, column)
        for table, columns in TABLE_COLUMNS.items()
        for column, meaning in columns.items()
        if f"{column} {' '.join(meaning.replace('`', '').split())}" not in text
    ]
    assert missing == []
    assert set(TABLES) == set(TABLE_COLUMNS)
    assert [said for said in TABLES.values() if said.replace("`", "") not in text] == []


def test_the_same_analysis_gives_the_same_bytes_whatever_the_order_of_the_rows(
    html: str, tables: dict[str, pd.DataFrame]
) -> None:
    redrawn = inline_pictures(draw_figures(tables), tables)
    assert rendered(FRAME.sample(frac=1, random_state=3), tables, texts=(TEXT,), pictures=redrawn) == html


def test_names_from_outside_are_text_and_never_markup(tables: dict[str, pd.DataFrame]) -> None:
    named = {"alpha", "p1", "temperature"}
    renamed = {name: table.copy() for name, table in tables.items()}
    for table in renamed.values():
        for column in {"model", "model_a", "model_b", "versus", "axis", "level"} & set(table.columns):
            table[column] = [f"{value}{HOSTILE}" if value in named else value for value in table[column]]
        for column in {"reason", "text", "method", "message"} & set(table.columns):
            table[column] = HOSTILE
    frame = FRAME.assign(model=FRAME["model"].map(lambda value: f"{value}{HOSTILE}"), git_sha=HOSTILE)
    metadata = {**METADATA, "study": HOSTILE, "profile": HOSTILE}
    text = TEXT._replace(content=f"</pre>{HOSTILE}", name=HOSTILE)
    drawn = inline_pictures(draw_figures(renamed), renamed)
    page = Page(rendered(frame, renamed, metadata, (text,), pictures=drawn))
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert not [attrs for _, attrs in page.elements if any(name.startswith("on") for name in attrs)]
    assert sum(tag == "style" for tag, _ in page.elements) == 1
    assert "".join(page.words).count("<script>alert(1)</script>") > 20
    assert list(outside_references(page)) == []


def test_doubts_about_the_registration_stand_on_top_and_at_the_verdicts(tables: dict[str, pd.DataFrame]) -> None:
    doubtful = {**tables, "preregistration": tables_of_warning("changed_after_first_row")}
    html = rendered(FRAME, doubtful)
    top, rest = html.split("<main>")
    message = CODES["changed_after_first_row"]
    assert message in top.split('role="alert"')[1]
    assert message in rest.split('id="verdicts"')[1]
    assert "not safely preregistered" not in rendered(FRAME, tables)


def tables_of_warning(code: str) -> pd.DataFrame:
    return pd.DataFrame([(code, CODES[code])], columns=list(PREREGISTRATION_COLUMNS))


def test_gaps_in_the_grid_are_said_first_and_listed() -> None:
    html = rendered(FRAME, tables_of(FRAME, gaps=True))
    alert = html.split('role="alert"')[1].split("</div>")[0]
    assert "1 of 4 cells is partial." in alert
    assert "infrastructure error" in alert
    listed = Page(html).text
    for words in ("query-hard-paraphrase-p3 partial 5 of 8 3", "query-hard-temperature-0.7 unsupported"):
        assert words in listed


def test_measured_coverage_stands_in_the_appendix_with_the_command_that_made_it(
    html: str, tables: dict[str, pd.DataFrame]
) -> None:
    text = Page(html).text
    assert "The table ships with the code" in text
    assert "the command that made it: agent-bench calibration --studies 25" in text
    assert "pass_rates 95% interval, one run 95.0% 93.1% 90.0% 1.0 no effects, cell 1,200" in text
    assert "deltas excludes 0, paired 5.0% 4.0% 4.0% 1.0 scripted, model 90" in text
    assert "1 of 3 measures are beyond what is promised" in text
    own = replace(MEASURED, rows=MEASURED.rows.assign(misses=False), shipped=False, command="agent-bench calibration")
    text = Page(rendered(FRAME, tables, calibration=own)).text
    assert "made beside these results" in text
    assert "0 of 4 measures are beyond what is promised" in text


def test_what_stands_between_backticks_is_code_and_still_no_markup() -> None:
    assert code("see `<b>` and `x`") == "see <code>&lt;b&gt;</code> and <code>x</code>"
    assert code("one ` alone") == "one ` alone"
    assert code("`x` and one ` alone") == "<code>x</code> and one ` alone"


def test_models_prices_loop_and_temperature_are_named(tables: dict[str, pd.DataFrame]) -> None:
    known = {
        **METADATA,
        "models": {
            "alpha": {"adapter": "openai", "model": "vendor/alpha-2026", "pricing": {"input": 0.4, "output": 1.6}},
            "beta": {"adapter": "scripted", "pricing": {"input": 1.0, "output": 5.0}},
        },
        "scaffold": {"step_cap": 20, "max_output_tokens": 1024, "tasks_per_conversation": 1},
        "decoding": {"baseline_temperature": 0.0},
    }
    text = Page(rendered(FRAME, tables, known)).text
    assert "alpha vendor/alpha-2026" in text
    assert "0.4, 1.6" in text
    assert "at most 20 turns of 1,024 tokens per task, one task per conversation" in text
    assert "temperature 0.0 at the baseline" in text
    unset = {**known, "decoding": {"baseline_temperature": "provider_default"}}
    assert "every model runs at its provider's default" in Page(rendered(FRAME, tables, unset)).text


def test_the_floor_says_what_it_means_for_changes_that_were_run_less_often() -> None:
    frame = FRAME[(FRAME["run_seed"] == 1) | FRAME["axis"].isin(["none", "order", "resample"])]
    text = Page(rendered(frame, tables_of(frame))).text
    assert "The rerun has 2.0 runs of each instance, the changes down to 1.0." in text
    assert "moves by noise alone 1.2 times as far as the floor of a rerun says" in text
    assert "The rerun has" not in Page(rendered(FRAME, tables_of(FRAME))).text


def test_the_correction_is_said_to_be_over_the_verdicts_of_every_text(tables: dict[str, pd.DataFrame]) -> None:
    half = len(tables["verdicts"]) // 2
    own = tables["verdicts"].assign(registration=["one"] * half + ["two"] * (len(tables["verdicts"]) - half))
    text = Page(rendered(FRAME, {**tables, "verdicts": own})).text
    assert f"Holm's correction at 5% over all {len(own)} verdicts below, whichever text they come from" in text
    assert "judged by one," in text
    assert "judged by two," in text
    assert "Holm's correction over the verdicts of all registered texts" in text


def test_registered_texts_stand_with_hash_time_and_the_rows_they_judge(tables: dict[str, pd.DataFrame]) -> None:
    moments = pd.to_datetime(["2026-01-01T00:00Z", "2026-01-02T10:00Z", "2026-01-02T10:30Z"], utc=True)
    registered = pd.DataFrame(
        [("0123456789abcdef", "fedcba9876543210", moments[0], 8, 640, moments[1], moments[2])],
        columns=list(REGISTERED_COLUMNS),
    )
    text = Page(rendered(FRAME, {**tables, "registered_texts": registered})).text
    expected = "0123456789ab fedcba9876543210 2026-01-01 00:00 UTC 8 640 2026-01-02 10:00 to 10:30 UTC"
    assert expected in text


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(FRAME[FRAME["model"] == "alpha"], id="one model"),
        pytest.param(FRAME[FRAME["axis"] == "none"], id="baseline alone"),
        pytest.param(FRAME[FRAME["axis"].isin(["none", "temperature"])], id="one level, no control"),
        pytest.param(FRAME[FRAME["axis"] == "temperature"], id="no baseline"),
        pytest.param(
            FRAME.assign(
                passed=pd.array([None] * len(FRAME), dtype="boolean"),
                partial_score=pd.array([None] * len(FRAME), dtype="Float64"),
                infra_error=True,
                outcome="infra_error",
            ),
            id="every episode infra_error",
        ),
        pytest.param(FRAME.iloc[:0], id="no row"),
        pytest.param(FRAME.groupby(["model", "family", "axis", "level"]).head(1), id="one instance"),
        pytest.param(synthetic_results(replace(PLAN, floor=1.0), 1), id="everything passes"),
    ],
)
def test_a_partial_study_has_a_whole_report(frame: pd.DataFrame) -> None:
    html = rendered(frame, tables_of(frame), {})
    page = Page(html)
    assert set(SECTIONS) <= set(page.values("id"))
    assert not re.search(r"\bnan\b|<NA>|\bNone\b|NaT", page.text.split("Tables and columns The full")[0])
