from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flows.models.fault_server import FaultServer


@pytest.fixture(scope="session")
def _running_fault_server() -> Iterator[FaultServer]:
    with FaultServer().running() as server:
        yield server


@pytest.fixture
def server(_running_fault_server: FaultServer) -> FaultServer:
    """A fault server without a script."""
    _running_fault_server.script()
    return _running_fault_server
