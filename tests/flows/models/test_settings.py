"""Settings: what is asked for is sent, or refused before any spend; nothing is dropped.

Facts covered: the field of the output limit, the role of the system message, temperature with its range and the
models that accept none, parallel calls (only with tools), replay of reasoning; safe defaults by adapter; settings that
mean nothing to an adapter are refused; what was sent can be read off the body.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from flows.errors import ConfigurationError
from flows.manifest import load_manifest
from flows.manifest.schema import CAPABILITY_DEFAULTS, HttpModel
from flows.models import HTTP_ADAPTERS, anthropic, openai
from flows.models.envelope import normal_form, normal_hash, normalise, sent_settings
from tests.flows.models.support import ADAPTERS, TOOLS, conversation, entry
from tests.flows.small_study import write_manifest

MODULES: dict[str, Any] = {"openai": openai, "anthropic": anthropic}
LIMIT = 64


def body(
    adapter: str, *, temperature: float | None = 0.0, tools: Any = TOOLS, parallel: bool = True, **able: Any
) -> Any:
    model = entry(adapter, capabilities=able)
    return MODULES[adapter].request_body(model, LIMIT, conversation(), tools, temperature, parallel)


def test_every_adapter_has_its_defaults() -> None:
    assert CAPABILITY_DEFAULTS.keys() == HTTP_ADAPTERS.keys()
    able = {adapter: entry(adapter).capabilities for adapter in ADAPTERS}
    assert able["openai"].model_dump() == {
        "temperature": True,
        "max_temperature": 2.0,
        "token_limit_field": "max_tokens",
        "parallel_tool_calls": False,
        "system_role": "system",
        "replay_reasoning": False,
    }
    changed = {"max_temperature": 1.0, "parallel_tool_calls": True}
    assert able["anthropic"].model_dump() == {**able["openai"].model_dump(), **changed}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_defaults_survive_a_round_trip_and_give_way_to_what_is_said(adapter: str) -> None:
    model = entry(adapter)
    assert HttpModel.model_validate(model.model_dump()) == model
    said = entry(adapter, capabilities={"max_temperature": 0.5})
    assert said.capabilities.max_temperature == 0.5
    assert said.capabilities.parallel_tool_calls == model.capabilities.parallel_tool_calls


@pytest.mark.parametrize(
    "able", [{"token_limit_field": "max_completion_tokens"}, {"system_role": "developer"}, {"replay_reasoning": True}]
)
def test_a_capability_that_means_nothing_to_the_adapter_is_refused(able: dict[str, Any]) -> None:
    entry("openai", capabilities=able)
    with pytest.raises(ValidationError, match=f"{next(iter(able))}: only for the adapter openai"):
        entry("anthropic", capabilities=able)


@pytest.mark.parametrize("capabilities", [None, 3, [], {"temprature": False}, {"temperature": "yes"}])
def test_capabilities_of_another_shape_are_refused(capabilities: Any) -> None:
    with pytest.raises(ValidationError, match="capabilities"):
        entry("openai", capabilities=capabilities)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0, None])
def test_what_is_asked_for_is_sent(adapter: str, temperature: float | None) -> None:
    sent = body(adapter, temperature=temperature)
    asked = {} if temperature is None else {"temperature": temperature}
    assert sent_settings(sent) == {"model": "some-model", "max_tokens": LIMIT, **asked}


def test_sent_settings_are_everything_but_the_conversation_and_the_tools() -> None:
    sent = body("openai", token_limit_field="max_completion_tokens", parallel_tool_calls=True, parallel=False)
    assert sent_settings(sent) == {
        "model": "some-model",
        "temperature": 0.0,
        "max_completion_tokens": LIMIT,
        "parallel_tool_calls": False,
    }
    assert sent_settings(body("anthropic", parallel=False))["tool_choice"] == anthropic.SINGLE_CALLS
    assert sent_settings(normal_form(conversation(), TOOLS, 0.7, LIMIT)) == {
        "temperature": 0.7,
        "max_output_tokens": LIMIT,
    }
    assert sent_settings("no body") == {}


@pytest.mark.parametrize(
    ("adapter", "able", "temperature", "reason"),
    [
        ("openai", {"temperature": False}, 1.0, "accepts no temperature"),
        ("anthropic", {"temperature": False}, 0.0, "accepts no temperature"),
        ("anthropic", {}, 1.2, "accepts no temperature above 1 "),
        ("openai", {"max_temperature": 1.0}, 1.5, "accepts no temperature above 1 "),
    ],
)
def test_a_temperature_that_is_not_accepted_is_refused_and_says_why(
    adapter: str, able: Any, temperature: float, reason: str
) -> None:
    refusal = entry(adapter, capabilities=able).refusal_of(temperature)
    assert refusal is not None
    assert reason in refusal
    with pytest.raises(ValueError, match=reason):
        MODULES[adapter].request_body(entry(adapter, capabilities=able), LIMIT, conversation(), TOOLS, temperature)
    assert entry(adapter, capabilities=able).refusal_of(None) is None


@pytest.mark.parametrize("temperature", [0.0, 1.0, 2.0])
def test_a_temperature_that_is_accepted_is_not_refused(temperature: float) -> None:
    assert entry("openai").refusal_of(temperature) is None


def test_parallel_calls_are_switched_off_in_each_providers_own_field() -> None:
    assert body("openai", parallel=False, parallel_tool_calls=True)["parallel_tool_calls"] is False
    sent = body("anthropic", parallel=False)
    assert sent["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}, "the choice stays the model's"
    for adapter in ADAPTERS:
        allowed = body(adapter, parallel_tool_calls=True)
        assert not {"parallel_tool_calls", "tool_choice"} & allowed.keys(), "nothing is said where nothing is asked"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_parallel_calls_are_not_mentioned_without_tools(adapter: str) -> None:
    sent = body(adapter, tools=(), parallel=False, parallel_tool_calls=True)
    assert not {"parallel_tool_calls", "tool_choice"} & sent.keys()


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_parallel_calls_that_cannot_be_switched_off_are_refused(adapter: str) -> None:
    with pytest.raises(ValueError, match="parallel calls cannot be switched off"):
        body(adapter, parallel=False, parallel_tool_calls=False)


@pytest.mark.parametrize("tools", [TOOLS, ()])
def test_single_calls_are_the_same_to_both_providers_without_the_envelope(tools: Any) -> None:
    direct = normal_form(conversation(), tools, 0.0, LIMIT, parallel_calls=False)
    for adapter in ADAPTERS:
        assert normalise(body(adapter, tools=tools, parallel=False, parallel_tool_calls=True), adapter) == direct
        allowed = normal_hash(body(adapter, tools=tools, parallel_tool_calls=True), adapter)
        assert (normal_hash(direct, "scripted") == allowed) is (not tools), "with tools it is a difference that shows"


@pytest.mark.parametrize(
    ("adapter", "field", "value"),
    [
        ("openai", "parallel_tool_calls", True),
        ("openai", "parallel_tool_calls", None),
        ("anthropic", "tool_choice", {"type": "auto"}),
        ("anthropic", "tool_choice", {"type": "any", "disable_parallel_tool_use": True}),
        ("anthropic", "tool_choice", {"type": "auto", "disable_parallel_tool_use": False}),
    ],
)
def test_any_other_choice_shows_in_the_normal_form(adapter: str, field: str, value: Any) -> None:
    normal: Any = normalise({**body(adapter), field: value}, adapter)
    assert normal["other"] == {field: value}
    assert "parallel_calls" not in normal


SINGLE = {"grid/models": ["steady", "served"], "scaffold/parallel_calls": False}


def test_a_study_of_single_calls_is_refused_where_a_model_is_not_known_to_understand(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_manifest(write_manifest(tmp_path, SINGLE))
    assert "scaffold.parallel_calls: false, but models.served is not known to understand it" in str(caught.value)
    assert "models.served.capabilities.parallel_tool_calls" in str(caught.value)
    able = {"models/served/capabilities": {"parallel_tool_calls": True}}
    assert load_manifest(write_manifest(tmp_path, {**SINGLE, **able})).scaffold.parallel_calls is False
    assert load_manifest(write_manifest(tmp_path, {**SINGLE, "grid/models": ["steady"]}))


def test_a_baseline_that_a_model_does_not_accept_is_refused_before_any_spend(tmp_path: Path) -> None:
    warm = {"grid/models": ["steady", "served"], "decoding": {"baseline_temperature": 1.5}}
    assert load_manifest(write_manifest(tmp_path, warm))
    cool = {**warm, "models/served/capabilities": {"max_temperature": 1.0}}
    with pytest.raises(ConfigurationError, match=r"decoding\.baseline_temperature: 1\.5, but models\.served: "):
        load_manifest(write_manifest(tmp_path, cool))


def test_a_setting_that_the_manifest_does_not_know_cannot_be_asked_for(tmp_path: Path) -> None:
    """`top_p` and `seed` exist at one provider alone: no study can ask for them, so none can be dropped."""
    for name in ("top_p", "seed", "reasoning_effort"):
        with pytest.raises(ConfigurationError, match=f"decoding.{name}: unknown key"):
            load_manifest(write_manifest(tmp_path, {"decoding": {name: 1}}))
    assert "seed" not in json.dumps(body("openai"))
