"""A second judge of answers, written from the documented rules alone.

It solves the instance with `second_solver` and compares by its own reading of the rules that `answers` states:
intervals of exact fractions instead of rounding, characters instead of patterns. It shares no code with the
generator, the tools, the reference or the verifier, and never reads the stored truth.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tasks_env.families.query.second_solver import solve
from tasks_env.types import FinalState, Instance

_DIGITS = frozenset("0123456789")
_MOST_WHOLE_DIGITS = 15
_MOST_DECIMALS = 30


def second_opinion(instance: Instance) -> Callable[[FinalState], bool]:
    """Whether a final state of this instance is right."""
    right = solve(instance.spec, instance.world)
    form: Any = instance.spec["answer"]

    def judge(state: FinalState) -> bool:
        answer = state.data.get("answer")
        if right is None or not state.submitted or not isinstance(answer, str):
            return False
        return _means(answer, right, form["kind"], form.get("decimals", 0))

    return judge


def _means(text: str, right: str | list[str], kind: str, decimals: int) -> bool:
    """Whether `text` says `right` by the rules for answers of this kind."""
    if isinstance(right, str):
        return _is_number(text.strip(), right, decimals) if kind == "number" else text.strip() == right
    values = [value.strip() for value in text.split(";")]
    if len(values) != len(right):
        return False
    if kind == "pair":
        return values[0] == right[0] and _is_number(values[1], right[1], decimals)
    return values == right


def _is_number(text: str, right: str, decimals: int) -> bool:
    """Whether `text` is a number that equals `right` or, with decimals, is rounded to it.

    Halves are rounded away from zero, so the interval is open on that side: for 3.12 it is [3.115, 3.125).
    """
    value, target = _number(text), _number(right)
    if value is None or target is None:
        return False
    if decimals == 0:
        return value == target
    half = Fraction(1, 2 * 10**decimals)
    if target == 0:
        return -half < value < half
    outward = value - target if target > 0 else target - value
    return -half <= outward < half


def _number(text: str) -> Fraction | None:
    """The number that `text` writes in plain digits; None when it is not one."""
    unsigned = text[1:] if text.startswith(("+", "-")) else text
    whole, point, decimals = unsigned.partition(".")
    if not 1 <= len(whole) <= _MOST_WHOLE_DIGITS or len(decimals) > _MOST_DECIMALS or bool(point) != bool(decimals):
        return None
    if not _DIGITS.issuperset(whole + decimals):
        return None
    size = Fraction(int(whole + decimals), 10 ** len(decimals))
    return -size if text.startswith("-") else size
