"""The one agent loop, byte-identical for every model: ask, carry out the calls, answer, until the task is handed in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from flows.episodes.calling import AdapterCrash, ModelCaller
from flows.episodes.opening import REMINDER
from flows.episodes.transcript import TranscriptWriter
from flows.manifest import Scaffold
from flows.models.adapter import Adapter, ContextOverflow, MalformedOutput, Request, request_of
from flows.models.conversation import is_empty_turn, shown_tool
from flows.models.envelope import normalise, sent_settings
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Completion,
    Message,
    Stop,
    ToolMessage,
    UserMessage,
    as_json,
)
from tasks_env import Session
from tasks_env.canonical import content_hash

OVER = "error: the task has been handed in; this call was not carried out"
NO_ANSWER = AssistantMessage(text="(no answer)")
"""Stands for a turn without text and calls: no provider takes an empty one, some take no two user turns in a row."""


class ToolCrash(Exception):
    """A tool broke where it should have answered: a defect of the environment, not the agent's failure."""

    kind = "tool_exception"

    def __init__(self, where: str, error: Exception) -> None:
        self.detail = f"{where}: {type(error).__name__}: {error}"[:500]
        super().__init__(self.detail)


@dataclass(frozen=True)
class Ending:
    """How an episode ended."""

    outcome: str
    """One of `flows.results.OUTCOMES`."""
    steps: int
    """Answers received."""
    kind: str | None = None
    """For infra_error: what failed."""
    detail: str = ""
    trajectory: tuple[str, ...] = ()
    """The tool of every call that reached the tools, errors included, by canonical name where it exists."""


@dataclass
class History:
    """The messages of a conversation so far, and how many of them a transcript has told."""

    messages: list[Message]
    told: int = 0

    def state(self, prompt: str) -> None:
        """Put the next task to the agent.

        A turn that ended the task before it without being taken in (refused, truncated, unreadable) is not carried
        on; that there was one is, since some providers take no two user turns in a row.
        """
        if isinstance(self.messages[-1], UserMessage):
            self.messages.append(NO_ANSWER)
        self.messages.append(UserMessage(text=prompt))

    def news(self) -> list[Message]:
        """The messages that no transcript has told yet; from now on they are told."""
        added = self.messages[self.told :]
        self.told = len(self.messages)
        return added


class TaskLoop:
    """One episode's loop.

    Args:
        adapter: Only asked for what it will send; `caller` does the sending.
        session: The task's world behind the variant's names.
        history: Ends with the task's statement; the loop appends to it.
        temperature: Null sends none.
    """

    def __init__(
        self,
        adapter: Adapter,
        caller: ModelCaller,
        session: Session,
        history: History,
        settings: Scaffold,
        temperature: float | None,
        transcript: TranscriptWriter,
    ) -> None:
        self._adapter = adapter
        self._caller = caller
        self._session = session
        self._history = history
        self._messages = history.messages
        self._settings = settings
        self._temperature = temperature
        self._transcript = transcript
        self._steps = 0
        self._trajectory: list[str] = []

    async def run(self) -> Ending:
        """Go on until the task is handed in or the episode ends otherwise.

        Raises:
            flows.models.adapter.AccessDenied: every further episode would fail alike.
            flows.models.adapter.ModelCallError: another call failed for good.
            ToolCrash: a tool broke.
        """
        tools = self._session.variant.tools
        self._transcript.record("opening", tools=[shown_tool(tool) for tool in tools])
        nudged = False
        while self._steps < self._settings.step_cap:
            try:
                request = self._next_request()
                if request.size > self._settings.conversation_bytes:
                    return self._ending("context_overflow", detail=f"the request would be {request.size} bytes long")
                completion = await self._caller.ask(self._steps + 1, request)
            except ContextOverflow as error:
                return self._ending("context_overflow", detail=error.detail)
            except MalformedOutput as error:
                return self._ending("malformed", detail=error.detail)
            self._steps += 1
            self._log_answer(completion)
            ending = self._react(completion)
            if ending is not None:
                return ending
            if not completion.tool_calls:
                if nudged or not self._settings.nudge:
                    return self._ending("no_submission")
                nudged = True
                if self._steps < self._settings.step_cap:
                    self._messages.append(UserMessage(text=REMINDER))
        return self._ending("step_cap")

    def failed(self, kind: str, detail: str) -> Ending:
        """The ending of an episode that infrastructure let down for good."""
        return self._ending("infra_error", kind=kind, detail=detail)

    def _react(self, completion: Completion) -> Ending | None:
        """Carry out an answer's calls; an ending if the answer, or a call, ends the episode."""
        if completion.stop is Stop.REFUSAL:
            return self._ending("refused")
        if completion.stop is Stop.CONTEXT:
            return self._ending("context_overflow")
        calls = completion.tool_calls
        if completion.stop is Stop.LENGTH and (not calls or calls[-1].arguments is None):
            return self._ending("truncated")
        self._messages.append(NO_ANSWER if is_empty_turn(completion.message) else completion.message)
        if calls:
            answers = tuple(self._carry_out(number, call) for number, call in enumerate(calls))
            self._messages.append(ToolMessage(answers=answers))
        if self._session.submitted:
            return self._ending("completed")
        if self._steps == self._settings.step_cap and calls and all(call.arguments is None for call in calls):
            return self._ending("malformed")
        return None

    def _carry_out(self, number: int, call: Call) -> Answer:
        if self._session.submitted:
            return self._answer(call, OVER, canonical=None)
        if number >= self._settings.calls_per_turn:
            content = (
                f"error: more than {self._settings.calls_per_turn} calls in one turn; this one was not carried out"
            )
            return self._answer(call, content, canonical=None)
        if call.arguments is None:
            return self._answer(call, f"error: {call.problem}; the call was not carried out", canonical=None)
        try:
            result = self._session.call(call.name, call.arguments)
        except Exception as error:
            raise ToolCrash(call.name, error) from error
        canonical = vars(result.call) if result.call else None
        self._trajectory.append(result.call.name if result.call else call.name)
        return self._answer(call, result.content, canonical, is_error=result.is_error)

    def _answer(self, call: Call, content: str, canonical: object, is_error: bool = True) -> Answer:
        self._transcript.record(
            "result",
            step=self._steps,
            call_id=call.id,
            name=call.name,
            call=canonical,
            content=content,
            is_error=is_error,
        )
        return Answer(call_id=call.id, content=content, is_error=is_error)

    def _next_request(self) -> Request:
        """The whole conversation as a request; what this step adds to it, and its hashes, are recorded."""
        provider = self._adapter.version.split("/")[0]
        try:
            request = request_of(self._adapter, self._messages, self._session.variant.tools, self._temperature)
            normal = normalise(request.body, provider)
        except Exception as error:
            raise AdapterCrash(error) from error
        body_hash = hashlib.sha256(request.canonical.encode("ascii")).hexdigest()
        self._transcript.record(
            "request",
            step=self._steps + 1,
            added=[as_json(message) for message in self._history.news()],
            temperature=self._temperature,
            settings=sent_settings(request.body),
            bytes=request.size,
            body_sha256=body_hash,
            normal_sha256=body_hash if normal == request.body else content_hash(normal),
        )
        return request

    def _log_answer(self, completion: Completion) -> None:
        self._transcript.record(
            "answer",
            step=self._steps,
            text=completion.message.text,
            calls=[vars(call) for call in completion.tool_calls],
            stop=completion.stop.value,
            usage=vars(completion.usage) if completion.usage else None,
            raw=completion.raw,
        )

    def _ending(self, outcome: str, kind: str | None = None, detail: str = "") -> Ending:
        return Ending(outcome, self._steps, kind, detail, tuple(self._trajectory))
