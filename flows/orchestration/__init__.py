"""Prefect as this project uses it: its settings, the server that a study brings along, running a flow to its end.

Every task is async: a sync task under an async flow brings a thread, an event loop and a client of its own, at five
times the CPU time.
"""

from flows.orchestration.ending import run_to_end
from flows.orchestration.server import serving
from flows.orchestration.settings import labels
from flows.orchestration.sharing import is_shared, set_limits, take_slots

__all__ = ["is_shared", "labels", "run_to_end", "serving", "set_limits", "take_slots"]
