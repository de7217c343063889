from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_env.canonical import canonical_json, content_hash

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_the_form_is_sorted_dense_and_ascii() -> None:
    assert canonical_json({"b": [1, 2.5, None], "a": {"é": True}}) == r'{"a":{"\u00e9":true},"b":[1,2.5,null]}'


@given(values)
def test_it_reads_back_as_the_same_data(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(), scalars, max_size=6))
def test_the_order_of_insertion_does_not_matter(value: dict[str, object]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_a_lone_surrogate_survives() -> None:
    assert json.loads(canonical_json("\ud800")) == "\ud800"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": [number]})


def test_the_hash_is_that_of_the_canonical_bytes() -> None:
    digest = hashlib.sha256(b'{"a":1}').hexdigest()
    assert content_hash({"a": 1}) == digest
    assert content_hash({"a": 1}, 12) == digest[:12]
