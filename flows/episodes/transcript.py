"""A transcript: one JSON event per line, written as the episode goes, everything that a verdict or an audit needs.

    episode   first line: transcript_version, episode_id, attempt, model, model_id, cell_id, family, difficulty, axis,
              level, instance_id, instance_seed, variant_id, run_seed, temperature, scaffold, scaffold_version,
              adapter_version, git_sha, manifest_hash, scientific_hash, started_at
    conversation
              only where several tasks share a conversation: conversation_id, conversation_position (from 1), tasks (all
              of the conversation: instance_id and episode_id, in their order)
    opening   tools: as the model is told about them
    request   step, added, temperature (as asked for), settings (every field of the body as sent but the conversation
              and the tools), bytes, body_sha256, normal_sha256. `added` holds the messages since the request
              before, in the scaffold's own form: all `added` in a row are the whole conversation, over the transcripts
              of all of its tasks where several share it (the first request of a later task adds how the one before it
              ended). The hashes are of the canonical JSON of the body as sent, and of the body without its provider's
              envelope
    attempt   step, attempt, latency_s, error (null: answered), status (of the HTTP answer; null: there was none),
              cost_usd (null: unknown); of a failure also detail, raw (what the server said, without headers) and
              wait_s (seconds before the next attempt; null: there is none)
    answer    step, text, calls, stop, usage (null: not said), raw (the answer as it came)
    result    step, call_id, name (as the model called it), call (in canonical names; null for a call that was not
              carried out or a tool that does not exist), content, is_error
    end       last line: outcome, kind (of an infra_error), detail, steps, final_state, calls (carried out, in
              canonical names), trajectory_hash, trajectory_length, tokens_in, tokens_cached, tokens_out,
              tokens_reasoning and cost_usd (null: not known of every call), usage_known, http_attempts, wall_clock_s

A step is: request, one or more attempts, answer, the results of its calls. Lines are ASCII: control characters, lone
surrogates and right-to-left text are escaped and survive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.errors import StoreError
from flows.files import LineFile, storage
from flows.manifest import Expectation
from tasks_env.canonical import canonical_json

TRANSCRIPT_VERSION = 2

_BYTES_PER_TOKEN = 4
_OVERHEAD_PER_STEP = 1500
"""Bytes per step beside the conversation itself: hashes, attempts, usage, the raw answer's envelope."""


def expected_bytes(expected: Expectation) -> float:
    """Expected size of one transcript: the whole conversation once, and what every step adds around it."""
    conversation = 2 * expected.tokens_in / expected.steps + 2 * expected.tokens_out
    return _BYTES_PER_TOKEN * conversation + _OVERHEAD_PER_STEP * expected.steps


class TranscriptWriter(LineFile):
    """Writes events; `close` vouches for them."""

    def record(self, event: str, **fields: Any) -> None:
        """Append one event. Raises `StoreError`."""
        self.append(canonical_json({"event": event, **fields}))


def read_transcript(path: Path) -> list[dict[str, Any]]:
    """All events. Raises `StoreError` for a missing file or a line that is no JSON."""
    return list(_events(path))


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with storage(path):
        lines = path.read_bytes().splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError:
            raise StoreError(path, f"line {number} is not JSON: the transcript was cut off or edited") from None
