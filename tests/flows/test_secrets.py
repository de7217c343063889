"""Nothing of a process's environment reaches what a run leaves behind or says, however badly its servers behave.

One run from the command line, in a process of its own with Prefect's own server and database under the root, against a
server that echoes every header it gets in bodies, errors and headers, fails in every way and in the end refuses the
key. Searched for: the value, of eight characters or more, of every environment variable of that process, keys or not;
in every file under the study's folder (Prefect's database and its write-ahead log included), the home and the temporary
folder, in file names and in both output streams; as it is, as JSON escapes it, in UTF-16 and in Base64.

No variable is exempt, `PATH` and `HOME` neither. What a user types into the manifest or the command line may be written
down, so the test gives no variable such a value: manifest and root are relative to the working folder.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.flows.episodes.answering import AnsweringServer, Turn, said
from tests.flows.models.fault_server import Received, Reply
from tests.flows.small_study import open_study, prepare

ROOT = Path(__file__).parents[2]
SHORTEST = 8
CANARIES = {
    "SMALL_STUDY_KEY": "sk-canary-11aa22bb33cc44dd",
    "COOL_KEY": "sk-canary-anthropic/9+8=7",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/canary",
    "GITHUB_TOKEN": "ghp_canary0123456789abcdefABCDEF",
    "DATABASE_URL": "postgres://user:canary-pass@db.internal:5432/x",
    "HTTP_NOTE": "canary with blanks and 'quotes' \"both\"",
    "UNICODE_NOTE": "canary-\u00e4\u00f6\u00fc-\u05e9\u05dc\u05d5\u05dd",
    "USER": "canary-user-name",
    "HOSTNAME": "canary-host-name",
}


class Echo:
    """Repeats the request's headers in as many ways as there are faults; refuses the key after `patience` requests."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.served = 0

    def __call__(self, request: Received) -> Reply:
        self.served += 1
        adapter = "openai" if "chat" in request.path else "anthropic"
        key = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")
        echo = json.dumps(request.headers)
        if self.served > self.patience:
            return Reply(401, {"error": {"message": f"this key is refused: {key} {echo}"}}, {"x-echo": key})
        sound: Any = said(adapter, Turn(f"You sent {echo}", (("submit", {"answer": key}),), number=self.served))
        return [
            Reply(200, sound),
            Reply(400, echo),
            Reply(200, {"error": {"message": echo, "type": key, "code": key}}),
            Reply(200, f"not json {echo}"),
            Reply(429, echo, {"retry-after": key}),
            Reply(200, sound, cut=len(json.dumps(sound)) // 2),
            Reply(503, [echo]),
            Reply(404, {"error": echo}, {"x-echo": key}),
            Reply(200, sound),
            Reply(close=True),
        ][self.served % 10]


def forms(value: str) -> dict[str, bytes]:
    """The ways in which a value may be written down."""
    return {
        "as it is": value.encode(),
        "in JSON": json.dumps(value)[1:-1].encode(),
        "in UTF-16": value.encode("utf-16-le"),
        "in Base64": base64.b64encode(value.encode()).rstrip(b"=")[:-1],
    }


def leaks(environ: Mapping[str, str], places: Mapping[str, bytes]) -> list[str]:
    """Variable, form and place of every value that is found."""
    return [
        f"{name} {form} in {place}"
        for name, value in environ.items()
        if len(value) >= SHORTEST
        for form, data in forms(value).items()
        for place, content in places.items()
        if data in content
    ]


def test_the_search_finds_what_is_there() -> None:
    for name, value in CANARIES.items():
        for form, data in forms(value).items():
            found = leaks(CANARIES, {"file": b"xx" + data + b"yy"})
            assert f"{name} {form} in file" in found
    assert leaks({"SHORT": "1234567"}, {"file": b"1234567"}) == []


def faulty_run(folder: Path, server: AnsweringServer) -> tuple[subprocess.CompletedProcess[bytes], dict[str, str]]:
    """`agent-bench run` on two served models in a process of its own, with canaries all over its environment."""
    home = folder.parent / "home-canary"
    temporary = folder.parent / "tmp-canary"
    for made in (home, temporary):
        made.mkdir()
    limits = {"timeout_s": 5.0, "concurrent_episodes": 4}
    study = open_study(
        folder,
        {
            "grid/models": ["served", "cool"],
            "grid/axes": {"paraphrase": ["p1"]},
            "grid/instances": 3,
            "models/served/base_url": f"{server.url}/v1",
            "models/served/limits": limits,
            "models/cool/base_url": server.url,
            "models/cool/api_key_env": "COOL_KEY",
            "models/cool/limits": limits,
        },
    )
    prepare(study)
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        **CANARIES,
    }
    program = "import sys; from flows.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "run"], cwd=folder, env=environ, capture_output=True, timeout=400, check=False
    )
    return done, environ


@pytest.mark.slow
def test_no_value_of_the_environment_is_left_behind_or_said(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    server = AnsweringServer()
    with server.running():
        server.answer_with(Echo(patience=30))
        done, environ = faulty_run(folder, server)
        requests = list(server.requests)
    assert done.returncode == 3, done.stderr.decode()
    assert b"this key is refused" in done.stderr
    sent = json.dumps([request.headers for request in requests])
    assert CANARIES["SMALL_STUDY_KEY"] in sent
    assert CANARIES["COOL_KEY"] in sent, "both keys were really sent"

    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    names = "\n".join(files)
    database = b"".join(content for name, content in files.items() if "/.prefect/prefect.db" in name)
    assert b"this key is refused" in database, "what went wrong is there to be found"
    assert "._COMPLETE" in names
    assert ".attempt-1.jsonl" in names
    assert any(b"[key]" in content for content in files.values()), "echoes were kept, without the key"
    places = {**files, "standard output": done.stdout, "standard error": done.stderr, "file names": names.encode()}
    assert leaks(environ, places) == []
