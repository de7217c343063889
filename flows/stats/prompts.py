"""How far a model's score moves from prompt to prompt: what limits a claim "for any equivalent prompt".

A study's score is a mean over fixed strata with equal weight. Redraw the prompts (and tool sets), and the difference
of two models, averaged over L of them, varies with 2 (sigma_ML² + sigma_MLS²/S) / L: model x level in all strata alike,
and model x level within each of the S strata. Prompts are written for each family, so that the second part can be all
of it, and sigma_ML² alone sets no floor then. With an SD of 8 points within each of six strata, 100 instances in each,
four models and ten levels, tests of a true claim rejected it in 26% of 400 simulated studies at a nominal 5% when
sigma_ML² alone was taken for the variance over prompts, in 6% with both (`benchmarks/analysis.py --prompts`).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri

from flows.stats.henderson import Array, Design

PROMPTS = "model x prompt"
PROMPT_INTERVAL = "Graybill and Wang, levels at random"


def model_level_scores(design: Design) -> Array | None:
    """Mean outcome per model and level with equal weight on strata, shape (models, levels); null if one is missing."""
    strata = int(design.strata.max()) + 1
    totals = [(design.sums[rows].sum(axis=0), design.counts[rows].sum(axis=0)) for rows in _rows(design, strata)]
    if any((counts == 0).any() for _, counts in totals):
        return None
    return np.asarray(np.mean([sums / counts for sums, counts in totals], axis=0))


def _rows(design: Design, strata: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return [np.flatnonzero(design.strata == stratum) for stratum in range(strata)]


def prompt_interval(variance: float, scores: Array, df_noise: int, confidence: float) -> tuple[float, float]:
    """Interval for the variance of scores over prompts, the levels being a sample of them.

    The interaction mean square of the scores estimates the variance plus the noise of a score; each has its own
    chi-squared error. Source: Graybill and Wang, Journal of the American Statistical Association 75 (1980).

    Args:
        variance: The estimate, noise already subtracted.
        scores: Shape (models, levels), at least two of each.
        df_noise: Of the noise, per degree of freedom of the interaction: instances (or conversations) minus strata.
    """
    models, levels = scores.shape
    df = (models - 1) * (levels - 1)
    residual = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    observed = float((residual**2).sum()) / df
    noise = max(observed - variance, 0.0)
    tail = (1 - confidence) / 2

    def shrunk(of: int) -> float:
        return 1 - of / float(chdtri(of, tail))

    def stretched(of: int) -> float:
        return of / float(chdtri(of, 1 - tail)) - 1

    low = math.hypot(shrunk(df) * observed, stretched(df * df_noise) * noise)
    high = math.hypot(stretched(df) * observed, shrunk(df * df_noise) * noise)
    return variance - low, variance + high
