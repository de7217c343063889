"""Where the variance comes from, and how many tasks a claimed difference needs."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from flows.report.blocks import Block, Column, Fold, Paragraph, Section, field_column, reason_column, table
from flows.report.pictures import Pictures, picture
from flows.report.style import axis_label, crossed, table_of
from flows.report.wording import NOTHING, count, decimal, known, percent, size, text
from flows.stats.cells import ALL
from flows.stats.planning import MODELS

_POWER = 0.8
"""The chance of detection that the report's shorter tables are for; the full tables also have 90%."""


def variance(tables: Mapping[str, pd.DataFrame], pictures: Pictures) -> Section:
    """Variance components."""
    components = table_of(tables, "variance_components")
    blocks: list[Block] = [
        Paragraph(
            "The variance of an episode's outcome (passed or not), split into what models, wordings and tool sets "
            "(levels), tasks (instances), their interactions and mere repetition (run) contribute; × joins the factors "
            "of an interaction. Model × level, say, is how far models react differently to the same change. What comes "
            "from runs shrinks with more run seeds, what comes from instances with more instances, and what comes from "
            "model × level with neither. Levels are the baseline, paraphrases, tool names and distractors; a variance "
            "that is truly zero is estimated below zero about as often as above."
        ),
        *picture(
            pictures,
            "variance_components",
            "Standard deviations with 95% intervals; shares of the total beside them.",
        ),
    ]
    if len(components):
        columns = [
            Column("term", _term, False),
            Column("variance", lambda row: decimal(row["variance"], 5)),
            Column("95% interval", _bounds),
            field_column("share", "share", percent),
            field_column("SD, points", "sd", size),
            Column("note", lambda row: text(row["reason"]), numeric=False, optional=True),
        ]
        blocks.append(table("Variance components, negative estimates left as they are", components, columns))
    return Section("variance", "Where the variance comes from", blocks)


def _term(row: Mapping[str, object]) -> str:
    term = crossed(str(row["term"]))
    return f"{term} (with {crossed(str(row['includes']))})" if known(row["includes"]) else term


def _bounds(row: Mapping[str, object]) -> str:
    return f"{decimal(row['lo'], 5)} to {decimal(row['hi'], 5)}" if known(row["lo"]) else NOTHING


def power(tables: Mapping[str, pd.DataFrame], pictures: Pictures) -> Section:
    """Both power tables, the smallest detectable differences, and what run seeds would buy."""
    detectable, exact = table_of(tables, "detectable"), table_of(tables, "power_exact")
    blocks: list[Block] = [
        Paragraph(
            "How many instances, over all strata, it takes to tell two models apart: for this exact prompt, and for "
            "any equivalent prompt and tool set. The second is what a claim about models means. Below a certain "
            "difference no number of instances suffices, since the variance over prompts does not shrink with them: "
            "such claims are unreachable. Power is the chance of finding a difference that is there, by a two-sided "
            "test at 5%. Runs are run seeds per instance and condition; where the two arms differ in runs, as many as "
            "would give the same noise in both."
        ),
        *picture(
            pictures,
            "power_curves",
            "Chance of telling two models apart. Hatched: out of reach at the upper limit of the variance over "
            "prompts.",
        ),
        *_general(table_of(tables, "power_general")),
        *_exact(exact),
        *_detectable(detectable),
    ]
    return Section("power", "How many tasks does a claim need?", blocks)


def _general(general: pd.DataFrame) -> list[Block]:
    own = general if general.empty else general[general["source"] == "study"]
    if own.empty:
        return []
    columns = [
        Column("difference, points", lambda row: size(row["delta"])),
        field_column("power", "power", percent),
        Column(
            "variance over prompts",
            lambda row: f"{text(row['sigma_ml2_source'])}, {decimal(row['sigma_ml2'], 5)}",
            False,
        ),
        Column("instances for any equivalent prompt", _needed),
        field_column("for exactly these prompts", "n_exact", count),
        Column("unreachable below, points", lambda row: size(row["smallest_reachable"])),
    ]
    blocks: list[Block] = []
    levels = own["levels"].dropna()
    shown = f", each run under {count(levels.iloc[0])} prompts and tool sets" if len(levels) else ""
    blocks.append(table(f"For any equivalent prompt: instances to tell two models apart{shown}", own, columns))
    if any(known(value) and value for value in own["not_positive"]):
        blocks.append(
            Paragraph(
                "The estimate of the variance over prompts is not positive, so that generalising over prompts seems "
                "to cost nothing. The rows at the upper limit of its interval are the ones to plan by."
            )
        )
    return blocks


def _needed(row: Mapping[str, object]) -> str:
    if known(row["n_instances"]):
        return count(row["n_instances"])
    return "unreachable" if known(row["reachable"]) and not row["reachable"] else text(row["reason"])


def _exact(exact: pd.DataFrame) -> list[Block]:
    if exact.empty:
        return []
    study = exact[(exact["source"] == "study") & (exact["comparison"] == MODELS) & (exact["power"] == _POWER)]
    reference = exact[(exact["source"] == "reference") & exact["n_instances"].notna()]
    needed = field_column("instances", "n_instances", count)
    delta = Column("difference, points", lambda row: size(row["delta"]))
    blocks: list[Block] = [
        table(
            "For this exact prompt: instances to tell these two models apart with 80% power",
            study,
            [
                Column("pair", lambda row: f"{row['model']} − {row['versus']}", False),
                delta,
                needed,
                field_column("episodes", "n_episodes", count),
                Column("runs", lambda row: decimal(row["runs"], 1)),
                reason_column(),
            ],
            empty="It takes two models on the same instances.",
        )
    ]
    if len(reference):
        columns = [
            field_column("base rate", "base_rate", percent),
            delta,
            field_column("power", "power", percent),
            field_column("design", "design", text, numeric=False),
            Column("correlation ρ", lambda row: f"{decimal(row['rho'])} ({row['rho_source']})", False),
            needed,
        ]
        grid = table("Reference grid, one run per instance", reference, columns)
        blocks.append(Fold("Reference grid over base rates", (grid,)))
    return blocks


def _detectable(detectable: pd.DataFrame) -> list[Block]:
    if detectable.empty:
        return []
    # One model stands for itself; of several, the mean over models is what the hypotheses are about.
    shown = detectable[detectable["power"] == _POWER]
    own = shown[shown["as_run"] & ((shown["comparison"] == MODELS) | (shown["model"] == ALL))]
    runs = shown[~shown["as_run"] & (shown["comparison"] == MODELS)]
    named = Column("comparison", _comparison, False)
    detects = Column("detectable, points", lambda row: size(row["detectable"]))
    reason = reason_column()
    return [
        table(
            "Smallest difference that this study finds with 80% power",
            own,
            [
                named,
                field_column("instances", "n", count),
                Column("runs", lambda row: decimal(row["runs"], 1)),
                detects,
                reason,
            ],
        ),
        Fold(
            "What more run seeds would buy, instead of instances",
            (
                table(
                    "Two models on the baseline, at the study's own instances, with other numbers of runs",
                    runs,
                    [
                        named,
                        Column("runs", lambda row: decimal(row["runs"], 0) if known(row["runs"]) else "endless"),
                        detects,
                        field_column("as good as this many instances", "equivalent_n", count),
                        reason,
                    ],
                ),
            ),
        ),
    ]


def _comparison(row: Mapping[str, object]) -> str:
    if row["comparison"] == MODELS:
        return f"{row['model']} − {row['versus']}"
    return f"{axis_label(str(row['axis']), 'mean')}: {row['level']} − baseline"
