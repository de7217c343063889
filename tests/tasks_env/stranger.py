"""A stranger's family, whole: closing balances of a small ledger. It knows `tasks_env` only as anyone outside does.

Spec: `{"accounts": [name], "first_day": int, "last_day": int}`. World: `{"opening": {account: cents}, "entries":
[{"day", "from", "to", "cents"}]}`. Truth and final state: `{"balances": {account: "12.50"}}`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from pydantic import Field

from tasks_env import (
    Condition,
    Content,
    Family,
    FinalState,
    GenerationError,
    Instance,
    JsonObject,
    Proposal,
    Reply,
    SecondOpinion,
    ToolCall,
    ToolError,
    ToolSpec,
    Verdict,
    VerifierInput,
)
from tasks_env.seeding import derive
from tasks_env.tools import parameter, tool
from tasks_env.types import Frozen

NAMES = ("cash", "bank", "rent", "stock", "sales", "wages")
PAGE = 8
AMOUNT = re.compile(r"([+-]?)([0-9]{1,9})(?:\.([0-9]{1,4}))?", re.ASCII)


class LedgerParams(Frozen):
    """How large the ledger is."""

    accounts: int = Field(ge=2, le=6, description="Accounts in the ledger.")
    entries: int = Field(ge=4, le=200, description="Entries in the journal.")


def written(cents: int) -> str:
    """An amount as the task asks for it: `-3.05`."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"


def read(text: str) -> int | None:
    """Hundredths of a cent, or null for what is no amount. White space around it, `+` and end zeros mean nothing."""
    match = AMOUNT.fullmatch(text.strip(" \t"))
    if match is None:
        return None
    size = int(match[2]) * 10_000 + int((match[3] or "").ljust(4, "0"))
    return -size if match[1] == "-" else size


def closing(instance: Instance, first: int, last: int, skip: int | None = None) -> dict[str, int]:
    """Cents by account after the entries of days `first` to `last`, both included."""
    world: Any = instance.world
    balances = dict(world["opening"])
    for number, entry in enumerate(world["entries"]):
        if first <= entry["day"] <= last and number != skip:
            balances[entry["from"]] -= entry["cents"]
            balances[entry["to"]] += entry["cents"]
    return balances


class Book:
    """The ledger as the tools show it, and the balances written so far."""

    def __init__(self, world: Any) -> None:
        self.submitted = False
        self._opening: dict[str, int] = world["opening"]
        self._entries: list[dict[str, Any]] = world["entries"]
        self._balances: dict[str, str] = {}

    def call(self, name: str, arguments: JsonObject) -> Reply:
        """Carry out one call."""
        return {
            "list_accounts": self._list,
            "read_journal": self._read,
            "write_balance": self._write,
            "close_books": self._close,
        }[name](arguments)

    def state(self) -> JsonObject:
        """The balances written so far."""
        return {"balances": dict(self._balances)}

    def _list(self, _arguments: JsonObject) -> Reply:
        lines = [f"{name}: {written(cents)}" for name, cents in sorted(self._opening.items())]
        return Reply(text="\n".join(["opening balances", *lines]), note="Entries: {tool:read_journal}.")

    def _read(self, arguments: JsonObject) -> Reply:
        page = arguments.get("page_number", 1)
        assert isinstance(page, int)
        pages = -(-len(self._entries) // PAGE)
        if page > pages:
            raise ToolError(f"there are {pages} pages", argument="page_number")
        shown = self._entries[(page - 1) * PAGE : page * PAGE]
        lines = [f"day {each['day']}: {written(each['cents'])} from {each['from']} to {each['to']}" for each in shown]
        return Reply(text="\n".join([f"page {page} of {pages}", *lines]))

    def _write(self, arguments: JsonObject) -> Reply:
        if self.submitted:
            raise ToolError("the books are closed")
        account = str(arguments["account_name"])
        if account not in self._opening:
            raise ToolError("there is no such account; see {tool:list_accounts}", argument="account_name")
        self._balances[account] = str(arguments["amount"])
        return Reply(text="written", note="When all are written: {tool:close_books}.")

    def _close(self, _arguments: JsonObject) -> Reply:
        self.submitted = True
        return Reply(text="closed")


class Ledger(Family[LedgerParams]):
    """Book the entries of a period and write down what the accounts hold."""

    name = "ledger"
    version = 1
    params = LedgerParams
    demonstration = LedgerParams(accounts=2, entries=4)
    closing_tool = "close_books"
    restatement_operators = ("space around", "plus sign", "end zero")
    near_miss_operators = (
        "a cent off",
        "sign changed",
        "balances swapped",
        "account missing",
        "account too many",
        "entry left out",
        "first day exclusive",
        "last day exclusive",
        "unit written too",
        "never closed",
    )

    def generate(self, params: LedgerParams, seed: int) -> Content:
        """A ledger in which both ends of the period matter to every account that is asked for."""
        rng = derive(seed, "ledger")
        for _ in range(200):
            content = self._draw(params, rng)
            if content is not None:
                return content
        raise GenerationError(f"ledger: no acceptable journal for seed {seed}")

    def _draw(self, params: LedgerParams, rng: random.Random) -> Content | None:
        accounts = list(NAMES[: params.accounts])
        opening = {name: rng.randint(10_00, 900_00) for name in accounts}
        first, last = rng.randint(2, 9), rng.randint(12, 20)
        entries = []
        for number in range(params.entries):
            day = (first, last)[number] if number < 2 else rng.randint(1, 24)
            source, target = rng.sample(accounts, 2) if number >= 2 else accounts[:2]
            entries.append({"day": day, "from": source, "to": target, "cents": rng.randint(1, 400_00)})
        entries.sort(key=lambda entry: (entry["day"], entry["from"], entry["to"], entry["cents"]))
        spec: JsonObject = {"accounts": accounts[:2], "first_day": first, "last_day": last}
        world: JsonObject = {"opening": dict(opening), "entries": [*entries]}
        draft = Instance(
            instance_id="draft",
            family="",
            difficulty="",
            sample="",
            seed=0,
            params={},
            spec=spec,
            world=world,
            truth={},
        )
        right = [closing(draft, first, last)[name] for name in accounts[:2]]
        readings = [closing(draft, *days) for days in ((first + 1, last), (first, last - 1), (1, 24))]
        wrong = [[reading[name] for name in accounts[:2]] for reading in (*readings, opening)]
        if right in wrong or 0 in right or right[0] == right[1]:
            return None
        return Content(
            spec=spec, world=world, truth={"balances": dict(zip(accounts, map(written, right), strict=False))}
        )

    def tools(self) -> tuple[ToolSpec, ...]:
        """Two to look, one to write, one to end."""
        return (
            tool("list_accounts", "The accounts with their opening balances.", {}),
            tool(
                "read_journal",
                "The journal's entries by day, a few a page.",
                {},
                {"page_number": parameter("integer", "Which page, from 1.", minimum=1, maximum=99)},
            ),
            tool(
                "write_balance",
                "Write down an account's closing balance; {arg:amount} replaces what was written before.",
                {
                    "account_name": parameter("string", "An account from {tool:list_accounts}.", maxLength=40),
                    "amount": parameter("string", "The balance with two decimals, such as 12.50.", maxLength=40),
                },
            ),
            tool("close_books", "Hand in the written balances. Ends the task.", {}),
        )

    def prompt(self, instance: Instance, phrasing: str) -> str:
        """Accounts and period, in one of six wordings."""
        spec: Any = instance.spec
        first, last = spec["first_day"], spec["last_day"]
        one, two = spec["accounts"]
        ending = "write each with {tool:write_balance} to two decimals, then call {tool:close_books}"
        return {
            "base": f"Find the closing balances of {one} and {two}. Count only the entries of days {first} to {last}, "
            f"both included; {ending}.",
            "p1": f"Days {first} to {last} are what counts, the first and the last included: {ending}, "
            f"for the accounts {one} and {two}.",
            "p2": f"What do {one} and {two} hold once every entry from day {first} through day {last} is booked, these "
            f"two days included? Other days do not count. Please {ending}.",
            "p3": f"Accounts: {one}, {two}. Period: day {first} to day {last}, inclusive; nothing else is booked. "
            f"Wanted: closing balances. {ending[0].upper()}{ending[1:]}.",
            "p4": f"Book no entry before day {first} and none after day {last}, but all of those days and between. "
            f"For {one} and for {two}, {ending}.",
            "p5": f"I need two closing balances from you, of {one} and of {two}, with the entries of days {first} to "
            f"{last} and no others (day {first} and day {last} count). So {ending}.",
        }[phrasing]

    def open(self, instance: Instance) -> Book:
        """An untouched ledger."""
        return Book(instance.world)

    def verify(self, evidence: VerifierInput) -> Verdict:
        """Every asked account with its amount, no other account, and the books closed."""
        wanted: Any = evidence.instance.truth["balances"]
        found: Any = evidence.final_state.data["balances"]
        conditions = [
            Condition(name=f"balance of {name}", holds=name in found and read(found[name]) == read(amount))
            for name, amount in wanted.items()
        ]
        conditions.append(Condition(name="no other account", holds=set(found) <= set(wanted)))
        conditions.append(Condition(name="closed", holds=evidence.final_state.submitted))
        score = sum(condition.holds for condition in conditions) / len(conditions)
        return Verdict(passed=score == 1, partial_score=score, conditions=tuple(conditions))

    def reference(self, instance: Instance) -> tuple[ToolCall, ...]:
        """Look at everything, write the asked balances, close."""
        spec: Any = instance.spec
        balances = closing(instance, spec["first_day"], spec["last_day"])
        return self._plan(instance, {name: balances[name] for name in spec["accounts"]})

    def mistake(self, instance: Instance, rng: random.Random) -> tuple[ToolCall, ...]:
        """One of the balances off by a booking."""
        spec: Any = instance.spec
        balances = closing(instance, spec["first_day"], spec["last_day"])
        wrong = {name: balances[name] for name in spec["accounts"]}
        wrong[rng.choice(spec["accounts"])] += rng.randint(1, 99)
        return self._plan(instance, wrong)

    def _plan(self, instance: Instance, balances: dict[str, int]) -> tuple[ToolCall, ...]:
        world: Any = instance.world
        pages = -(-len(world["entries"]) // PAGE)
        return (
            ToolCall(name="list_accounts", arguments={}),
            *(ToolCall(name="read_journal", arguments={"page_number": page + 1}) for page in range(pages)),
            *(
                ToolCall(name="write_balance", arguments={"account_name": name, "amount": written(cents)})
                for name, cents in balances.items()
            ),
            ToolCall(name="close_books", arguments={}),
        )

    # --- proofs -------------------------------------------------------------------------------------------

    def second_opinion(self, instance: Instance) -> SecondOpinion:
        """Each account's balance as one sum of decimals; neither `closing` nor `read` is used."""
        spec: Any = instance.spec
        world: Any = instance.world
        period = range(spec["first_day"], spec["last_day"] + 1)
        balance = {
            name: Decimal(world["opening"][name]).scaleb(-2)
            + sum(Decimal(e["cents"]).scaleb(-2) for e in world["entries"] if e["to"] == name and e["day"] in period)
            - sum(Decimal(e["cents"]).scaleb(-2) for e in world["entries"] if e["from"] == name and e["day"] in period)
            for name in spec["accounts"]
        }

        def right(state: FinalState) -> bool:
            found: Any = state.data["balances"]
            try:
                return state.submitted and {name: Decimal(text.strip(" \t")) for name, text in found.items()} == balance
            except InvalidOperation:
                return False

        return right

    def untouched(self, instance: Instance) -> Iterator[tuple[ToolCall, ...]]:
        """The opening balances, as if nothing had been booked."""
        spec: Any = instance.spec
        world: Any = instance.world
        yield self._plan(instance, {name: world["opening"][name] for name in spec["accounts"]})

    def restatements(self, instance: Instance, right: FinalState) -> Iterator[Proposal]:  # noqa: ARG002
        """The first balance written otherwise."""
        found: Any = right.data["balances"]
        name, text = next(iter(found.items()))
        yield _proposal("space around", {**found, name: f" {text} "})
        yield _proposal("end zero", {**found, name: text + "0"})
        if not text.startswith("-"):
            yield _proposal("plus sign", {**found, name: "+" + text})

    def near_misses(self, instance: Instance, right: FinalState, rng: random.Random) -> Iterator[Proposal]:
        """Balances wrong by a little."""
        spec: Any = instance.spec
        world: Any = instance.world
        first, last = spec["first_day"], spec["last_day"]
        names = spec["accounts"]
        found: Any = right.data["balances"]
        balances = closing(instance, first, last)
        name = rng.choice(names)
        yield _proposal("a cent off", {**found, name: written(balances[name] + rng.choice((-1, 1)))})
        yield _proposal("sign changed", {**found, name: written(-balances[name])})
        yield _proposal("balances swapped", dict(zip(names, reversed([found[each] for each in names]), strict=True)))
        yield _proposal("account missing", {each: text for each, text in found.items() if each != name})
        others = [each for each in sorted(world["opening"]) if each not in names] or ["nobody"]
        yield _proposal("account too many", {**found, rng.choice(others): "0.00"})
        booked = [
            number
            for number, entry in enumerate(world["entries"])
            if first <= entry["day"] <= last and {entry["from"], entry["to"]} & set(names)
        ]
        for operator, wrong in (
            ("entry left out", closing(instance, first, last, skip=rng.choice(booked))),
            ("first day exclusive", closing(instance, first + 1, last)),
            ("last day exclusive", closing(instance, first, last - 1)),
        ):
            yield _proposal(operator, {each: written(wrong[each]) for each in names})
        yield _proposal("unit written too", {**found, name: f"{found[name]} EUR"})
        yield Proposal(operator="never closed", state=right.model_copy(update={"submitted": False}))


def _proposal(operator: str, balances: dict[str, Any]) -> Proposal:
    return Proposal(operator=operator, state=FinalState(submitted=True, data={"balances": balances}))
