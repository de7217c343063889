"""What a worker of a cluster started here loads first: an interrupt is for the study, which then ends its workers."""

from __future__ import annotations

import signal


def dask_setup(_worker: object) -> None:
    """Called by Dask in the worker's main thread, before it takes work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
