"""Both adapters against a server and a model that nobody here wrote. Protocol is asserted, never a pass rate."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.errors import ConfigurationError
from flows.local_model import MODEL_NAME, require_extra, running_server
from flows.models.adapter import AccessDenied, ContextOverflow, RequestRejected, TransientError
from flows.models.messages import (
    Answer,
    AssistantMessage,
    Call,
    Completion,
    Message,
    Stop,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tasks_env.tools import parameter, tool
from tests.flows.models.support import ADAPTERS, complete, entry

try:
    require_extra()
    installed = True
except ConfigurationError:
    installed = False

pytestmark = [
    pytest.mark.slow,
    pytest.mark.local_model,
    pytest.mark.skipif(not installed, reason="the optional extra `local` is not installed"),
]

OUTPUT = 32
KEY = "sk-local-0123456789"
TOOLS = (
    tool("open_box", "Open a box and see what is in it.", {"box": parameter("string", "Name of the box.")}),
    tool("hand_in", "Hand in the answer and finish.", {"answer": parameter("string", "The answer.")}),
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("local") / "server.log", context_tokens=2048) as address:
        yield address


def made(number: int, name: str, **arguments: Any) -> Call:
    return Call(id=f"example_{number}", name=name, arguments=arguments, raw_arguments=json.dumps(arguments))


def example() -> list[Message]:
    """Instructions, a worked example of both tools, and a task of the same kind."""
    return [
        SystemMessage(text="Solve the task with the tools. Call one tool per turn, then hand in the answer."),
        UserMessage(text="Open the box 'attic' and hand in what is in it."),
        AssistantMessage(calls=(made(1, "open_box", box="attic"),)),
        ToolMessage(answers=(Answer(call_id="example_1", content="There is a lamp."),)),
        AssistantMessage(calls=(made(2, "hand_in", answer="lamp"),)),
        ToolMessage(answers=(Answer(call_id="example_2", content="ok"),)),
        UserMessage(text="Open the box 'cellar' and hand in what is in it."),
    ]


def ask(url: str, adapter: str, messages: Sequence[Message], **options: Any) -> Completion:
    fields: dict[str, Any] = {"model": MODEL_NAME, "limits": {"timeout_s": 300.0}, **options}
    return complete(entry(adapter, url, **fields), messages, TOOLS, key=None, max_output_tokens=OUTPUT)


def told(completion: Completion) -> tuple[str, list[tuple[str, Any]]]:
    """What a completion says, without ids; a call that was cut off reads differently in each format."""
    calls = [(call.name, call.arguments) for call in completion.tool_calls]
    return completion.message.text, calls[:-1] if completion.stop is Stop.LENGTH else calls


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_episode_of_tool_calls_keeps_the_protocol(url: str, adapter: str) -> None:
    messages = example()
    sizes = []
    for _ in range(2):
        completion = ask(url, adapter, messages)
        assert completion.stop in (Stop.CALLS, Stop.END, Stop.LENGTH)
        assert (completion.stop is Stop.CALLS) <= bool(completion.tool_calls)
        assert completion.usage is not None
        assert 0 < completion.usage.output_total <= OUTPUT
        sizes.append(completion.usage.input_total)
        ids = [call.id for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
        new = [call.id for call in completion.tool_calls]
        assert len({*ids, *new}) == len(ids) + len(new)
        messages.append(completion.message)
        if completion.tool_calls:
            answers = (Answer(call_id=call.id, content="There is a rope.") for call in completion.tool_calls)
            messages.append(ToolMessage(answers=tuple(answers)))
        messages.append(UserMessage(text="Go on."))
    assert sizes == sorted(set(sizes)), "each turn reads more than the one before"


def test_both_adapters_show_the_model_the_same_prompt(url: str) -> None:
    broken = Call(id="b", name="open box!", arguments=None, raw_arguments='{"box": "cel', problem="cut off")
    conversations: list[list[Message]] = [
        [UserMessage(text="Name a colour.")],
        example(),
        [*example(), AssistantMessage(text=""), UserMessage(text="Continue by calling a tool.")],
        [
            *example(),
            AssistantMessage(text="Let me look.", calls=(made(3, "open_box", box="x"), broken)),
            ToolMessage(
                answers=(
                    Answer(call_id="example_3", content=""),
                    Answer(call_id="b", content="error: the arguments break off", is_error=True),
                )
            ),
            UserMessage(text="Go on."),
        ],
    ]
    for messages in conversations:
        first, second = (ask(url, adapter, messages) for adapter in ADAPTERS)
        assert first.usage == second.usage
        assert told(first) == told(second), "at temperature 0 the same prompt has the same answer"


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_temperature_zero_is_repeatable_whatever_came_before(url: str, adapter: str) -> None:
    first = ask(url, adapter, example())
    ask(url, adapter, [UserMessage(text="Write a line about the sea.")])
    again = ask(url, adapter, example())
    assert (told(first), first.usage) == (told(again), again.usage)
    assert again.usage is not None
    assert again.usage.input_cached == 0


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_full_context_is_recognised(url: str, adapter: str) -> None:
    with pytest.raises(ContextOverflow):
        ask(url, adapter, [UserMessage(text="stone " * 3000)])


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_bad_request_is_not_tried_again(url: str, adapter: str) -> None:
    model = entry(adapter, url, model=MODEL_NAME)
    with pytest.raises(RequestRejected, match="http_400"):
        complete(model, example(), TOOLS, key=None, max_output_tokens="many")  # type: ignore[arg-type]
    with pytest.raises(RequestRejected, match="http_404"):
        complete(entry(adapter, f"{url}/nowhere", model=MODEL_NAME), example(), TOOLS, key=None)


def test_arguments_that_are_broken_would_have_failed_unrepaired(url: str) -> None:
    """Why calls are repaired before they are replayed: this server answers 500, again and again."""
    body = {
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "b", "type": "function", "function": {"name": "open_box", "arguments": '{"box": "cel'}}
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "error"},
        ],
        "max_tokens": 16,
    }
    assert httpx.post(f"{url}/v1/chat/completions", json=body, timeout=300).status_code == 500


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_timeout_is_one(url: str, adapter: str) -> None:
    with pytest.raises(TransientError) as caught:
        ask(url, adapter, example(), limits={"timeout_s": 0.05})
    assert caught.value.kind == "timeout"


def test_a_server_with_a_key_asks_for_it(tmp_path: Path) -> None:
    with running_server(tmp_path / "log", context_tokens=1024, api_key=KEY) as address:
        hello = [UserMessage(text="hi")]
        for adapter in ADAPTERS:
            model = entry(adapter, address, model=MODEL_NAME, limits={"timeout_s": 300.0})
            with pytest.raises(AccessDenied, match="http_401") as caught:
                complete(model, hello, (), key="sk-wrong-9876543210")
            assert "9876543210" not in str(caught.value)
            assert complete(model, hello, (), key=KEY, max_output_tokens=OUTPUT).usage is not None
    assert KEY not in (tmp_path / "log").read_text(encoding="utf-8")


def test_the_server_does_not_outlive_a_launcher_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import pathlib, time\n"
        "from flows.local_model import running_server\n"
        f"with running_server(pathlib.Path({str(tmp_path / 'log')!r}), context_tokens=1024) as url:\n"
        "    print(url, flush=True)\n"
        "    time.sleep(300)\n"
    )
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=root) as launcher:
        assert launcher.stdout is not None
        address = launcher.stdout.readline().decode().strip()
        assert httpx.get(f"{address}/health", timeout=60).status_code == 200
        os.kill(launcher.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{address}/health", timeout=5)
        except httpx.TransportError:
            return
        time.sleep(0.2)
    pytest.fail("the server still answers")


def test_concurrent_calls_are_all_answered(url: str) -> None:
    async def all_at_once() -> list[Completion]:
        calls = [asyncio.to_thread(ask, url, adapter, [UserMessage(text="hi")]) for adapter in ADAPTERS * 2]
        return await asyncio.gather(*calls)

    answers = asyncio.run(all_at_once())
    assert len({json.dumps(told(answer)) for answer in answers}) == 1
