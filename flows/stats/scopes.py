"""Over what a row averages: one cell, the models of a stratum, a family or everything, the strata of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flows.stats.cells import ALL, ScoreCube, Stratum


@dataclass(frozen=True)
class Scope:
    """The models (as indices) and strata that one row averages over."""

    name: str
    """`cell`, `stratum`, `family`, `model_family` (one model in one family), `model` or `overall`."""
    models: tuple[int, ...]
    strata: tuple[Stratum, ...]

    @property
    def one_model(self) -> bool:
        """Whether it is about a single model, and not a mean over models."""
        return self.name in ("cell", "model_family", "model")

    def labels(self, cube: ScoreCube) -> dict[str, str]:
        """Values of the scope's columns."""
        one_stratum = self.name in ("cell", "stratum")
        one_family = one_stratum or self.name in ("model_family", "family")
        return {
            "scope": self.name,
            "model": cube.models[self.models[0]] if self.one_model else ALL,
            "family": self.strata[0].family if one_family else ALL,
            "difficulty": self.strata[0].difficulty if one_stratum else ALL,
        }


def overall_scope(cube: ScoreCube) -> Scope:
    """Every model and stratum."""
    return Scope("overall", tuple(range(len(cube.models))), cube.strata)


def all_scopes(cube: ScoreCube) -> Iterator[Scope]:
    """The overall scope, then each model, family, stratum, model in a family and cell; none if there is no row.

    Where no family has several difficulties, its stratum is the family, and is not there twice.
    """
    if not cube.models:
        return
    everything = overall_scope(cube)
    yield everything
    for model in everything.models:
        yield Scope("model", (model,), cube.strata)
    families = _families(cube)
    for strata in families:
        yield Scope("family", everything.models, strata)
    for stratum in cube.strata:
        yield Scope("stratum", everything.models, (stratum,))
    for model in everything.models:
        for strata in families:
            yield Scope("model_family", (model,), strata)
    for model in everything.models:
        for stratum in cube.strata:
            yield Scope("cell", (model,), (stratum,))


def _families(cube: ScoreCube) -> list[tuple[Stratum, ...]]:
    """The strata of each family; empty where no family has several."""
    names = sorted({stratum.family for stratum in cube.strata})
    families = [tuple(stratum for stratum in cube.strata if stratum.family == name) for name in names]
    return families if any(len(strata) > 1 for strata in families) else []


class Share(NamedTuple):
    """One cell's weight in an average."""

    weight: float
    model: int
    stratum: Stratum
    level: str


def equal_shares(scope: Scope, levels: Sequence[str], has: Callable[[int, Stratum, str], bool]) -> tuple[Share, ...]:
    """Equal weights over models, within a model over levels, within a level over strata, for cells that exist.

    Cells that do not exist are left out and the weights renormalised; the result is empty if none does.
    """
    present: dict[int, dict[str, list[Stratum]]] = {}
    for model in scope.models:
        for level in levels:
            strata = [stratum for stratum in scope.strata if has(model, stratum, level)]
            if strata:
                present.setdefault(model, {})[level] = strata
    return tuple(
        Share(1 / len(present) / len(by_level) / len(strata), model, stratum, level)
        for model, by_level in present.items()
        for level, strata in by_level.items()
        for stratum in strata
    )


def missing_strata(scope: Scope, levels: Sequence[str], shares: Sequence[Share], cube: ScoreCube) -> tuple[str, ...]:
    """What an average lacks: strata that no cell has, else `model/level/stratum` of single absent cells."""
    have = {(share.model, share.level, share.stratum) for share in shares}
    missing = []
    for stratum in scope.strata:
        absent = [(m, level) for m in scope.models for level in levels if (m, level, stratum) not in have]
        if len(absent) == len(scope.models) * len(levels):
            missing.append(str(stratum))
        else:
            missing.extend(f"{cube.models[m]}/{level}/{stratum}" for m, level in absent)
    return tuple(missing)
