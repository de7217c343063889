"""Measured properties of the methods, as the report's appendix prints them. Light to import."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Calibration:
    """Measured coverage, size, power and bias of the methods on data with known truth."""

    rows: pd.DataFrame
    """Any columns; each row is one measured property."""
    command: str
    """What made it."""
