"""Prefect as this project uses it: its settings, the server that a study brings along, running a flow to its end.

Every task is async: a sync task under an async flow brings a thread, an event loop and a client of its own, at five
times the CPU time.
"""

from flows.orchestration.artifacts import artifact_key, publish, shown_progress
from flows.orchestration.claims import claim
from flows.orchestration.cluster import Ship, cluster
from flows.orchestration.deploying import deploy, work
from flows.orchestration.ending import run_to_end
from flows.orchestration.server import serving
from flows.orchestration.settings import labels, report_as, reported_to
from flows.orchestration.sharing import is_shared, set_limits, take_slots
from flows.orchestration.standing import serve

__all__ = [
    "Ship",
    "artifact_key",
    "claim",
    "cluster",
    "deploy",
    "is_shared",
    "labels",
    "publish",
    "report_as",
    "reported_to",
    "run_to_end",
    "serve",
    "serving",
    "set_limits",
    "shown_progress",
    "take_slots",
    "work",
]
