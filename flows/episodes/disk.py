"""How much of the disk episodes take, from what one is expected to be: nothing is measured here.

An episode's bytes are linear in its steps, its tokens per request and its output tokens. The coefficients are fitted to
the reference solutions of the shipped families, played by the scripted agent and, with 0 to 240 words of text before
each call, through both HTTP adapters; tokens count 4 bytes. Each family and difficulty alone is met within 13%
(`tests/flows/episodes/test_disk.py` keeps them within 15%).
"""

from __future__ import annotations

from flows.grid import Cell
from flows.manifest import Expectation, Manifest, Model, ScriptedModel

_PER_STEP = 1450
"""Hashes, attempts, results and their repetition in the next request."""
_PER_SERVED_STEP = 550
"""Envelope of a provider's raw answer."""
_PER_REQUEST_TOKEN = 5.2
"""Of a request of average length: system prompt, tools and task once, and the conversation as it grows."""
_PER_OUTPUT_TOKEN = 6.2
_PER_SERVED_OUTPUT_TOKEN = 3.1
"""An answer's text stands in the raw answer once more."""
_AROUND = 1850
"""Marker, two lines of the ledger, the journal's row, a row of results.parquet."""

_PER_INSTANCE = 5000
_PER_VARIANT = 6300
"""Of the shipped families on average."""

_PER_TASK_RUN = 24_400
"""Of the embedded Prefect server's database, measured between 200 and 800 episodes."""


def transcript_bytes(expected: Expectation, entry: Model) -> float:
    """Expected size of one transcript."""
    served = not isinstance(entry, ScriptedModel)
    per_step = _PER_STEP + served * _PER_SERVED_STEP
    per_output_token = _PER_OUTPUT_TOKEN + served * _PER_SERVED_OUTPUT_TOKEN
    return (
        per_step * expected.steps
        + _PER_REQUEST_TOKEN * expected.tokens_in / expected.steps
        + per_output_token * expected.tokens_out
    )


def run_bytes(manifest: Manifest, episodes: dict[str, int]) -> float:
    """Expected size of all that is written for so many episodes of each model, Prefect's own database included."""
    files = sum(
        count * (transcript_bytes(manifest.expectation, manifest.models[model]) + _AROUND)
        for model, count in episodes.items()
    )
    return files + tracking_bytes(manifest, sum(episodes.values()))


def tracking_bytes(manifest: Manifest, episodes: int) -> float:
    """Expected growth of the embedded Prefect server's database; tasks of cells are too few to count."""
    return _PER_TASK_RUN * episodes if manifest.execution.tracking == "per_episode" else 0.0


def set_bytes(manifest: Manifest, cells: list[Cell]) -> float:
    """Expected size of the instances and variants of the cells."""
    samples = {(cell.family, cell.difficulty, cell.sample) for cell in cells}
    return manifest.grid.instances * (len(samples) * _PER_INSTANCE + len(cells) * _PER_VARIANT)
