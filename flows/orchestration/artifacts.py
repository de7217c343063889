"""Artifacts: what a flow run shows in Prefect's UI beside its states. Only where somebody can see them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from flows.orchestration.sharing import is_shared

REFRESH_S = 5.0
"""Seconds between two looks at the progress of a stage."""


def artifact_key(*names: str) -> str:
    """The names as Prefect wants a key: lowercase letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(names).lower()).strip("-")


async def publish(key: str, markdown: str, description: str) -> None:
    """Show a text in the UI, with the task or flow run that this is called in; the latest of a key comes first."""
    if is_shared():
        from prefect.artifacts import acreate_markdown_artifact

        await acreate_markdown_artifact(markdown, key=key, description=description)


@asynccontextmanager
async def shown_progress(key: str, description: str, percent: Callable[[], float]) -> AsyncIterator[None]:
    """Show how far the block's work is while it runs.

    Args:
        percent: From 0 to 100.
    """
    if not is_shared():
        yield
        return
    from prefect.artifacts import acreate_progress_artifact, aupdate_progress_artifact

    artifact = await acreate_progress_artifact(percent(), key=key, description=description)

    async def keep_up() -> None:
        while True:
            await asyncio.sleep(REFRESH_S)
            await aupdate_progress_artifact(artifact, percent())

    refreshing = asyncio.create_task(keep_up())
    try:
        yield
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing
        await aupdate_progress_artifact(artifact, percent())
