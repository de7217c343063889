"""experiments.yaml as types: everything that defines a study, each field documented where it is declared."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

SCHEMA_VERSION: Literal[1] = 1

BASELINE_AXIS = "none"
BASELINE_LEVEL = "baseline"

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
"""Lower-case letters, digits, `_`, `.`, `-`: safe in ids, file names and reports."""
EnvName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Probability = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """Base of every section: immutable, refuses unknown keys, loose types and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Pricing(Section):
    """USD per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    """Reads from the provider's prompt cache; null: the input price."""
    cache_write: float | None = Field(default=None, ge=0)
    """Writes to the provider's prompt cache; null: the input price."""


class Capabilities(Section):
    """What an endpoint accepts. Data, never guessed from a model's name; `CAPABILITY_DEFAULTS` by adapter."""

    temperature: bool = True
    """False: nothing is sent, and the temperature axis is unsupported for this model."""
    max_temperature: float = Field(default=2.0, ge=0, le=2)
    """The highest temperature that is accepted; a higher one is unsupported like any where none is accepted."""
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """OpenAI-compatible only: the request field that bounds the output."""
    parallel_tool_calls: bool = False
    """Whether the request field that switches parallel calls off is understood. Many compatible servers pass over
    fields that they do not know, so by default it is not; a study that switches them off is refused then."""
    system_role: Literal["system", "developer"] = "system"
    """OpenAI-compatible only: the role of the system message."""
    replay_reasoning: bool = False
    """OpenAI-compatible only: whether reasoning that came with a tool call must be sent back with it. Anthropic's
    thinking always is."""


CAPABILITY_DEFAULTS: dict[str, dict[str, Any]] = {
    "openai": {},
    "anthropic": {"max_temperature": 1.0, "parallel_tool_calls": True},
}
"""Adapter → what an entry's capabilities are where it does not say; `Capabilities` has the rest."""

OPENAI_ONLY = ("token_limit_field", "system_role", "replay_reasoning")


class Limits(Section):
    """Ceilings that keep a provider content and a conversation bounded."""

    context_tokens: int = Field(default=128_000, ge=512)
    concurrent_episodes: int = Field(default=8, ge=1, le=1024)
    """At most; adapts downward where the server refuses, and recovers."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Shared by all entries with the same address and key, as is `tokens_per_minute`; the smallest holds."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    timeout_s: float = Field(default=120, gt=0)


class MalformedPattern(Section):
    """A server error that is the model's own doing: output that the server could not parse."""

    status: int = Field(ge=400, le=599)
    body: str = Field(min_length=4)
    """A substring of the answer's body."""


class HttpModel(Section):
    """A model behind an HTTP endpoint."""

    adapter: Literal["openai", "anthropic"]
    model: str | None = Field(min_length=1)
    """The provider's model id; null until whoever runs the study names it."""
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    base_url_env: EnvName | None = None
    """Variable that holds the address, for an endpoint whose port is not known beforehand."""
    api_key_env: EnvName | None = None
    """Variable that holds the key; null for an endpoint without one."""
    pricing: Pricing
    capabilities: Capabilities = Capabilities()
    limits: Limits = Limits()
    malformed_patterns: list[MalformedPattern] = []

    @model_validator(mode="after")
    def _one_address(self) -> HttpModel:
        if (self.base_url is None) == (self.base_url_env is None):
            raise ValueError("give exactly one of base_url and base_url_env")
        return self

    @model_validator(mode="before")
    @classmethod
    def _capabilities_by_adapter(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = data.get("capabilities", {})
        defaults = CAPABILITY_DEFAULTS.get(str(data.get("adapter")), {})
        return {**data, "capabilities": {**defaults, **given}} if isinstance(given, dict) else data

    @model_validator(mode="after")
    def _nothing_is_said_in_vain(self) -> HttpModel:
        plain = Capabilities()
        vain = [name for name in OPENAI_ONLY if getattr(self.capabilities, name) != getattr(plain, name)]
        if self.adapter != "openai" and vain:
            raise ValueError(f"capabilities: {', '.join(vain)}: only for the adapter openai")
        return self

    def refusal_of(self, temperature: float | None) -> str | None:
        """Why this temperature cannot be sent; null if it can, as the provider's default always can."""
        if temperature is None:
            return None
        if not self.capabilities.temperature:
            return "the model accepts no temperature (capabilities.temperature)"
        if temperature > self.capabilities.max_temperature:
            return (
                f"the model accepts no temperature above {self.capabilities.max_temperature:g} "
                "(capabilities.max_temperature)"
            )
        return None


class ScriptedModel(Section):
    """A reference agent with a documented error model: the known truth that an analysis must recover.

    With probability `pass_rate[difficulty]` + the effects of the cell + the instance's own offset the agent plays the
    reference solution, otherwise the family's near miss. Offsets are uniform on ± `instance_spread`, fixed per
    instance, mean zero. All chances must stay within 0 and 1, so that no clipping bends the truth.
    """

    adapter: Literal["scripted"]
    pass_rate: dict[Name, Probability] = Field(min_length=1)
    """By difficulty."""
    instance_spread: float = Field(default=0.0, ge=0, le=0.5)
    effects: dict[Name, dict[str, float]] = {}
    """Axis → level → change of the pass rate, as a fraction. One of `order` is for studies that carry context from task
    to task: in others order is a control, which it would falsify."""
    family_effects: dict[Name, float] = {}
    """Family → change of the pass rate."""
    pricing: Pricing
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _chances_stay_chances(self) -> ScriptedModel:
        deltas = [0.0, *(value for levels in self.effects.values() for value in levels.values())]
        families = [0.0, *self.family_effects.values()]
        low = min(self.pass_rate.values()) + min(deltas) + min(families) - self.instance_spread
        high = max(self.pass_rate.values()) + max(deltas) + max(families) + self.instance_spread
        if low < 0 or high > 1:
            raise ValueError(f"the chance of passing would range from {low:.3f} to {high:.3f}; keep it in 0..1")
        return self


Model = Annotated[HttpModel | ScriptedModel, Field(discriminator="adapter")]


class Scaffold(Section):
    """The one agent loop, the same for every model of a study."""

    step_cap: int = Field(ge=1, le=200)
    """Model calls per episode."""
    max_output_tokens: int = Field(ge=16)
    """Per model call."""
    tool_output_chars: int = Field(ge=200)
    """Longer tool results are cut, and say so."""
    calls_per_turn: int = Field(ge=1, le=64)
    """Tool calls carried out per turn; further ones are answered with an error."""
    conversation_bytes: int = Field(ge=4096)
    """UTF-8 bytes of a whole request; a longer conversation ends the episode as context_overflow. It bounds what
    an episode can cost, since no tokeniser makes more tokens than bytes."""
    worked_example: bool = False
    """Show the solution of one tiny task of the same family, under the same names, before the task."""
    nudge: bool = False
    """Answer the first turn without a tool call with one fixed reminder instead of ending the episode."""
    tasks_per_conversation: int = Field(default=1, ge=1, le=32)
    """Tasks of a set that are met one after another in one conversation, its context carried from each to the next;
    the last conversation of a set may be shorter. 1: every episode is a conversation of its own, and order reaches no
    agent. Caps are per task, `conversation_bytes` is for the whole conversation."""
    parallel_calls: bool = True
    """False: every model is asked for one tool call per turn, in its provider's own field. True: nothing is said,
    which to both providers means that several are allowed."""


class Decoding(Section):
    """Decoding of the baseline and of every axis but temperature."""

    baseline_temperature: float | Literal["provider_default"] = 0.0
    """From 0 to 2; `provider_default`: none is sent, null is recorded."""

    @field_validator("baseline_temperature", mode="before")
    @classmethod
    def _sendable(cls, value: object) -> object:
        if value == "provider_default":
            return value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2:
            return value + 0.0  # -0.0 is 0.0, for the hashes
        raise ValueError("expected a number from 0 to 2, or provider_default")


class Runs(Section):
    """Run seeds, i.e. replicates of each instance, by kind of cell."""

    baseline: int = Field(ge=2)
    order: int = Field(ge=2)
    others: int = Field(ge=1)


class Grid(Section):
    """Which cells exist."""

    models: list[Name] = Field(min_length=1)
    families: dict[Name, list[Name]] = Field(min_length=1)
    """Family → its difficulties in this study."""
    axes: dict[Name, list[str]] = Field(min_length=1)
    """Axis → its levels; the baseline is always there."""
    instances: int = Field(ge=1)
    """Per family and difficulty."""
    runs: Runs

    @field_validator("models")
    @classmethod
    def _distinct_models(cls, value: list[str]) -> list[str]:
        return _distinct(value)

    @field_validator("families", "axes")
    @classmethod
    def _not_empty_and_distinct(cls, value: dict[str, list[str]]) -> dict[str, list[str]]:
        for name, entries in value.items():
            if not entries:
                raise ValueError(f"{name!r} is empty; list at least one entry or remove it")
            _distinct(entries)
        return value


class Retry(Section):
    """Retries of one model call (HTTP attempts) and of one episode."""

    http_attempts: int = Field(ge=1, le=20)
    first_wait_s: float = Field(gt=0)
    multiplier: float = Field(ge=1)
    max_wait_s: float = Field(gt=0)
    """Ceiling of one wait, the server's own advice included; longer advice ends the attempt."""
    episode_attempts: int = Field(ge=1, le=10)
    """Attempts at an episode that ends in infra_error, within one invocation."""


class Budget(Section):
    """What a study's root may use, over all invocations."""

    cap_usd: float = Field(gt=0)
    disk_gb: float = Field(default=5.0, gt=0)


class Expectation(Section):
    """What one episode is expected to take; only `plan` reads it."""

    steps: float = Field(gt=0)
    """Model calls per episode."""
    tokens_in: float = Field(gt=0)
    """Input tokens per episode, summed over its calls."""
    tokens_out: float = Field(gt=0)
    seconds_per_step: float = Field(gt=0)
    source: str = Field(min_length=1)
    """Where the figures come from."""


class Cluster(Section):
    """A Dask cluster that carries out whole cells, several at a time; every worker sees the study's tree."""

    workers: int | None = Field(default=None, ge=1, le=64)
    """Start so many worker processes on this machine, one cell each, and end them with the stage."""
    address: str | None = Field(default=None, pattern=r"^(tcp|tls)://[^\s]+:[0-9]+$")
    """Or ask the scheduler there, whose workers share the study's tree and its Prefect server."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Cluster:
        if (self.workers is None) == (self.address is None):
            raise ValueError("name either `workers`, to start them here, or the `address` of a scheduler")
        return self


class Execution(Section):
    """How work is carried out; nothing here changes an outcome."""

    tracking: Literal["per_episode", "per_cell"] = "per_episode"
    """Whether the Prefect UI shows a task per episode, or only one per cell (for large scripted sweeps)."""
    concurrent_episodes: int = Field(default=16, ge=1, le=1024)
    """At once, in one process: every worker of a cluster has as many."""
    concurrent_cells: int = Field(default=4, ge=1, le=256)
    """At once, over all processes of the stage."""
    cluster: Cluster | None = None
    """Where cells are carried out; null: in the study's own process."""


class Analysis(Section):
    """Numerical effort of the analysis."""

    resamples: int = Field(default=10_000, ge=100)
    """Bootstrap resamples and permutations."""


class Manifest(Section):
    """One resolved profile of experiments.yaml."""

    schema_version: Literal[1]
    study: Name
    profile: Name
    root: str
    """Folder of data/, runs/ and results/, relative to the manifest."""
    seed: int = Field(ge=0, lt=2**63)
    models: dict[Name, Model] = Field(min_length=1)
    families: dict[Name, dict[Name, dict[str, Any]]] = Field(min_length=1)
    """Family → difficulty → its parameters, validated by the family itself."""
    grid: Grid
    scaffold: Scaffold
    decoding: Decoding = Decoding()
    retry: Retry
    budget: Budget
    expectation: Expectation
    execution: Execution = Execution()
    analysis: Analysis = Analysis()

    @field_validator("root")
    @classmethod
    def _root_stays_inside(cls, value: str) -> str:
        if value.startswith("/") or ".." in value.split("/"):
            raise ValueError("a relative folder beside the manifest, without '..'")
        return value


def _distinct(values: list[str]) -> list[str]:
    doubles = sorted({value for value in values if values.count(value) > 1})
    if doubles:
        raise ValueError(f"listed twice: {', '.join(doubles)}")
    return values
