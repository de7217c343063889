"""The registered hypotheses: what was claimed beforehand beside what came out, and whether it came beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from flows.report.blocks import (
    Block,
    Column,
    Facts,
    Fold,
    Paragraph,
    Section,
    Verbatim,
    Verdict,
    Warnings,
    field_column,
    table,
)
from flows.report.glossary import NO_DOUBT, NOTHING_REGISTERED
from flows.report.style import axis_label, table_of
from flows.report.wording import count, delta_interval, known, moment, p_value, percent, points, size, span, text


class Text(NamedTuple):
    """A text of the hypotheses file; commit time null if it was never committed."""

    name: str
    committed_at: Any
    content: str


def preregistration_warnings(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Everything that weakens the claim that the hypotheses came first."""
    found = table_of(tables, "preregistration")
    doubts = found if found.empty else found[~found["code"].isin([NO_DOUBT, NOTHING_REGISTERED])]
    return [f"HYPOTHESES.md: {message}." for message in doubts["message"]] if len(doubts) else []


def judged(tables: Mapping[str, pd.DataFrame], texts: Sequence[Text]) -> Section:
    """The section."""
    verdicts = table_of(tables, "verdicts")
    blocks: list[Block] = []
    warnings = preregistration_warnings(tables)
    if warnings:
        blocks.append(Warnings("These verdicts are not safely preregistered", tuple(warnings)))
    blocks.append(
        Paragraph(
            "Hypotheses are registered in HYPOTHESES.md, under version control, before results exist. Each row of the "
            "results is judged by the text that was committed when its episode started; later changes of the text "
            "judge later rows alone. The final label is the one after Holm's correction at 5% over all "
            f"{_family(verdicts)}, whichever text they come from: an amended hypothesis counts beside the one it "
            "replaces. The unadjusted label stands beside it where it differs. Inconclusive means that the study is "
            "too small to tell, not that nothing happens. The p values invert the intervals; in brackets, after the "
            "correction."
        )
    )
    blocks += _texts(table_of(tables, "registered_texts"))
    if verdicts.empty:
        blocks.append(Paragraph("No registered hypothesis judges any row of these results."))
        found = table_of(tables, "preregistration")
        blocks += [
            Paragraph(
                f"{row['message'][0].upper()}{row['message'][1:]}: a file HYPOTHESES.md beside them would be read."
            )
            for row in found.to_dict("records")
            if row["code"] == NOTHING_REGISTERED
        ]
    for name, own in verdicts.groupby("registration", sort=False) if len(verdicts) else []:
        blocks.append(Facts((("judged by", f"{name}, {_precedes(own['before_rows'].iloc[0])}"),)))
        blocks += [_verdict(row) for row in own.to_dict("records")]
    for registered in texts:
        when = f"committed {moment(registered.committed_at)}" if known(registered.committed_at) else "never committed"
        blocks.append(Fold(f"Registered text {registered.name}, {when}", (Verbatim(registered.content),)))
    return Section("verdicts", "What was registered, and what came out", blocks)


def _family(verdicts: pd.DataFrame) -> str:
    return f"{count(verdicts['family_size'].iloc[0])} verdicts below" if len(verdicts) else "verdicts"


def _texts(registered: pd.DataFrame) -> list[Block]:
    if registered.empty:
        return []
    columns = [
        Column("commit", lambda row: text(row["commit"])[:12], False),
        field_column("hash of the text", "text_hash", text, numeric=False),
        Column(
            "committed",
            lambda row: moment(row["committed_at"]) if known(row["committed_at"]) else "never",
            False,
        ),
        field_column("hypotheses", "hypotheses", count),
        field_column("rows judged", "rows", count),
        Column("their episodes started", lambda row: span(row["first_row"], row["last_row"]), False),
    ]
    return [table("Texts of HYPOTHESES.md, in the order they came into force", registered, columns)]


def _precedes(before: Any) -> str:
    if not known(before):
        return "and whether that text came before the results is unknown"
    return "committed before the rows it judges" if before else "committed AFTER rows it judges had started"


def _verdict(row: Mapping[Any, Any]) -> Verdict:
    smallest = f"{size(row['smallest_effect'])} points"
    level = "the mean over its levels" if row["level"] == "mean" else str(row["level"])
    if row["kind"] == "equivalence":
        claim = f"{axis_label(row['axis'], 'mean')}, {level}: the change is smaller than {smallest} either way."
    else:
        way = "rises" if row["sign"] == 1 else "falls"
        claim = f"{axis_label(row['axis'], 'mean')}, {level}: the score {way}; {smallest} or more would matter."
    confidence = percent(row["bonferroni_confidence"])
    outcome = [
        ("change", f"{points(row['delta'])} points" if known(row["delta"]) else text(None)),
        ("95% interval", delta_interval(row["lo_95"], row["hi_95"])),
        ("90% interval", delta_interval(row["lo_90"], row["hi_90"])),
        (f"{confidence} interval (Bonferroni)", delta_interval(row["lo_bonferroni"], row["hi_bonferroni"])),
        ("p for support (Holm)", f"{p_value(row['p_support'])} ({p_value(row['p_support_holm'])})"),
        ("p for refutation (Holm)", f"{p_value(row['p_refute'])} ({p_value(row['p_refute_holm'])})"),
        ("instances", count(row["n"])),
        ("method", text(row["method"])),
    ]
    optional = (
        ("size of the effect", "magnitude"),
        ("amended", "amended"),
        ("left out", "missing"),
        ("because", "reason"),
    )
    outcome += [(name, str(row[column])) for name, column in optional if known(row[column])]
    return Verdict(
        name=str(row["id"]),
        label=str(row["final_label"]),
        unadjusted=str(row["label"]),
        registered=text(row["text"]),
        claim=claim[0].upper() + claim[1:],
        outcome=tuple(outcome),
    )
