"""A very small family: enough of every surface to test sessions and namings without a real family."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pydantic import Field, JsonValue

from tasks_env.errors import ToolError
from tasks_env.families.base import Family, Proposal, Reply, SecondOpinion
from tasks_env.seeding import derive
from tasks_env.tools import parameter, tool
from tasks_env.types import (
    Condition,
    Content,
    FinalState,
    Frozen,
    Instance,
    JsonObject,
    ToolCall,
    ToolSpec,
    Verdict,
    VerifierInput,
)


class ShelvesParams(Frozen):
    """How many shelves there are."""

    shelves: int = Field(ge=1, le=9, description="Shelves to count.")


def numbers(value: JsonValue) -> dict[str, int]:
    """A JSON object of integers, copied."""
    assert isinstance(value, dict)
    return {name: each for name, each in value.items() if isinstance(each, int)}


class Shop:
    """Shelves with items, and the counts written down so far."""

    def __init__(self, shelves: dict[str, int]) -> None:
        self.submitted = False
        self.shelves = shelves
        self.counts: JsonObject = {}

    def call(self, name: str, arguments: JsonObject) -> Reply:
        if name == "submit":
            self.submitted = True
            return Reply(text="submitted")
        if name == "list_shelves":
            pages = arguments.get("pages", 1)
            assert isinstance(pages, int)
            text = "\n".join(f"{shelf} {{tool:submit}}" for shelf in self.shelves)
            return Reply(text=text * pages, note="Count with {tool:write_count}.")
        shelf = str(arguments["shelf"])
        if shelf not in self.shelves:
            raise ToolError(f"no shelf {shelf}; see {{tool:list_shelves}}", argument="shelf")
        if name == "count_items":
            return Reply(text=f"{shelf}: {self.shelves[shelf]}")
        self.counts[shelf] = arguments["count"]
        return Reply(text="written", note="End with {tool:submit}.")

    def state(self) -> JsonObject:
        return {"counts": dict(self.counts)}


class Shelves(Family[ShelvesParams]):
    """Count every shelf and write the counts down."""

    name = "shelves"
    version = 1
    params = ShelvesParams
    demonstration = ShelvesParams(shelves=1)
    closing_tool = "submit"
    restatement_operators = ("other order",)
    near_miss_operators = ("count off by one",)

    def generate(self, params: ShelvesParams, seed: int) -> Content:
        rng = derive(seed, "shelves")
        shelves: JsonObject = {f"shelf-{i}": rng.randint(1, 99) for i in range(params.shelves)}
        return Content(spec={"shelves": [*shelves]}, world={"shelves": shelves}, truth={"counts": shelves})

    def tools(self) -> tuple[ToolSpec, ...]:
        shelf = parameter("string", "A shelf from {tool:list_shelves}.")
        return (
            tool(
                "list_shelves",
                "Names of the shelves; {arg:pages} times over.",
                {},
                {"pages": parameter("integer", "Copies.", minimum=1, maximum=9999)},
            ),
            tool("count_items", "Items on a shelf.", {"shelf": shelf}),
            tool(
                "write_count",
                "Write down the {arg:count} of a {arg:shelf}.",
                {"shelf": shelf, "count": parameter("integer", "As {tool:count_items} says.")},
            ),
            tool("submit", "End the task.", {}),
        )

    def prompt(self, instance: Instance, phrasing: str) -> str:
        greeting = "" if phrasing == "base" else f"({phrasing}) "
        return f"{greeting}Count {len(instance.truth)} shelves with {{tool:count_items}}, then {{tool:submit}}."

    def open(self, instance: Instance) -> Shop:
        return Shop(numbers(instance.world["shelves"]))

    def verify(self, evidence: VerifierInput) -> Verdict:
        right = evidence.final_state.submitted and evidence.final_state.data == evidence.instance.truth
        condition = Condition(name="counts", holds=right)
        return Verdict(passed=right, partial_score=float(right), conditions=(condition,))

    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        return self._plan(numbers(instance.truth["counts"]))

    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        counts = numbers(instance.truth["counts"])
        counts[rng.choice(sorted(counts))] += 1
        return self._plan(counts)

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        shelves = instance.world["shelves"]
        return lambda state: state.submitted and state.data == {"counts": shelves}

    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:  # noqa: ARG002
        yield self._plan({})

    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:  # noqa: ARG002
        counts = numbers(right.data["counts"])
        data: JsonObject = {"counts": dict(reversed(counts.items()))}
        yield Proposal(operator="other order", state=FinalState(submitted=True, data=data))

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:  # noqa: ARG002
        counts = numbers(right.data["counts"])
        counts[rng.choice(sorted(counts))] -= 1
        data: JsonObject = {"counts": {**counts}}
        yield Proposal(operator="count off by one", state=FinalState(submitted=True, data=data))

    def _plan(self, counts: dict[str, int]) -> tuple[ToolCall, ...]:
        calls = [ToolCall(name="list_shelves", arguments={})]
        for shelf, count in counts.items():
            calls.append(ToolCall(name="count_items", arguments={"shelf": shelf}))
            calls.append(ToolCall(name="write_count", arguments={"shelf": shelf, "count": count}))
        return (*calls, ToolCall(name="submit", arguments={}))
