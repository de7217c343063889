"""What the statistics cost, and what the floor under a claim must hold.

    python benchmarks/analysis.py [--bootstrap] [--tables] [--prompts]      without any, the first two

All times are CPU time of one process with one thread in the matrix library. `--prompts` redraws prompts that are
written for each stratum and counts how often a test of a true claim "for any equivalent prompt" rejects it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import hashlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import stdtrit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", action="store_true", help="against scipy.stats.bootstrap on the same cells")
    parser.add_argument("--tables", action="store_true", help="all tables of a synthetic study, twice")
    parser.add_argument("--prompts", action="store_true", help="how often a true claim is rejected, by two floors")
    parser.add_argument("--cells", type=int, default=500, help="of --bootstrap (default %(default)s)")
    parser.add_argument("--instances", type=int, default=50, help="per cell and stratum (default %(default)s)")
    parser.add_argument("--resamples", type=int, default=10_000, help="default %(default)s")
    parser.add_argument("--studies", type=int, default=400, help="of --prompts (default %(default)s)")
    arguments = parser.parse_args()
    chosen = [name for name in ("bootstrap", "tables", "prompts") if getattr(arguments, name)]
    for name in chosen or ["bootstrap", "tables"]:
        print(f"{name}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, {time.strftime('%F %T')}")
        {"bootstrap": bootstrap, "tables": tables, "prompts": prompts}[name](arguments)


def bootstrap(arguments: Any) -> None:
    """Intervals of many cells at once, and by scipy cell by cell."""
    from flows.stats.contrasts import paired_estimates, rate_estimates
    from flows.stats.pooling import Term, pool

    rng = np.random.default_rng(1)
    shape = (arguments.cells, arguments.instances)
    rates = rng.binomial(2, rng.beta(3, 2, size=shape)) / 2
    differences = (rng.binomial(2, 0.6, size=shape) - rng.binomial(2, 0.6, size=shape)) / 2
    size = f"{shape[0]} cells of {shape[1]} instances, {arguments.resamples} resamples"
    for name, estimate, values in (
        ("rates, anchored", rate_estimates, rates),
        ("paired differences, expanded percentile", paired_estimates, differences),
    ):
        cells = [pool([Term(1.0, ("family", "difficulty"), cell)]) for cell in values]

        def ours(estimate: Any = estimate, cells: Any = cells) -> None:
            for one in estimate(cells, seed=1, resamples=arguments.resamples):
                one.interval()

        def theirs(values: Any = values) -> None:
            for cell in values:
                stats.bootstrap((cell,), np.mean, n_resamples=arguments.resamples, method="percentile", rng=rng)

        own, other = _cpu(ours), _cpu(theirs)
        print(f"  {name}: {size}: {own:.2f} s; scipy.stats.bootstrap per cell {other:.2f} s; {other / own:.0f} times")


def tables(arguments: Any) -> None:
    """CPU time of all tables of a study, 100,000 rows by default; whether a second run gives the same bytes."""
    from flows.stats.inference_tables import inference_tables
    from flows.stats.tables import core_tables
    from tests.flows.stats.synthetic import Plan, synthetic_results

    strata = [(family, level) for family in ("filesys", "query", "tabular") for level in ("easy", "hard")]
    plan = Plan(models=("a", "b", "c", "d"), strata=strata, instances=arguments.instances, runs=6, infra_rate=0.01)
    frame = synthetic_results(plan, 1)
    print(f"  {len(frame)} rows, {arguments.resamples} resamples")

    def whole() -> str:
        made = core_tables(frame, seed=1, resamples=arguments.resamples)
        made |= inference_tables(frame, (), seed=1, resamples=arguments.resamples)
        text = "".join(table.to_csv(float_format="%.17g") for table in made.values())
        return hashlib.sha256(text.encode()).hexdigest()

    found: list[str] = []
    seconds = _cpu(lambda: found.append(whole()))
    found.append(whole())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 2**20)
    same = "the same bytes" if found[0] == found[1] else "OTHER BYTES"
    print(f"  all of them {seconds:.1f} s, peak memory {peak:.0f} MiB; a second run gives {same}")


def prompts(arguments: Any) -> None:
    """Share of tests that reject a true claim at a nominal 5%, prompts redrawn in every study."""
    from flows.stats.henderson import Design, components
    from flows.stats.power import _satterthwaite_df

    rng = np.random.default_rng(1)
    levels, instances = 10, 100
    cases = ((6, 4, 0.0, 0.08), (2, 4, 0.0, 0.08), (6, 2, 0.0, 0.05), (6, 4, 0.03, 0.05))
    for strata, models, everywhere, within in cases:
        rejected: dict[str, list[bool]] = {"sigma_ML² alone": [], "both parts": []}
        for _ in range(arguments.studies):
            chance = 0.6 + rng.uniform(-0.15, 0.15, (strata, 1, 1, instances))
            chance = chance + rng.uniform(-0.1, 0.1, (strata, models, 1, instances))
            chance = chance + everywhere * rng.normal(size=(1, models, levels, 1))
            chance = np.clip(chance + within * rng.normal(size=(strata, models, levels, 1)), 0, 1)
            passed = (rng.random(chance.shape) < chance).astype(float)
            sums = passed.transpose(0, 3, 1, 2).reshape(strata * instances, models, levels)
            sums = sums - sums.mean()
            rows = np.repeat(np.arange(strata), instances)
            found = components(Design(np.ones(sums.shape), sums, (sums**2).sum(axis=(1, 2)), rows))
            own, extra = found["model x level"] or 0.0, found["model x level x stratum"] or 0.0
            difference = (passed[:, 0] - passed[:, 1]).mean(axis=1)
            noise = float((difference.var(axis=1, ddof=1) / instances).sum()) / strata**2
            n = strata * instances
            for name, variance in (("sigma_ML² alone", own), ("both parts", own + extra / strata)):
                floor = max(variance, 0.0)
                df = _satterthwaite_df(n, noise * n, floor, levels) if floor > 0 else n - strata
                bound = float(stdtrit(df, 0.975)) * np.sqrt(noise + 2 * floor / levels)
                rejected[name].append(bool(abs(difference.mean()) > bound))
        shares = ", ".join(f"{name} {np.mean(found):.3f}" for name, found in rejected.items())
        print(
            f"  {strata} strata, {models} models, {levels} levels, SD {everywhere:g} in all strata alike, {within:g} "
            f"within each: rejects {shares} of {arguments.studies} (nominal .05)",
            flush=True,
        )


def _cpu(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
