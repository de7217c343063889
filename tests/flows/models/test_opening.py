"""Opening adapters: addresses and keys from the environment, and errors that name what is missing."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import pytest

from flows.errors import ConfigurationError
from flows.manifest.schema import HttpModel
from flows.models import (
    HTTP_ADAPTERS,
    ApiKey,
    Endpoint,
    MissingAddress,
    MissingKey,
    open_adapter,
    open_client,
    resolve_endpoint,
)
from flows.models.keys import SHORTEST_SECRET
from tests.flows.models.support import ADAPTERS, KEY, TOOLS, conversation, entry


def test_every_http_adapter_of_the_manifest_is_known() -> None:
    named = HttpModel.model_fields["adapter"].annotation
    assert set(HTTP_ADAPTERS) == set(named.__args__)  # type: ignore[union-attr]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_names_its_version_and_body(adapter: str) -> None:
    async def opened() -> Any:
        async with open_client() as client:
            model = entry(adapter)
            made = open_adapter(model, Endpoint("http://x", ApiKey(KEY)), 99, client)
            assert KEY not in repr(made) + repr(vars(made))
            return made.version, made.request_body(conversation(), TOOLS, 0.5)

    version, body = asyncio.run(opened())
    assert version.startswith(f"{adapter}/")
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("some-model", 99, 0.5)
    assert KEY not in json.dumps(body)


def test_address_and_key_come_from_the_environment() -> None:
    model = entry("openai", base_url=None, base_url_env="PLACE", api_key_env="THE_KEY")
    endpoint = resolve_endpoint(model, {"PLACE": " http://127.0.0.1:8/v1/ ", "THE_KEY": KEY})
    assert endpoint.base_url == "http://127.0.0.1:8/v1"
    assert endpoint.api_key is not None
    assert KEY not in repr(endpoint) + str(endpoint)
    assert resolve_endpoint(entry("openai"), {}).api_key is None


@pytest.mark.parametrize("environ", [{}, {"THE_KEY": ""}])
def test_a_missing_key_is_named_by_its_variable(environ: dict[str, str]) -> None:
    with pytest.raises(MissingKey, match="THE_KEY is not set") as caught:
        resolve_endpoint(entry("anthropic", api_key_env="THE_KEY"), environ)
    assert caught.value.variable == "THE_KEY"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", [f"{KEY}\n", f" {KEY}", f"{KEY}\nx-other: y", f"{KEY}é"])
def test_a_value_that_is_no_key_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(MissingKey, match="THE_KEY holds a blank") as caught:
        resolve_endpoint(entry("openai", api_key_env="THE_KEY"), {"THE_KEY": value})
    assert KEY not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("environ", "problem"), [({}, "is not set"), ({"PLACE": "localhost:8"}, "holds no http")])
def test_a_missing_address_is_named_by_its_variable(environ: dict[str, str], problem: str) -> None:
    with pytest.raises(MissingAddress, match=f"PLACE {problem}"):
        resolve_endpoint(entry("openai", base_url=None, base_url_env="PLACE"), environ)


@pytest.mark.parametrize("url", [f"https://me:{KEY}@host/v1", f"https://host/v1?key={KEY}", f"https://host#{KEY}"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_endpoint(entry("openai", url), {})
    assert KEY not in str(caught.value)


def test_a_model_without_a_name_is_refused() -> None:
    async def opened() -> None:
        async with open_client() as client:
            open_adapter(entry("openai", model=None), Endpoint("http://x", None), 99, client)

    with pytest.raises(ConfigurationError, match="names no model yet"):
        asyncio.run(opened())


def test_a_key_is_never_pickled() -> None:
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(Endpoint("http://x", ApiKey(KEY)))
    assert pickle.loads(pickle.dumps(Endpoint("http://x", None))) == Endpoint("http://x", None)


def test_placeholders_are_not_taken_out_of_texts() -> None:
    assert ApiKey("none").scrub("none of it") == "none of it"
    assert ApiKey("k" * SHORTEST_SECRET).scrub("a" + "k" * SHORTEST_SECRET) == "a[key]"
    assert repr(ApiKey(KEY)) == str(ApiKey(KEY)) == "ApiKey(***)"
