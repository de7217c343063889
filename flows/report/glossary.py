"""What each table of an analysis is about, and the columns of the data that the figures plot."""

from __future__ import annotations

NO_DOUBT, NOTHING_REGISTERED = "ok", "none"
"""Codes in the table `preregistration` that are no warnings: all is well, or imported results without a text."""

TABLES = {
    "coverage": "One row per model and cell of the grid, or of the rows if they name none: what was planned, what was "
    "scored.",
    "preregistration": "One row per doubt about the registration of the hypotheses; `ok` if there is none, `none` if "
    "nothing was registered for imported results.",
    "registered_texts": "One row per committed text of HYPOTHESES.md, with the rows of the results that it judges.",
    "pass_rates": "Pass rate of every axis and level, by cell, stratum, model and over all.",
    "partial_scores": "The same of the partial score, where a family grades parts of a task.",
    "deltas": "Changes of the pass rate from the baseline, per axis, level and mean of levels, at every scope.",
    "paraphrase_spread": "Range over the levels of an axis (paraphrases above all) beside its permutation null.",
    "rank_stability": "Agreement of the models' order with that of the baseline, beside what noise alone does to it.",
    "pair_gaps": "Gap between every two models at the baseline and at a level, its change, and confirmed flips.",
    "negative_controls": "Changes on axes that cannot move a score, and the noise floor they measure.",
    "consistency": "pass^k over run seeds, and shares of instances whose outcome flips.",
    "trajectory_stability": "Shares of pairs of episodes of an instance with the same path, and the same outcome.",
    "costs": "Money per episode and per solved task.",
    "infra_errors": "Rates of infrastructure errors, with bounds on the pass rate.",
    "variance_components": "Where the variance of an episode's outcome comes from.",
    "power_exact": "Instances that a difference needs, for exactly these prompts.",
    "power_general": "Instances that a difference between two models needs, for any equivalent prompt.",
    "detectable": "Smallest difference that the study's own instances find, also with other numbers of runs.",
    "verdicts": "One row per registered hypothesis: registered claim, estimate, intervals, labels.",
}
"""Table -> what it holds."""

_MODEL, _LEVEL = "model entry, or `all` for their mean", "level of the axis"
_RATE = {
    "pass_rate": "pass rate",
    "ci_low": "lower end of its 95% interval",
    "ci_high": "upper end of its 95% interval",
}

FIGURE_COLUMNS: dict[str, dict[str, str]] = {
    "deltas_forest": {
        "group": "axis and level, in words",
        "axis": "perturbation axis",
        "level": "level of the axis, or `mean` for the mean over its levels",
        "model": _MODEL,
        "delta": "changed minus baseline pass rate",
        "ci_low": "lower end of its 95% interval",
        "ci_high": "upper end of its 95% interval",
        "noise_floor": "half-width of the grey band",
        "control": "whether the axis is a negative control",
        "smallest_effect": "smallest effect of interest: the dashed lines",
    },
    "paraphrase_strip": {
        "model": _MODEL,
        "level": "paraphrase, or `baseline`",
        **_RATE,
        "range": "largest minus smallest pass rate over paraphrases, on every row of the model",
        "null_mean": "mean of that range by noise alone",
        "null_q95": "its 95% quantile by noise alone",
        "p": "share of permutations with at least the observed range",
    },
    "rank_slopes": {
        "axis": "perturbation axis",
        "level": f"{_LEVEL}, or `baseline`",
        "model": "model entry",
        **_RATE,
        "flips": "models with which the order of the baseline is reversed, confirmed",
        "concordance": "C: agreement of the models' order with the baseline, on every row of the level",
        "concordance_floor": "C0: the same under permutation of the condition labels",
    },
    "variance_components": {
        "term": "source of variance; x joins the factors of an interaction",
        "variance": "variance component, raw: may be negative",
        "share": "share of the sum over terms, negatives taken as 0",
        "sd": "its square root, negatives taken as 0",
        "sd_lo": "square root of the lower end of its interval, negatives taken as 0",
        "sd_hi": "square root of the upper end of its interval, negatives taken as 0",
        "includes": "terms that the design cannot separate from this one",
        "reason": "why the component or its interval is null",
    },
    "power_curves": {
        "curve": "this exact prompt, or any equivalent one, at the estimate or the upper limit of its variance",
        "prompts": "prompts and tool sets per instance",
        "delta": "difference between two models to find, as a fraction",
        "n": "instances",
        "power": "chance of finding it",
        "ceiling": "that chance with endless instances",
        "study_n": "the study's instances",
    },
}
"""Figure -> column of its Parquet file -> meaning."""
