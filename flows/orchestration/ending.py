"""Running a flow from a command line to its end, however it ends."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

DRAIN_WITHIN_S = 30.0


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The flow's result, after what Prefect's client still has to report has reached the server.

    Raises:
        KeyboardInterrupt: the process was told to end, by Ctrl-C or by SIGTERM.
    """
    from prefect.events.worker import EventsWorker
    from prefect.exceptions import TerminationSignal

    # Its progress in draining is none of the user's business, and it logs outside Prefect's own loggers.
    logging.getLogger(EventsWorker.__name__).setLevel(logging.CRITICAL)
    # Prefect alone is half a million objects, which live to the end: to look at them again and again takes a tenth of a
    # run's time.
    gc.freeze()
    try:
        return asyncio.run(work)
    except TerminationSignal as signal:
        raise KeyboardInterrupt from signal
    finally:
        EventsWorker.drain_all(timeout=DRAIN_WITHIN_S)
