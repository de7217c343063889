"""Running a flow from a command line to its end, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The flow's result.

    Raises:
        KeyboardInterrupt: the process was told to end, by Ctrl-C or by SIGTERM.
    """
    from prefect.exceptions import TerminationSignal

    try:
        return asyncio.run(work)
    except TerminationSignal as signal:
        raise KeyboardInterrupt from signal
