"""Access to models: one interface, one class per provider, one place that sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from flows.errors import ConfigurationError
from flows.manifest.schema import HttpModel
from flows.models.adapter import Adapter
from flows.models.anthropic import AnthropicAdapter
from flows.models.http import Client, open_client, proxy_of
from flows.models.keys import ApiKey
from flows.models.openai import OpenAIAdapter
from tasks_env.errors import UnknownName

HTTP_ADAPTERS: dict[str, type[OpenAIAdapter] | type[AnthropicAdapter]] = {
    "anthropic": AnthropicAdapter,
    "openai": OpenAIAdapter,
}
"""Every adapter that speaks HTTP, by its name in the manifest."""


class MissingKey(ConfigurationError):
    """A model's key is not in the environment, or is no key."""

    def __init__(self, variable: str, problem: str = "is not set") -> None:
        super().__init__(
            f"the environment variable {variable} {problem}; export the key under this name, "
            "or remove api_key_env from the model's entry if its endpoint needs none"
        )
        self.variable = variable


class MissingAddress(ConfigurationError):
    """A model's address is not in the environment, or is no address."""

    def __init__(self, variable: str, problem: str = "is not set") -> None:
        super().__init__(f"the environment variable {variable} {problem}; export the endpoint's address, http://…")
        self.variable = variable


@dataclass(frozen=True)
class Endpoint:
    """Where a model is, and the key to it. Cannot be pickled while it holds a key."""

    base_url: str
    api_key: ApiKey | None


def resolve_endpoint(entry: HttpModel, environ: Mapping[str, str]) -> Endpoint:
    """The entry's address and key, read from the environment where the entry says so.

    Raises:
        MissingAddress: the address's variable is unset, empty, or holds no http(s) address.
        MissingKey: the key's variable is unset or empty, or holds characters that no header takes.
        ConfigurationError: an address with a user name, a password or a query.
    """
    if entry.base_url_env is not None:
        base_url = environ.get(entry.base_url_env, "").strip()
        if not base_url:
            raise MissingAddress(entry.base_url_env)
        if not base_url.startswith(("http://", "https://")):
            raise MissingAddress(entry.base_url_env, "holds no http:// or https:// address")
    else:
        base_url = entry.base_url or ""
    parts = urlsplit(base_url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError(
            f"models: the address of {entry.model!r} holds a user name, a password or a query; "
            "give the bare address, and the key through api_key_env"
        )
    return Endpoint(base_url.rstrip("/"), _key(entry.api_key_env, environ))


def _key(variable: str | None, environ: Mapping[str, str]) -> ApiKey | None:
    if variable is None:
        return None
    value = environ.get(variable, "")
    if not value:
        raise MissingKey(variable)
    try:
        return ApiKey(value)
    except ValueError as error:
        problem = str(error)
    raise MissingKey(variable, problem)


def open_adapter(
    entry: HttpModel,
    endpoint: Endpoint,
    max_output_tokens: int,
    client: Client,
    parallel_calls: bool = True,
) -> Adapter:
    """The adapter of a model behind HTTP.

    Args:
        entry: The manifest's entry.
        endpoint: From `resolve_endpoint`.
        max_output_tokens: Ceiling of each answer.
        client: From `open_client`; the caller closes it.
        parallel_calls: False asks for one tool call per turn.

    Raises:
        ConfigurationError: the entry names no model yet, or the environment a proxy that does not speak HTTP.
        UnknownName: no such adapter.
    """
    if entry.adapter not in HTTP_ADAPTERS:
        raise UnknownName("adapter", entry.adapter, HTTP_ADAPTERS)
    if entry.model is None:
        raise ConfigurationError("models: the entry names no model yet; fill in its `model` in experiments.yaml")
    proxy_of(endpoint.base_url)
    chosen = HTTP_ADAPTERS[entry.adapter]
    return chosen(entry, endpoint.base_url, endpoint.api_key, max_output_tokens, client, parallel_calls)


__all__ = [
    "HTTP_ADAPTERS",
    "Adapter",
    "ApiKey",
    "Client",
    "Endpoint",
    "MissingAddress",
    "MissingKey",
    "open_adapter",
    "open_client",
    "resolve_endpoint",
]
