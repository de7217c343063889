from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flows.episodes.answering import AnsweringServer


@pytest.fixture(scope="session")
def _running_answering_server() -> Iterator[AnsweringServer]:
    server = AnsweringServer()
    with server.running():
        yield server


@pytest.fixture
def server(_running_answering_server: AnsweringServer) -> AnsweringServer:
    """A server without answers."""
    _running_answering_server.script()
    return _running_answering_server
