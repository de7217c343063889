"""The events of a transcript as types: what docs/transcripts.md tells, checked against real transcripts by the tests.

Readers take events as plain JSON; these types are for whoever wants to be sure of every field. Unknown fields are
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, TypeAdapter, field_validator, model_validator

from flows.manifest import Scaffold
from flows.models.messages import Call, Message, Stop, Usage
from flows.outcomes import OUTCOMES
from tasks_env.types import FinalState, Frozen, JsonObject, ToolCall, ToolSpec


class EpisodeEvent(Frozen):
    """First line: which episode it is, and what produced it."""

    event: Literal["episode"]
    transcript_version: Literal[2]
    episode_id: str
    attempt: int = Field(ge=1)
    model: str
    model_id: str | None
    cell_id: str
    family: str
    difficulty: str
    axis: str
    level: str
    instance_id: str
    instance_seed: int
    variant_id: str
    run_seed: int = Field(ge=1)
    temperature: float | None
    scaffold: Scaffold
    scaffold_version: str
    adapter_version: str
    git_sha: str
    manifest_hash: str
    scientific_hash: str
    started_at: datetime


class ConversationTask(Frozen):
    """One task of a conversation."""

    instance_id: str
    episode_id: str


class ConversationEvent(Frozen):
    """Where the task stands among those that share its conversation."""

    event: Literal["conversation"]
    conversation_id: str
    conversation_position: int = Field(ge=1)
    tasks: tuple[ConversationTask, ...]


class OpeningEvent(Frozen):
    """The tools as the model is told about them."""

    event: Literal["opening"]
    tools: tuple[ToolSpec, ...]


class RequestEvent(Frozen):
    """What a step adds to the conversation, and the hashes of the whole request."""

    event: Literal["request"]
    step: int = Field(ge=1)
    added: tuple[Message, ...]
    temperature: float | None
    settings: JsonObject
    bytes: int = Field(ge=1)
    body_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    normal_sha256: str = Field(pattern="^[0-9a-f]{64}$")


class AttemptEvent(Frozen):
    """One attempt at a model call; one that failed also says how."""

    event: Literal["attempt"]
    step: int = Field(ge=1)
    attempt: int = Field(ge=1)
    latency_s: float = Field(ge=0)
    error: str | None
    status: int | None
    cost_usd: float | None
    detail: str | None = None
    raw: JsonValue = None
    wait_s: float | None = None

    @model_validator(mode="after")
    def _failures_say_how(self) -> AttemptEvent:
        expected = set() if self.error is None else FAILURE_FIELDS
        if self.model_fields_set & FAILURE_FIELDS != expected:
            raise ValueError(f"{', '.join(sorted(FAILURE_FIELDS))}: there exactly where the attempt failed")
        return self


FAILURE_FIELDS = frozenset({"detail", "raw", "wait_s"})


class AnswerEvent(Frozen):
    """What the model said."""

    event: Literal["answer"]
    step: int = Field(ge=1)
    text: str
    calls: tuple[Call, ...]
    stop: Stop
    usage: Usage | None
    raw: JsonValue


class ResultEvent(Frozen):
    """What one call was answered."""

    event: Literal["result"]
    step: int = Field(ge=1)
    call_id: str
    name: str
    call: ToolCall | None
    content: str
    is_error: bool


class EndEvent(Frozen):
    """Last line: how the episode came out."""

    event: Literal["end"]
    outcome: str
    kind: str | None
    detail: str
    steps: int = Field(ge=0)
    final_state: FinalState
    calls: tuple[ToolCall, ...]
    trajectory_hash: str
    trajectory_length: int = Field(ge=0)
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    usage_known: bool
    cost_usd: float | None
    http_attempts: int = Field(ge=0)
    wall_clock_s: float = Field(ge=0)

    @field_validator("outcome")
    @classmethod
    def _known_outcome(cls, value: str) -> str:
        if value not in OUTCOMES:
            raise ValueError(f"one of {', '.join(OUTCOMES)}")
        return value


Event = Annotated[
    EpisodeEvent
    | ConversationEvent
    | OpeningEvent
    | RequestEvent
    | AttemptEvent
    | AnswerEvent
    | ResultEvent
    | EndEvent,
    Field(discriminator="event"),
]
EVENTS = {
    "episode": EpisodeEvent,
    "conversation": ConversationEvent,
    "opening": OpeningEvent,
    "request": RequestEvent,
    "attempt": AttemptEvent,
    "answer": AnswerEvent,
    "result": ResultEvent,
    "end": EndEvent,
}
_EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])


def check_transcript(events: Sequence[dict[str, Any]]) -> None:
    """Refuse a whole transcript with a missing, unknown or mistyped field, or without its first or last line.

    Raises:
        ValueError: says where (`pydantic.ValidationError` is one).
    """
    checked = _EVENTS.validate_python(events)
    kinds = [event.event for event in checked]
    if kinds[:1] != ["episode"] or kinds[-1:] != ["end"] or kinds.count("episode") + kinds.count("end") != 2:
        raise ValueError("a transcript begins with one event `episode` and ends with one event `end`")
