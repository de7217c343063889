"""Limits that processes share through the Prefect server that they all report to: its global concurrency limits.

A limit of so many units per minute is one of so many slots that decay within a minute, so after a pause a minute's
worth may be taken at once, as from a bucket that is full. Whoever starts sets the limits as its manifest has them.

An embedded server belongs to one study process, which has nobody to share with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from flows.errors import StudyError
from flows.orchestration.settings import API_URL, EMBEDDED


class LimitMissing(StudyError):
    """A shared limit that is to be taken from is not there, or cannot be asked: nothing is sent without it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"Prefect's global concurrency limit {name!r}, which keeps all processes together below the provider's "
            f"rate, {problem}; see that the server of {API_URL} is up and that nobody deletes the limit, then run "
            "again: it is made anew from the manifest, and finished episodes are kept"
        )


def is_shared(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether other processes may report to the same server."""
    return bool(environ.get(API_URL)) and EMBEDDED not in environ


async def set_limits(per_minute: Mapping[str, int]) -> list[str]:
    """Make the limits of these names, so many slots per minute each. Returns what was changed for other processes too.

    Raises:
        LimitMissing: the server refuses, or cannot be reached.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

    changes = []
    async with get_client() as client:
        for name, slots in per_minute.items():
            decay = slots / 60
            try:
                try:
                    found = await client.read_global_concurrency_limit_by_name(name)
                except ObjectNotFound:
                    made = GlobalConcurrencyLimitCreate(name=name, limit=slots, slot_decay_per_second=decay)
                    try:
                        await client.create_global_concurrency_limit(made)
                        continue
                    except ObjectAlreadyExists:  # another process was as fast
                        found = await client.read_global_concurrency_limit_by_name(name)
                if (found.limit, found.slot_decay_per_second) != (slots, decay):
                    await client.upsert_global_concurrency_limit_by_name(name, slots, decay)
                    changes.append(f"{name}: from {found.limit} to {slots} slots per minute")
            except Exception as error:
                raise LimitMissing(name, f"cannot be set ({type(error).__name__})") from error
    return changes


async def take_slots(name: str, slots: int) -> None:
    """Return once the server has granted so many slots.

    Raises:
        LimitMissing: there is no such limit, or the server cannot be asked.
    """
    from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError, rate_limit

    try:
        await rate_limit(name, occupy=slots, strict=True)
    except ConcurrencySlotAcquisitionError as error:
        cause = error.__cause__
        raise LimitMissing(name, f"cannot be asked ({type(cause).__name__})" if cause else "is gone") from error
