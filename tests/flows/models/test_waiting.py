from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.models.waiting import advised_wait

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def wait(status: Any = 429, **headers: Any) -> float | None:
    return advised_wait(status, {name.replace("_", "-"): value for name, value in headers.items()}, NOW.timestamp())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        (" 0.25 ", 0.25),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90.0),
        ("Sun, 01 Mar 2026 13:01:30 +0100", 90.0),
        ("Sun, 01 Mar 2026 12:01:30 -0000", 90.0),
        ("Sun, 01 Mar 2026 11:59:00 GMT", None),
        ("0", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("9" * 400, None),
        ("1_000", None),
        ("\u0663", None),
        ("", None),
        ("2\x1f", 2.0),
        ("later", None),
        ("Sun, 99 Mar 2026 12:01:30 GMT", None),
        ("Sun, 01 Mar 99999999999999 12:01:30 GMT", None),
    ],
)
def test_retry_after_is_seconds_fractions_or_a_date(text: str, seconds: float | None) -> None:
    assert wait(retry_after=text) == (None if seconds is None else pytest.approx(seconds))


def test_the_sources_are_asked_in_order() -> None:
    every = {"retry_after_ms": "250", "retry_after": "4", "x_ratelimit_reset_requests": "8s"}
    assert wait(**every) == pytest.approx(0.25)
    assert wait(**{**every, "retry_after_ms": "x"}) == pytest.approx(4)
    assert wait(**{**every, "retry_after_ms": "-5", "retry_after": "x"}) == pytest.approx(8)
    assert wait() is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20ms", 0.02),
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("1h2m3.5s", 3723.5),
        ("7.66s", 7.66),
        ("12", 12.0),
        ("2026-03-01T12:00:05Z", 5.0),
        ("2026-03-01T13:00:05+01:00", 5.0),
        ("2026-03-01T11:00:00Z", None),
        ("5 minutes", None),
        ("1s and more", None),
        ("", None),
        ("0s", None),
    ],
)
def test_reset_headers_are_durations_or_times(text: str, seconds: float | None) -> None:
    expected = None if seconds is None else pytest.approx(seconds)
    assert wait(x_ratelimit_reset_tokens=text) == expected
    assert wait(anthropic_ratelimit_output_tokens_reset=text) == expected


def test_the_exhausted_allowance_decides() -> None:
    headers = {
        "x_ratelimit_reset_requests": "600s",
        "x_ratelimit_remaining_requests": "41",
        "x_ratelimit_reset_tokens": "6s",
        "x_ratelimit_remaining_tokens": "0",
    }
    assert wait(**headers) == pytest.approx(6)
    assert wait(**{**headers, "x_ratelimit_remaining_tokens": "12"}) == pytest.approx(600)


def test_reset_headers_say_nothing_about_a_server_error() -> None:
    assert wait(status=500, x_ratelimit_reset_tokens="6s") is None


@given(st.text(), st.text(), st.text())
def test_no_header_breaks_the_reading(first: str, second: str, third: str) -> None:
    seconds = wait(retry_after_ms=first, retry_after=second, x_ratelimit_reset_tokens=third)
    assert seconds is None or 0 < seconds < float("inf")


@given(st.integers(min_value=1, max_value=10**6))
def test_any_later_date_is_its_distance(seconds: int) -> None:
    moment = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert wait(retry_after=moment) == pytest.approx(seconds)
