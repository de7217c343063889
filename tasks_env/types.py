"""The vocabulary of the environment: frozen data, no behaviour.

A *family* generates *instances* (a spec, a start world, the truth). A *presentation* says how an instance is
shown (wording, names, extra tools, temperature, place in the order); rendering both gives a *variant*, which is
all that an agent ever sees. Acting on a variant through its tools leaves a *final state*; the family's verifier
turns a `VerifierInput` into a *verdict*. Nothing here knows which model acted.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

JsonObject = dict[str, JsonValue]

BASE_PHRASING = "base"
BASE_SAMPLE = "base"


class Frozen(BaseModel):
    """Immutable, and refuses fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolSpec(Frozen):
    """A tool as an agent is told about it."""

    name: str
    """Letters, digits, underscore; at most 64 characters."""
    description: str
    parameters: dict[str, Any]
    """JSON Schema of an object; properties are flat: each is a scalar or an array of scalars."""


class ToolCall(Frozen):
    """A call by canonical names: what a plan consists of, and what a trajectory is made from."""

    name: str
    arguments: JsonObject


class ToolResult(Frozen):
    """What a tool answered. `call` is the call in canonical names, null for a tool that does not exist and for
    arguments that are nested too deeply to be recorded."""

    content: str
    is_error: bool = False
    call: ToolCall | None = None
    ends_episode: bool = False


class Content(Frozen):
    """What a family generates for one seed; every part derives from `spec`."""

    spec: JsonObject
    """The machine-readable task: the only source of wording, truth and reference solution."""
    world: JsonObject
    """The start state that the tools act on."""
    truth: JsonObject
    """What the verifier compares with."""


class Instance(Frozen):
    """One generated task with its truth."""

    instance_id: str
    """`<family>-<difficulty>-<12 hex digits of the content>`: what pairs a variant with its baseline."""
    family: str
    difficulty: str
    sample: str
    """Which draw of instances it belongs to: `base`, or a level of the resampling axis."""
    seed: int
    params: JsonObject
    """The difficulty's parameters, validated, with defaults filled in."""
    spec: JsonObject
    world: JsonObject
    truth: JsonObject


class Naming(Frozen):
    """Canonical name → shown name. Names that are missing are shown as they are."""

    tools: dict[str, str] = {}
    arguments: dict[str, str] = {}


class Presentation(Frozen):
    """How an instance is shown; the identity presentation is `Presentation()`."""

    phrasing: str = BASE_PHRASING
    naming: Naming = Naming()
    distractors: tuple[str, ...] = ()
    """Names from the pool of irrelevant tools, in the order of the tool list after the real ones."""
    temperature: float | None = None
    """Null: the study's baseline decoding."""
    position: int | None = None
    """Place among the tasks of its set; null: the order of the set."""


class Variant(Frozen):
    """An instance as one cell shows it. Complete: with it and the instance an episode can be run."""

    variant_id: str
    instance_id: str
    source_hash: str
    """SHA-256 of the instance's canonical JSON."""
    family: str
    difficulty: str
    instance_seed: int
    axis: str
    level: str
    seed: int
    """The perturbation's own seed."""
    presentation: Presentation
    prompt: str
    tools: tuple[ToolSpec, ...]


class FinalState(Frozen):
    """The world when the episode ended."""

    submitted: bool
    """Whether the family's closing tool was called successfully."""
    data: JsonObject
    """Family-specific; documented by the family."""


class VerifierInput(Frozen):
    """Everything that a verifier may look at."""

    instance: Instance
    calls: tuple[ToolCall, ...]
    """The calls that were carried out, by canonical names, distractors left out."""
    final_state: FinalState


class Condition(Frozen):
    """One condition of success, checked."""

    name: str
    holds: bool
    detail: str = ""


class Verdict(Frozen):
    """The verifier's word on one episode."""

    passed: bool
    partial_score: float
    """From 0 to 1; 1 exactly when passed."""
    conditions: tuple[Condition, ...]
