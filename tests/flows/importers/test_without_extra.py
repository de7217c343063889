"""Without the optional extra an inspect_ai log is refused with the way to get it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.flows.importers.conftest import Refusal, written


@pytest.mark.parametrize("name", ["one.eval", "one.json"])
def test_the_message_says_how_to_install_it(
    tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    assert "pip install 'agent-bench-stability[inspect]'" in refusal("inspect", written(tmp_path, "{}", name))
