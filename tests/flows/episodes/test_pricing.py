"""What tokens cost, by hand, and bounds that bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.episodes.pricing import ENVELOPE_TOKENS, call_bound, episode_bound, price
from flows.manifest import Pricing, Scaffold
from flows.models import anthropic, openai
from flows.models.messages import Usage
from tests.flows.episodes.support import SCAFFOLD

FULL = Pricing(input=3.0, cached_input=0.3, cache_write=3.75, output=15.0)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(input_total=1_000_000, output_total=0), 3.0),
        (Usage(input_total=0, output_total=1_000_000), 15.0),
        (Usage(input_total=1_000_000, input_cached=1_000_000, output_total=0), 0.3),
        (Usage(input_total=1_000_000, input_cache_write=1_000_000, output_total=0), 3.75),
        # 200 fresh at 3, 700 cached at 0.3, 100 written at 3.75, 50 out (20 of them reasoning, in the price) at 15.
        (
            Usage(input_total=1000, input_cached=700, input_cache_write=100, output_total=50, output_reasoning=20),
            (600 + 210 + 375 + 750) / 1e6,
        ),
        (Usage(input_total=0, output_total=0), 0.0),
    ],
)
def test_prices_by_hand(usage: Usage, usd: float) -> None:
    assert price(usage, FULL) == pytest.approx(usd, rel=1e-12)


def test_without_prices_of_their_own_cached_and_written_tokens_cost_what_input_costs() -> None:
    usage = Usage(input_total=1000, input_cached=700, input_cache_write=100, output_total=50)
    assert price(usage, Pricing(input=3.0, output=15.0)) == pytest.approx((3000 + 750) / 1e6)


def test_a_free_cache_is_free_and_not_at_the_input_price() -> None:
    usage = Usage(input_total=1000, input_cached=1000, output_total=0)
    assert price(usage, Pricing(input=3.0, cached_input=0.0, output=15.0)) == 0.0


def test_the_same_tokens_cost_the_same_from_both_providers() -> None:
    one = openai.read_usage(
        {
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 60,
                "prompt_tokens_details": {"cached_tokens": 800},
                "completion_tokens_details": {"reasoning_tokens": 40},
            }
        }
    )
    other = anthropic.read_usage({"usage": {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 60}})
    assert one is not None
    assert other is not None
    assert price(one, FULL) == price(other, FULL) == pytest.approx((600 + 240 + 900) / 1e6)


def test_bounds_by_hand() -> None:
    settings = Scaffold.model_validate({**SCAFFOLD, "conversation_bytes": 10_000, "max_output_tokens": 100})
    assert call_bound(FULL, settings) == pytest.approx(((10_000 + ENVELOPE_TOKENS) * 3.75 + 100 * 15) / 1e6)
    assert episode_bound(FULL, settings) == pytest.approx(4 * call_bound(FULL, settings))


PRICES = st.floats(0, 1000)


@given(
    pricing=st.builds(
        Pricing,
        input=PRICES,
        output=PRICES,
        cached_input=st.none() | PRICES,
        cache_write=st.none() | PRICES,
    ),
    size=st.integers(4096, 10**6),
    output=st.integers(16, 10**5),
    data=st.data(),
)
def test_no_answer_within_the_limits_costs_more_than_its_bound(
    pricing: Pricing, size: int, output: int, data: st.DataObject
) -> None:
    settings = Scaffold.model_validate({**SCAFFOLD, "conversation_bytes": size, "max_output_tokens": output})
    total = data.draw(st.integers(0, size + ENVELOPE_TOKENS))
    cached = data.draw(st.integers(0, total))
    usage = Usage(
        input_total=total,
        input_cached=cached,
        input_cache_write=data.draw(st.integers(0, total - cached)),
        output_total=data.draw(st.integers(0, output)),
    )
    bound = call_bound(pricing, settings)
    assert 0 <= price(usage, pricing) <= bound * (1 + 1e-12)
