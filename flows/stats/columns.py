"""Typed, documented result tables: every statistics module declares its columns once, as fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd


class Field(NamedTuple):
    """One column of a result table: pandas dtype and meaning."""

    dtype: str
    meaning: str


Fields = Mapping[str, Field]

SCOPE_FIELDS: dict[str, Field] = {
    "scope": Field(
        "str",
        "`cell`: one model in one stratum; `stratum`: mean over models in one stratum; `model_family` and `family`: "
        "equal-weight mean over the strata of one family, for one model and over models, where any family has several; "
        "`model`: equal-weight mean over strata for one model; `overall`: mean over the models",
    ),
    "model": Field("str", "model entry, or `all`"),
    "family": Field("str", "task family, or `all`"),
    "difficulty": Field("str", "difficulty, or `all`"),
}
"""The columns that say over what a row averages."""


def build_table(rows: Iterable[Mapping[str, Any]], fields: Fields) -> pd.DataFrame:
    """Rows as a table with exactly the declared columns and dtypes; a key that a row lacks is null.

    Raises:
        KeyError: a row has a key that is not declared.
    """
    rows = list(rows)
    for row in rows:
        if unknown := row.keys() - fields.keys():
            raise KeyError(f"undeclared columns {sorted(unknown)}; declared: {', '.join(fields)}")
    table = pd.DataFrame(rows, columns=list(fields), dtype=object)
    return table.astype({name: field.dtype for name, field in fields.items()})


def meanings(fields: Fields) -> dict[str, str]:
    """Column name to meaning."""
    return {name: field.meaning for name, field in fields.items()}
