"""What tokens cost, and the most that an episode can cost."""

from __future__ import annotations

from flows.manifest import Pricing, Scaffold
from flows.models.messages import Usage

PER_MILLION = 1e-6

ENVELOPE_TOKENS = 2048
"""Allowance for what a provider adds to a request on its own side (its tool-use preamble, role markers)."""


def price(usage: Usage, pricing: Pricing) -> float:
    """USD for one answer; cached reads and cache writes at their own prices where the manifest has them."""
    cached = pricing.input if pricing.cached_input is None else pricing.cached_input
    write = pricing.input if pricing.cache_write is None else pricing.cache_write
    fresh = usage.input_total - usage.input_cached - usage.input_cache_write
    return PER_MILLION * (
        fresh * pricing.input
        + usage.input_cached * cached
        + usage.input_cache_write * write
        + usage.output_total * pricing.output
    )


def call_bound(pricing: Pricing, scaffold: Scaffold) -> float:
    """USD that one model call cannot exceed: every request byte a token, at the dearest input price."""
    dearest = max(pricing.input, pricing.cached_input or 0.0, pricing.cache_write or 0.0)
    tokens_in = scaffold.conversation_bytes + ENVELOPE_TOKENS
    return PER_MILLION * (tokens_in * dearest + scaffold.max_output_tokens * pricing.output)


def episode_bound(pricing: Pricing, scaffold: Scaffold) -> float:
    """USD that one attempt at an episode cannot exceed, as long as each step is billed once.

    A call that may have been billed and must be repeated extends the reservation by `call_bound` first.
    """
    return scaffold.step_cap * call_bound(pricing, scaffold)
