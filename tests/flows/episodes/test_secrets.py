"""A whole faulty run with a server that echoes the key wherever it can: no artefact, output or log holds it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.episodes.support import http_entry, of_kind, open_study, run_study
from tests.flows.models.fault_server import Received, Reply

KEY = "sk-live/ab+cd-0123456789"
ESCAPED = KEY.replace("/", "\\u002f")


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
@pytest.mark.parametrize("last", [401, 200])
def test_no_value_of_the_environment_is_left_behind(
    server: AnsweringServer, tmp_path: Path, adapter: str, last: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"bad key {KEY}", "echoed": f"Bearer {KEY}"}}
    faults = [
        Reply(500, echo, {"x-echo": KEY}),
        Reply(429, str(echo)),
        Reply(200, f'{{"error": {{"message": "{ESCAPED}"}}}}'),
        Reply(503, KEY),
        Reply(body=said(adapter, Turn(f"My key is {KEY}.", calls=(("list_tables", {}),)))),
        Reply(400, echo) if last == 200 else Reply(last, echo),
    ]

    def answer(_request: Received) -> Reply:
        return faults[min(len(server.requests), len(faults)) - 1]

    server.answer_with(answer)
    entry: dict[str, Any] = http_entry(adapter, "", base_url=None, base_url_env="THE_PLACE", api_key_env="THE_KEY")
    study = open_study(tmp_path, {"model": entry}, retry={"http_attempts": 6})
    environ = {"THE_KEY": KEY, "THE_PLACE": f"{server.url}/a-private-place"}
    ran = run_study(study, first=1, environ=environ)
    assert len(server.requests) == 6
    assert all(
        KEY in request.headers["authorization" if adapter == "openai" else "x-api-key"] for request in server.requests
    )
    assert (ran.campaign.halted is not None) is (last == 401)
    if last == 200:
        attempts = of_kind(ran.events(), "attempt")
        assert [event["status"] for event in attempts] == [500, 429, 200, 503, 200, 400]
        assert "[key]" in attempts[0]["detail"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    texts = [path.read_bytes() for path in files]
    texts += [text.encode() for text in (ran.output, caplog.text, repr(ran.campaign.halted), str(ran.campaign.halted))]
    for value in (KEY, ESCAPED, "0123456789", "a-private-place"):
        assert not [text[:200] for text in texts if value.encode() in text]
