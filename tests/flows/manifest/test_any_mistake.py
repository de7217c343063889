"""Whatever stands anywhere in a manifest: it loads, or it is refused by name. Nothing else comes out."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from flows.errors import ConfigurationError
from flows.manifest import load_manifest, manifest_hash, scientific_hash
from tests.flows.small_study import REMOVED, changed, document


def paths_in(content: Any, prefix: str = "") -> list[str]:
    """Every place of the small manifest, as slash-separated keys."""
    if not isinstance(content, dict):
        return []
    found = []
    for key, value in content.items():
        found += [f"{prefix}{key}", *paths_in(value, f"{prefix}{key}/")]
    return found


PLACES = paths_in(document())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**70),
    st.floats(),
    st.sampled_from(["", "easy", "query", "paraphrase", "p1", "steady", "scripted", "0.7", "\x00", "../x", "full"]),
    st.text(max_size=6),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["easy", "query", "x", "order", "shuffled", ""]), SCALARS, max_size=2),
    st.just(REMOVED),
)


def as_yaml(content: dict[str, Any]) -> str:
    """JSON, but for the numbers that only YAML can write."""
    text = json.dumps(content)
    for python, yaml in (("-Infinity", "-.inf"), ("Infinity", ".inf"), ("NaN", ".nan")):
        text = text.replace(python, yaml)
    return text


@settings(max_examples=60, deadline=None)
@example({"grid/axes/paraphrase": ["\U00010000", "\U00010000"]})  # escaped as two halves that YAML does not join
@given(st.dictionaries(st.sampled_from(PLACES), VALUES, min_size=1, max_size=1))
def test_one_change_anywhere_loads_or_is_refused_with_the_files_path(changes: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "experiments.yaml")
        path.write_text(as_yaml(changed(document(), changes)), encoding="utf-8")
        try:
            manifest = load_manifest(path)
        except ConfigurationError as error:
            named = str(error).startswith(f"{path}: ")
        else:
            named = len(manifest_hash(manifest)) == len(scientific_hash(manifest)) == 16
        assert named
