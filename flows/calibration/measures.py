"""One study's tables against the truth: what intervals covered, what tests decided, how far off estimates were."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from flows.calibration.population import COST_USD
from flows.calibration.truth import ALL, MEAN, Truth
from flows.stats.consistency import FLIPS_BETWEEN_RUNS, PASS_HAT_K
from flows.stats.hypotheses import Hypothesis

Tables = Mapping[str, pd.DataFrame]
Row = Mapping[Hashable, Any]

COVERAGE, FALSE, POWER, BIAS = "coverage", "false conclusions", "right conclusions", "bias"
LEVEL = 0.05
FAMILY = "family"
POOLED = "all hypotheses:"


class Key(NamedTuple):
    """What is measured."""

    table: str
    quantity: str
    scope: str
    measure: str
    nominal: float | None
    """Coverage at least, false conclusions at most, bias exactly; null where none is promised."""


class Found(NamedTuple):
    """One row's contribution: 0 or 1 for a share, the error of an estimate for a bias."""

    key: Key
    value: float
    truth: float | None = None


def measure(tables: Tables, truth: Truth, hypotheses: Sequence[Hypothesis]) -> Iterator[Found]:
    """Everything that the tables of one study say right or wrong."""
    yield from _rates(tables["pass_rates"], truth)
    yield from _deltas(tables["deltas"], truth)
    yield from _controls(tables["negative_controls"], truth)
    yield from _gaps(tables["pair_gaps"], truth)
    yield from _ranks(tables["rank_stability"], truth)
    yield from _spread(tables["paraphrase_spread"], truth)
    yield from _consistency(tables["consistency"], truth)
    yield from _costs(tables["costs"], truth)
    yield from _components(tables["variance_components"], truth)
    yield from _verdicts(tables["verdicts"], truth, {one.id: one for one in hypotheses})


def _covers(row: Row, low: str, high: str, value: float) -> float:
    ends: list[Any] = [row[low], row[high]]
    return 0.0 if pd.isna(ends[0]) else float(ends[0] - 1e-9 <= value <= ends[1] + 1e-9)


def _rows(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return table.to_dict("records")


def _rates(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        value = truth.rate_of(row)
        repeated = "several runs" if row["episodes"] > row["n"] * _models(row) else "one run"
        for quantity, ends, nominal in (
            (f"95% interval, {repeated}", ("ci_low", "ci_high"), 1 - LEVEL),
            (f"for comparison: cluster percentile, {repeated}", ("percentile_low", "percentile_high"), None),
            (f"for comparison: Wilson on n_eff, {repeated}", ("wilson_low", "wilson_high"), None),
        ):
            key = Key("pass_rates", quantity, row["scope"], COVERAGE, nominal)
            yield Found(key, _covers(row, *ends, value))


def _models(row: Row) -> float:
    """Episodes per instance that several models alone explain; the mean over models shares its instances."""
    return 1.0 if row["model"] != ALL else float(row["models"])


def _deltas(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        value = truth.delta_of(row)
        pairing = "paired" if row["paired"] else "unpaired"
        covered = _covers(row, "ci_low", "ci_high", value)
        yield Found(Key("deltas", f"95% interval, {pairing}", row["scope"], COVERAGE, 1 - LEVEL), covered)
        yield Found(Key("deltas", f"95% interval, {row['method']}", ALL, COVERAGE, 1 - LEVEL), covered)
        excludes = 1 - _covers(row, "ci_low", "ci_high", 0.0)
        if value == 0:
            yield Found(Key("deltas", f"excludes 0, {pairing}", row["scope"], FALSE, LEVEL), excludes)
        elif row["scope"] == "overall":
            yield Found(Key("deltas", f"excludes 0: {row['axis']} {row['level']}", ALL, POWER, None), excludes, value)


def _controls(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    overall = [row for row in _rows(table) if row["scope"] == "overall" and truth.delta_of(row, MEAN) == 0]
    if overall:
        indicted = any(row["indicts_pipeline"] for row in overall)
        yield Found(Key("negative_controls", "indicts the pipeline", "overall", FALSE, LEVEL), float(indicted))


def _gaps(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        pair = row["model_a"], row["model_b"]
        before = truth.gap(*pair, "none", "baseline")
        after = truth.gap(*pair, row["axis"], row["level"])
        for name, value in (("gap_baseline", before), ("gap_perturbed", after), ("gap_change", after - before)):
            key = Key("pair_gaps", f"95% interval of {name}", "pair", COVERAGE, 1 - LEVEL)
            yield Found(key, _covers(row, f"{name}_low", f"{name}_high", value))
        confirmed = float(row["confirmed_flip"])
        if before * after < 0:
            quantity = f"confirms {pair[0]} and {pair[1]} flip: {row['axis']} {row['level']}"
            yield Found(Key("pair_gaps", quantity, "pair", POWER, None), confirmed, after - before)
        else:
            yield Found(Key("pair_gaps", "confirms a flip", "pair", FALSE, LEVEL), confirmed)


def _ranks(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        rejects = float(row["p"] <= LEVEL)
        if truth.moves(row["axis"], row["level"]):
            key = Key("rank_stability", f"p of {row['axis']} {row['level']}", "overall", POWER, None)
        else:
            key = Key("rank_stability", "p where nothing changes", "overall", FALSE, LEVEL)
        yield Found(key, rejects)


def _spread(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        deltas = [truth.delta_of(row, level) for level in truth.levels(row["axis"])]
        still = not any(truth.moves(row["axis"], level) for level in truth.levels(row["axis"]))
        quantity = "p of the range where no level differs" if still else f"p of the range over {row['axis']}"
        key = Key("paraphrase_spread", quantity, row["scope"], FALSE if still else POWER, LEVEL if still else None)
        if still or len(set(deltas)) > 1:
            yield Found(key, float(row["p"] <= LEVEL))
        for column in ("worst_delta_naive", "worst_delta_crossfit"):
            key = Key("paraphrase_spread", f"{column} of {row['axis']}", row["scope"], BIAS, None)
            yield Found(key, row[column] - min(deltas), min(deltas))


def _consistency(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        twice = row["measure"] == PASS_HAT_K and row["k"] == 2
        if pd.isna(row["value"]) or not (twice or row["measure"] == FLIPS_BETWEEN_RUNS):
            continue
        both = truth.passes_twice(row)
        what, value = ("pass^2", both) if twice else ("flips between two runs", 2 * (truth.rate_of(row) - both))
        key = Key("consistency", f"95% interval of {what}", row["scope"], COVERAGE, 1 - LEVEL)
        yield Found(key, _covers(row, "ci_low", "ci_high", value))


def _costs(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    for row in _rows(table):
        key = Key("costs", "95% interval of cost per solved task", row["scope"], COVERAGE, 1 - LEVEL)
        yield Found(key, _covers(row, "ci_low", "ci_high", COST_USD / truth.rate_of(row)))


def _components(table: pd.DataFrame, truth: Truth) -> Iterator[Found]:
    true = truth.components()
    for row in _rows(table):
        if row["term"] in true and not pd.isna(row["variance"]):
            value = true[row["term"]]
            yield Found(Key("variance_components", row["term"], "overall", BIAS, 0.0), row["variance"] - value, value)
            key = Key("variance_components", f"95% interval of {row['term']}", "overall", COVERAGE, 1 - LEVEL)
            yield Found(key, _covers(row, "lo", "hi", value), value)


def _verdicts(table: pd.DataFrame, truth: Truth, hypotheses: Mapping[str, Hypothesis]) -> Iterator[Found]:
    """Unadjusted labels one by one, and after Holm's correction whether any of the family is wrong.

    A directional hypothesis tests each side at half the level, since its interval is two-sided.
    """
    wrong: dict[tuple[str, str], list[bool]] = {}
    for row in _rows(table):
        one = hypotheses[row["id"]]
        value = truth.delta(one.axis, one.level)
        effect = value if one.sign is None else one.sign * value
        if one.kind == "equivalence":
            holds, denied, level = abs(effect) < one.smallest_effect, abs(effect) >= one.smallest_effect, LEVEL
        else:
            holds, denied, level = effect > 0, effect < one.smallest_effect, LEVEL / 2
        for label, right in (("supported", holds), ("refuted", denied)):
            for stage, column in (("", "label"), (" after Holm", "final_label")):
                said = row[column] == label
                measure_, nominal = (POWER, None) if right else (FALSE, level)
                quantity = f"{one.id} {label}{stage}"
                yield Found(Key("verdicts", quantity, one.kind, measure_, nominal), float(said), value)
                if not right:
                    pooled = f"{POOLED} {label} wrongly{stage}"
                    yield Found(Key("verdicts", pooled, one.kind, FALSE, nominal), float(said))
                if stage and not right:
                    wrong.setdefault((row["registration"], label), []).append(said)
    for (registration, label), said in wrong.items():
        key = Key("verdicts", f"any of {registration} {label} wrongly, after Holm", FAMILY, FALSE, LEVEL)
        yield Found(key, float(any(said)))
