"""Henderson's Method I: instances in fixed strata, crossed with models and levels, with replicate runs.

The uncorrected sum of squares of each term is equated to its expectation, a linear form in the variances with
coefficients read off the design (Henderson, Biometrics 9, 1953; Searle, Casella and McCulloch, Variance
Components, ch. 5). The stratum being fixed, its means are projected out first. On balanced data this is the
expected-mean-squares solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Term(NamedTuple):
    """One random term: `part` is the model/level part of its index, `scope` what that part is nested in."""

    name: str
    part: str
    scope: Literal["all", "stratum", "instance", "episode"]


TERMS: tuple[Term, ...] = (
    Term("run", "ml", "episode"),
    Term("model", "m", "all"),
    Term("level", "l", "all"),
    Term("model x level", "ml", "all"),
    Term("model x stratum", "m", "stratum"),
    Term("level x stratum", "l", "stratum"),
    Term("model x level x stratum", "ml", "stratum"),
    Term("instance", "", "instance"),
    Term("model x instance", "m", "instance"),
    Term("level x instance", "l", "instance"),
    Term("model x level x instance", "ml", "instance"),
)
"""In the order in which aliased terms give way: a later one that adds no rank is folded into earlier ones."""

_RANK_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Design:
    """Episodes counted per cell.

    Attributes:
        counts: Episodes per instance x model x level, shape (I, M, L).
        sums: Sum of the outcome in the same cells; a constant shift of the outcome changes no estimate.
        squares: Sum of squared outcomes per instance, shape (I,).
        strata: Stratum code per instance, 0..H-1, shape (I,).
        clusters: Code of what each instance is resampled with, each within one stratum, shape (I,); null: alone.
    """

    counts: Array
    sums: Array
    squares: Array
    strata: NDArray[np.int64]
    clusters: NDArray[np.int64] | None = None

    @property
    def balanced(self) -> bool:
        """Every instance was run equally often in every model x level, and the strata are of one size."""
        sizes = np.bincount(self.strata)
        return bool((self.counts == self.counts.flat[0]).all() and (sizes == sizes[0]).all())


def design_from_arrays(
    outcome: Sequence[float] | Array,
    model: NDArray[np.int64],
    level: NDArray[np.int64],
    instance: NDArray[np.int64],
    strata: NDArray[np.int64],
) -> Design:
    """Count episodes given per-episode codes (each 0..K-1) and the stratum code of each instance."""
    y = np.asarray(outcome, dtype=np.float64)
    y = y - y.mean()
    shape = (len(strata), int(model.max()) + 1, int(level.max()) + 1)
    flat = np.ravel_multi_index((instance, model, level), shape)
    size = int(np.prod(shape))
    return Design(
        counts=np.bincount(flat, minlength=size).reshape(shape).astype(np.float64),
        sums=np.bincount(flat, weights=y, minlength=size).reshape(shape).astype(np.float64),
        squares=np.bincount(instance, weights=y * y, minlength=len(strata)).astype(np.float64),
        strata=np.asarray(strata, dtype=np.int64),
    )


def _over(cells: Array, part: str) -> Array:
    """Sum over the model (axis -2) and level (axis -1) indices that are not in `part`; axes are kept."""
    if "m" not in part:
        cells = cells.sum(axis=-2, keepdims=True)
    if "l" not in part:
        cells = cells.sum(axis=-1, keepdims=True)
    return cells


def _ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, 0 where an empty cell makes both 0."""
    return np.divide(top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom > 0)


def _union(a: str, b: str) -> str:
    return "".join(letter for letter in "ml" if letter in a or letter in b)


_PARTS = ("", "m", "l", "ml")


class _Features:
    """What enters the moments linearly in the instances, as one matrix: reweighting is then one product.

    Keys name the arrays, each (I, models or 1, levels or 1) before it is flattened into columns of `matrix`.
    """

    def __init__(self, design: Design) -> None:
        n = {part: _over(design.counts, part) for part in _PARTS}
        s = {part: _over(design.sums, part) for part in _PARTS}
        arrays: dict[tuple[str, ...], Array] = {
            ("counts",): design.counts,
            ("sums",): design.sums,
            ("total",): design.squares[:, None, None],
        }
        for part in _PARTS:
            arrays["explained", part] = _over(_ratio(s[part] ** 2, n[part]), "")
            arrays["cells", part] = _over(_ratio(n[part], n[part]), "")
        for part, other in product(_PARTS, _PARTS):
            union = n[_union(part, other)]
            arrays["squares", part, other] = _over(union**2, part)
            arrays["crossed", part, other] = _over(union * n[other], part)
            arrays["nested", part, other] = _over(_ratio(arrays["squares", part, other], n[part]), "")
        self.rows = [np.flatnonzero(design.strata == h) for h in range(int(design.strata.max()) + 1)]
        self.matrix = np.hstack([array.reshape(len(design.strata), -1) for array in arrays.values()])
        self.shapes = {key: array.shape[1:] for key, array in arrays.items()}


class _Moments:
    """Sums of squares and their coefficients for many reweightings of the instances at once.

    An instance of weight w counts as w different instances that happen to have equal outcomes; weight 0 leaves
    it out.
    """

    def __init__(self, features: _Features, weights: Array) -> None:
        sums = np.stack([weights[:, rows] @ features.matrix[rows] for rows in features.rows], axis=1)
        self._linear: dict[tuple[str, ...], Array] = {}
        start = 0
        for key, shape in features.shapes.items():
            stop = start + int(np.prod(shape))
            self._linear[key] = sums[:, :, start:stop].reshape(*sums.shape[:2], *shape)
            start = stop
        self._N = {part: _over(self._linear["counts",], part) for part in _PARTS}
        self._S = {part: _over(self._linear["sums",], part) for part in _PARTS}
        self._stratum = _ratio(self._S[""] ** 2, self._N[""]).sum(axis=(1, 2, 3))

    def _squares(self, part: str, term: Term) -> Array:
        """Per stratum and `part` cell: sum over the term's cells j of N_cj², shape (B, H, *, *)."""
        if term.scope == "episode":
            return self._N[part]
        if term.scope == "instance":
            return self._linear["squares", part, term.part]
        return _over(self._N[_union(part, term.part)] ** 2, part)

    def _crossed(self, part: str, term: Term) -> Array:
        """Per stratum and `part` cell: sum over the term's cells j of N_cj·n_j, shape (B, H, *, *)."""
        if term.scope == "episode":
            return self._N[part]
        if term.scope == "instance":
            return self._linear["crossed", part, term.part]
        return _over(self._N[_union(part, term.part)] * self._N[term.part], part)

    def sum_of_squares(self, term: Term) -> Array:
        """y'M P M y for the term's cell projector P and M = I minus the stratum projector, shape (B,)."""
        if term.scope == "all":
            centred = self._S[term.part] - self._N[term.part] * _ratio(self._S[""], self._N[""])
            cells = _ratio(centred.sum(axis=1) ** 2, self._N[term.part].sum(axis=1))
            return np.asarray(cells.sum(axis=(1, 2)))
        if term.scope == "episode":
            explained = self._linear["total",]
        elif term.scope == "instance":
            explained = self._linear["explained", term.part]
        else:
            explained = _ratio(self._S[term.part] ** 2, self._N[term.part])
        return np.asarray(explained.sum(axis=(1, 2, 3)) - self._stratum)

    def coefficient(self, row: Term, column: Term) -> Array:
        """What one unit of variance of `column` adds to the expected sum of squares of `row`, shape (B,)."""
        if row.scope == "all":
            return self._pooled(row, column)
        if row.scope == "stratum":
            within = _ratio(self._squares(row.part, column), self._N[row.part])
        elif row.scope == "episode":
            within = self._N[""]
        elif column.scope == "episode":
            within = self._linear["cells", row.part]
        else:
            within = self._linear["nested", row.part, column.part]
        stratum = _ratio(self._squares("", column), self._N[""])
        return np.asarray(within.sum(axis=(1, 2, 3)) - stratum.sum(axis=(1, 2, 3)))

    def _pooled(self, row: Term, column: Term) -> Array:
        """The coefficient for a row term whose cells cut across strata."""
        n_row, n_all = self._N[row.part], self._N[""]
        if column.scope == "all":
            return self._pooled_both(row, column)
        share = _ratio(n_row, n_all)
        inner = self._squares(row.part, column) - 2 * share * self._crossed(row.part, column)
        inner = inner + share**2 * self._squares("", column)
        return np.asarray(_ratio(inner.sum(axis=1), n_row.sum(axis=1)).sum(axis=(1, 2)))

    def _pooled_both(self, row: Term, column: Term) -> Array:
        cells = self._N["ml"]
        batch, strata, models, levels = cells.shape
        index = np.arange(models * levels).reshape(models, levels)
        codes = {"m": index // levels, "l": index % levels, "ml": index}
        a = np.eye(index.size)[codes[row.part].ravel()]
        b = np.eye(index.size)[codes[column.part].ravel()]
        a, b = a[:, a.any(axis=0)], b[:, b.any(axis=0)]
        flat = cells.reshape(batch, strata, -1)
        joint = (a.T[None] * flat.sum(axis=1)[:, None, :]) @ b
        rows, columns = flat @ a, flat @ b
        expected = np.swapaxes(_ratio(rows, flat.sum(axis=2, keepdims=True)), 1, 2) @ columns
        return np.asarray(_ratio(((joint - expected) ** 2).sum(axis=2), rows.sum(axis=1)).sum(axis=1))

    def coefficients(self, rows: Sequence[Term], columns: Sequence[Term]) -> Array:
        """Shape (B, rows, columns)."""
        return np.stack([np.stack([self.coefficient(r, c) for c in columns], axis=-1) for r in rows], axis=1)

    def sums_of_squares(self, rows: Sequence[Term]) -> Array:
        """Shape (B, rows)."""
        return np.stack([self.sum_of_squares(row) for row in rows], axis=-1)


def _independent(vectors: Array) -> list[int]:
    """Indices of the rows that raise the rank, in order (Gram-Schmidt with a relative tolerance)."""
    basis: list[Array] = []
    kept = []
    for index, vector in enumerate(vectors):
        norm = float(np.linalg.norm(vector))
        if norm <= 1e-12:
            continue
        rest = vector / norm
        for direction in (*basis, *basis):
            rest = rest - (rest @ direction) * direction
        if float(np.linalg.norm(rest)) > _RANK_TOLERANCE:
            basis.append(rest / np.linalg.norm(rest))
            kept.append(index)
    return kept


@dataclass(frozen=True)
class Components:
    """Variance components of one design.

    Attributes:
        variances: Per term of `TERMS`, raw (may be negative); None where not estimable.
        folded: Per term, the names of the terms that cannot be told apart from it and are contained in it.
        kept: Indices into `TERMS` of the estimable terms; `rows`: the equations used to solve for them.
    """

    variances: tuple[float | None, ...]
    folded: tuple[tuple[str, ...], ...]
    kept: tuple[int, ...]
    rows: tuple[int, ...]

    def __getitem__(self, name: str) -> float | None:
        return dict(zip((t.name for t in TERMS), self.variances, strict=True))[name]


def components(design: Design) -> Components:
    """Point estimates, with the terms that the design cannot separate folded or dropped by a rank check."""
    moments = _Moments(_Features(design), np.ones((1, len(design.strata))))
    left, right = moments.coefficients(TERMS, TERMS)[0], moments.sums_of_squares(TERMS)[0]
    scale = max(1.0, float(design.counts.sum()))
    kept = _independent(left.T / scale)
    rows = sorted(len(TERMS) - 1 - i for i in _independent(left[::-1][:, kept] / scale)) if kept else []
    solution = np.linalg.lstsq(left[np.ix_(rows, kept)], right[rows], rcond=None)[0] if kept else np.zeros(0)
    variances: list[float | None] = [None] * len(TERMS)
    folded: list[list[str]] = [[] for _ in TERMS]
    for position, index in enumerate(kept):
        variances[index] = float(solution[position])
    for index in set(range(len(TERMS))) - set(kept):
        if not kept or np.linalg.norm(left[:, index]) <= 1e-12 * scale:
            continue
        mixture = np.linalg.lstsq(left[np.ix_(rows, kept)], left[rows, index], rcond=None)[0]
        for position, kept_index in enumerate(kept):
            if abs(mixture[position]) > 0.01:
                folded[kept_index].append(TERMS[index].name)
    order = {t.name: k for k, t in enumerate(TERMS)}
    return Components(
        variances=tuple(variances),
        folded=tuple(tuple(sorted(names, key=order.__getitem__)) for names in folded),
        kept=tuple(kept),
        rows=tuple(rows),
    )


def reweighted_components(design: Design, fitted: Components, weights: Array, *, chunk: int = 500) -> Array:
    """Components with instances weighted by `weights` (B, I): shape (B, number of estimable terms).

    Weights that make the system singular give a row of NaN.
    """
    rows, columns = [TERMS[k] for k in fitted.rows], [TERMS[k] for k in fitted.kept]
    features = _Features(design)
    out = []
    for start in range(0, len(weights), chunk):
        moments = _Moments(features, weights[start : start + chunk])
        left = moments.coefficients(rows, columns)
        singular = np.abs(np.linalg.det(left / left.max(axis=(1, 2), keepdims=True))) < 1e-30
        left[singular] = np.eye(len(columns))
        solved = np.linalg.solve(left, moments.sums_of_squares(rows)[..., None])[..., 0]
        solved[singular] = np.nan
        out.append(solved)
    return np.concatenate(out)
