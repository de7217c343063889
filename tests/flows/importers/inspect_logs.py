"""Real inspect_ai logs of its mock model, for test_inspect_ai.py; run in a process of its own.

    python inspect_logs.py FOLDER

Each sample asks to double a number. The model `strong` errs on 3 alone, `weak` on every odd one. Prints what inspect_ai
itself computed: folder → task → model → metric → value.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval_retry, task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessageUser, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver, system_message, use_tools
from inspect_ai.tool import Tool, tool

SAMPLES = 6
UP = "TOOL_SERVER_IS_UP"
"""Set in the environment once the tool server of the task `recovering` works: a retry loads this module anew."""


def number_of(state: TaskState) -> int:
    return int(state.input_text.split()[-1])


def model(name: str, *, calls: bool = False) -> Model:
    def respond(messages: list[Any], *_rest: Any) -> ModelOutput:
        asked = next(message.text for message in messages if message.role == "user")
        number = int(asked.split()[-1])
        right = number != 3 if name == "strong" else number % 2 == 0
        if calls and messages[-1].role != "tool":
            output = ModelOutput.for_tool_call(f"mockllm/{name}", "double" if right else "halve", {"x": number})
        else:
            output = ModelOutput.from_content(f"mockllm/{name}", str(number * 2) if right else "no idea")
        output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15, total_cost=0.25)
        return output

    return get_model(f"mockllm/{name}", custom_outputs=respond, memoize=False)


def graded(right: Any, wrong: Any, metrics: Any) -> Scorer:
    @scorer(metrics=metrics, name="graded")
    def made() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=right if target.text in state.output.completion else wrong)

        return score

    return made()


@scorer(metrics=[accuracy()])
def letters() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if target.text in state.output.completion else "P" if number_of(state) == 5 else "I")

    return score


@scorer(metrics=[mean()])
def stars() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=10 if target.text in state.output.completion else 4)

    return score


@scorer(metrics={"found": [accuracy()], "style": [mean()]})
def parts() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"found": "C" if target.text in state.output.completion else "I", "style": 0.5})

    return score


@solver
def failing_on(number: int, *, only_once: bool = False) -> Solver:
    failed = set()

    async def solve(state: TaskState, answer: Generate) -> TaskState:
        if number_of(state) == number and not (only_once and failed):
            failed.add(number)
            raise ValueError("the tool server is down")
        return await answer(state)

    return solve


@solver
def talking() -> Solver:
    async def solve(state: TaskState, answer: Generate) -> TaskState:
        for _ in range(5 if number_of(state) == 2 else 1):
            state = await answer(state)
            state.messages.append(ChatMessageUser(content=state.input_text))
        return state

    return solve


@tool
def double() -> Tool:
    async def execute(x: int) -> str:
        """Double a number.

        Args:
            x: The number.
        """
        return str(2 * x)

    return execute


@tool
def halve() -> Tool:
    async def execute(x: int) -> str:
        """Halve a number.

        Args:
            x: The number.
        """
        return str(x // 2)

    return execute


@solver
def recovering_solver() -> Solver:
    # Answers by itself: a retry would ask a mock model of inspect_ai's own making, which counts tokens over a network.
    async def solve(state: TaskState, answer: Generate) -> TaskState:
        del answer
        if number_of(state) == 4 and UP not in os.environ:
            raise ValueError("the tool server is down")
        state.output = ModelOutput.from_content("mockllm/strong", str(2 * number_of(state)))
        return state

    return solve


def doubling(name: str, scorers: Any, *, solvers: Any = None, **options: Any) -> Task:
    return Task(name=name, dataset=samples(), solver=solvers or [generate()], scorer=scorers, **options)


def samples() -> list[Sample]:
    return [
        Sample(id=f"q-{n}", input=f"double {n}", target=str(2 * n), metadata={"kind": n % 2}) for n in range(SAMPLES)
    ]


@task
def recovering() -> Task:
    return doubling("recovering", letters(), solvers=[recovering_solver()])


@task
def asked(variant: str = "plain") -> Task:
    return doubling("asked", letters(), solvers=[system_message(f"Be {variant}."), generate()])


def main(folder: Path) -> dict[str, Any]:
    printed: dict[str, Any] = {}

    def run(into: str, tasks: Any, models: Any = None, **options: Any) -> list[EvalLog]:
        chosen = models or [model("strong"), model("weak")]
        logs = evaluate(tasks, model=chosen, log_dir=str(folder / into), display="none", max_samples=1, **options)
        for log in logs:
            scores = log.results.scores if log.results else []
            found = {f"{score.name}.{name}": metric.value for score in scores for name, metric in score.metrics.items()}
            printed.setdefault(into, {}).setdefault(log.eval.task, {})[log.eval.model] = found
        return logs

    two: Callable[[], list[Task]] = lambda: [  # noqa: E731 - tasks are used up by a run
        doubling("letters", letters(), epochs=2),
        doubling("booleans", graded(True, False, [accuracy()])),
    ]
    run("eval", two(), log_format="eval")
    run("json", two(), log_format="json")
    run("several", [doubling("several", [letters(), stars(), parts()])])
    run("stars", [doubling("stars", stars())])
    run("parts", [doubling("parts", parts())])
    run("words", [doubling("words", graded("yes", "no", [accuracy()]))])
    run("unscored", [doubling("unscored", None)])
    run("errors", [doubling("errors", letters(), solvers=[failing_on(0)], fail_on_error=False)])
    run("broken-off", [doubling("broken-off", letters(), solvers=[failing_on(3)])], [model("strong")])
    run(
        "tried-again",
        [doubling("tried-again", letters(), solvers=[failing_on(1, only_once=True)])],
        [model("strong")],
        retry_on_error=1,
    )
    run("limits", [doubling("limits", letters(), solvers=[talking()], token_limit=40)])
    run("messages", [doubling("messages", letters(), solvers=[talking()], message_limit=4)])
    run(
        "tools",
        [doubling("tools", letters(), solvers=[use_tools(double(), halve()), generate()], epochs=2)],
        [model("strong", calls=True), model("weak", calls=True)],
    )
    run("asked", [asked("plain"), asked("polite")])
    [first] = run("recovered", [recovering()], [model("strong")])
    os.environ[UP] = "yes"
    eval_retry(first, log_dir=str(folder / "recovered"), display="none")
    return printed


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
