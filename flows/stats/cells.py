"""From episodes to instance means: the arrays that every statistic starts from.

The instance is the unit of analysis; where context is carried from task to task, the conversation takes its place
(`flows.stats.clusters`), here and wherever a statistic speaks of instances. `score_cube` averages the scored episodes
of a unit within a cell and lays the means out per stratum (family x difficulty) as unit x model x condition, null
where no episode was scored. Episodes with an infrastructure error enter no mean; they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_string_dtype

from flows.stats.clusters import CONVERSATION, carries_context, cluster_ids

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Stratum(NamedTuple):
    """A family at a difficulty."""

    family: str
    difficulty: str

    def __str__(self) -> str:
        return f"{self.family}-{self.difficulty}"


class Condition(NamedTuple):
    """A level of a perturbation axis."""

    axis: str
    level: str


BASELINE = Condition("none", "baseline")
ALL = "all"
"""Stands in a name column for an average over its values."""
MEAN_LEVEL = "mean"
"""Stands in the level column for the mean over an axis's levels."""
UNPAIRED_AXES = frozenset({"resample"})
"""Axes whose levels show other instances than the baseline; on all others an instance pairs with itself."""

EPISODE = "episode_id"
NEEDED_COLUMNS = (
    "benchmark",
    "model",
    "family",
    "difficulty",
    "axis",
    "level",
    "instance_id",
    "passed",
    "infra_error",
)


@dataclass(frozen=True)
class ScoreCube:
    """Instance means per stratum. Arrays have the shape (instances, models, conditions)."""

    models: tuple[str, ...]
    conditions: tuple[Condition, ...]
    """The baseline first if there is one, then by axis and level."""
    strata: tuple[Stratum, ...]
    instances: Mapping[Stratum, tuple[str, ...]]
    """Instance ids in order, those of other samples included; of clusters, the id of the first instance of each."""
    clusters: Mapping[Stratum, IntArray]
    """Which instances shared a conversation, as a code from 0 for each: 0, 1, 2 … where none did, or of clusters."""
    means: Mapping[Stratum, FloatArray]
    """Mean of `passed` over scored run seeds; NaN where none was scored."""
    runs: Mapping[Stratum, IntArray]
    """Scored episodes."""
    infra: Mapping[Stratum, IntArray]
    """Episodes with an infrastructure error."""

    def axes(self) -> tuple[str, ...]:
        """Perturbation axes present, without the baseline."""
        return tuple(sorted({c.axis for c in self.conditions if c != BASELINE}))

    def levels(self, axis: str) -> tuple[str, ...]:
        """Levels of an axis that are present, sorted."""
        return tuple(c.level for c in self.conditions if c.axis == axis and c != BASELINE)

    def index(self, condition: Condition) -> int | None:
        """Position of a condition on the last array axis; null if no row has it."""
        return self._positions.get(condition)

    @cached_property
    def _positions(self) -> dict[Condition, int]:
        return {condition: position for position, condition in enumerate(self.conditions)}

    def values(self, stratum: Stratum, model: int, condition: Condition) -> FloatArray:
        """Instance means of one cell, shape (instances,), NaN where not scored."""
        position = self.index(condition)
        if position is None:
            return np.full(len(self.instances[stratum]), np.nan)
        return self.means[stratum][:, model, position]

    def shares_conversations(self) -> bool:
        """Whether several instances belong to one cluster."""
        return any(len(codes) > len(np.unique(codes)) for codes in self.clusters.values())

    def over_clusters(self, stratum: Stratum, values: FloatArray) -> FloatArray:
        """Mean over the instances of each cluster that have a value, of values per instance; NaN where none has."""
        codes, known = self.clusters[stratum], ~np.isnan(values)
        size = int(codes.max(initial=-1)) + 1
        if size == len(codes):
            return values
        count = np.bincount(codes[known], minlength=size)
        total = np.bincount(codes[known], weights=values[known], minlength=size)
        means: FloatArray = np.divide(total, count, out=np.full(size, np.nan), where=count > 0)
        return means

    def cells(self) -> Iterator[tuple[Stratum, int, int]]:
        """(stratum, model index, condition index) of every cell with at least one episode, in order."""
        for stratum in self.strata:
            present = (self.runs[stratum] + self.infra[stratum]).sum(axis=0) > 0
            for model, condition in zip(*np.nonzero(present), strict=True):
                yield stratum, int(model), int(condition)


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """A results table as every statistic takes it: names as categories in the order of their text and verdicts as
    booleans, whatever they were before, a label of its own for every row, and no verdict on an episode with an
    infrastructure error. A table prepared already costs next to nothing.

    Raises:
        ValueError: columns of the results schema are missing, a name is null, an episode is there twice, or there are
            several benchmarks; or a conversation goes over strata.
    """
    if missing := [name for name in NEEDED_COLUMNS if name not in frame.columns]:
        raise ValueError(f"the results table lacks the columns {', '.join(missing)}")
    if not frame.index.is_unique:
        frame = frame.reset_index(drop=True)
    names = [name for name in NEEDED_COLUMNS if name not in ("passed", "infra_error")]
    if nulls := [name for name in names if frame[name].isna().any()]:
        raise ValueError(f"the results table has rows without {', '.join(nulls)}")
    changed = {name: _by_text(frame[name]) for name in names if not _is_by_text(frame[name])}
    passed = frame["passed"].astype("boolean")
    broken = frame["infra_error"].to_numpy(dtype=bool) & passed.notna().to_numpy(dtype=bool)
    if broken.any() or frame["passed"].dtype != passed.dtype:
        changed["passed"] = passed.mask(broken)
    table = frame.assign(**changed) if changed else frame
    benchmarks = table["benchmark"].unique()
    if len(benchmarks) > 1:
        raise ValueError(f"analyse one benchmark at a time; the table holds {', '.join(sorted(benchmarks))}")
    if EPISODE in frame.columns and not frame[EPISODE].is_unique:
        twice = frame.loc[frame[EPISODE].duplicated(), EPISODE].min()
        raise ValueError(f"the results table holds episode {twice} more than once")
    if carries_context(table):
        crossing = (
            table[table[CONVERSATION].notna()].groupby(CONVERSATION)[["family", "difficulty"]].nunique().max(axis=1)
        )
        if (crossing > 1).any():
            raise ValueError(
                f"conversation {crossing.index[crossing > 1].min()} holds tasks of several families or difficulties; "
                "strata are resampled one by one, so that a conversation must stay within one"
            )
    return table


def _is_by_text(names: pd.Series) -> bool:
    dtype = names.dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        return False
    return is_string_dtype(dtype.categories.dtype) and dtype.categories.is_monotonic_increasing


def _by_text(names: pd.Series) -> pd.Series:
    return names.astype("str").astype("category")


def score_cube(
    frame: pd.DataFrame,
    *,
    unit: Literal["cluster", "instance"] = "cluster",
    value: Literal["passed", "partial_score"] = "passed",
) -> ScoreCube:
    """Means of a results table per unit; independent of the order of its rows.

    Args:
        unit: `instance` for what is about repetitions of one task, even where tasks shared a conversation; intervals
            from such means do not know of that dependence.
        value: What is averaged. An episode without it is in no mean; `infra` then counts those too.

    Raises:
        ValueError: see `prepared`.
    """
    frame = prepared(frame)
    clusters = cluster_ids(frame)
    units = clusters if unit == "cluster" else frame["instance_id"]
    scored = frame[value].notna().to_numpy(dtype=bool)
    outcome = frame[value].astype("Float64").fillna(0.0).to_numpy(dtype=np.float64)
    model_codes, models = _codes(frame, ("model",))
    condition_codes, raw_conditions = _codes(frame, ("axis", "level"))
    stratum_codes, raw_strata = _codes(frame, ("family", "difficulty"))
    conditions = [Condition(*key) for key in raw_conditions]
    order = sorted(range(len(conditions)), key=lambda k: (conditions[k] != BASELINE, conditions[k]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    condition_codes = rank[condition_codes] if len(order) else condition_codes

    strata = tuple(Stratum(*key) for key in raw_strata)
    instances: dict[Stratum, tuple[str, ...]] = {}
    shared: dict[Stratum, IntArray] = {}
    means: dict[Stratum, FloatArray] = {}
    runs: dict[Stratum, IntArray] = {}
    infra: dict[Stratum, IntArray] = {}
    for code, stratum in enumerate(strata):
        rows = np.flatnonzero(stratum_codes == code)
        instance_codes, names = pd.factorize(units.iloc[rows], sort=True)
        shape = (len(names), len(models), len(conditions))
        flat = np.ravel_multi_index((instance_codes, model_codes[rows], condition_codes[rows]), shape)
        total = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
        count = np.bincount(flat, weights=scored[rows], minlength=int(np.prod(shape))).reshape(shape)
        passes = np.bincount(flat, weights=outcome[rows], minlength=int(np.prod(shape))).reshape(shape)
        instances[stratum] = tuple(map(str, names))
        shared[stratum] = np.arange(len(names))
        if unit == "instance" and carries_context(frame):
            shared[stratum][instance_codes] = pd.factorize(clusters.iloc[rows], sort=True)[0]
        runs[stratum] = count.astype(np.int64)
        infra[stratum] = total.astype(np.int64) - runs[stratum]
        means[stratum] = np.divide(passes, count, out=np.full(shape, np.nan), where=count > 0)
    return ScoreCube(
        models=tuple(key[0] for key in models),
        conditions=tuple(conditions[k] for k in order),
        strata=strata,
        instances=instances,
        clusters=shared,
        means=means,
        runs=runs,
        infra=infra,
    )


def _codes(frame: pd.DataFrame, names: tuple[str, ...]) -> tuple[IntArray, list[tuple[str, ...]]]:
    """Code of each row's key, and the keys in sorted order."""
    columns = [pd.factorize(frame[name], sort=True) for name in names]
    combined = np.zeros(len(frame), dtype=np.int64)
    for codes, values in columns:
        combined = combined * max(len(values), 1) + codes
    unique, inverse = np.unique(combined, return_inverse=True)
    keys = []
    for value in unique:
        key: list[str] = []
        rest = int(value)
        for _, values in reversed(columns):
            rest, position = divmod(rest, max(len(values), 1))
            key.insert(0, str(values[position]))
        keys.append(tuple(key))
    return inverse.astype(np.int64), keys
