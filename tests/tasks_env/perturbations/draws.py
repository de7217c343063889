"""Small instances with parameters drawn from a family's own parameter model, so that no test picks them by hand."""

from __future__ import annotations

import random
from typing import Any, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from tasks_env.errors import GenerationError
from tasks_env.families import family
from tasks_env.generation import generate_instance
from tasks_env.seeding import derive, derive_seed
from tasks_env.types import Frozen, Instance

RANGES = {"rows": (16, 32), "files": (12, 24), "missing_percent": (0, 30)}
"""Wide parameters: enough for every operation, small enough to generate in milliseconds."""
STEPS = (0, 0, 1, 1, 1, 2)
"""How far any other whole number lies above the lowest that its field allows."""
SOME_FIELDS = 0.25
EVERY_FIELD = 0.04
TRIES = 500


def drawn_params(name: str, rng: random.Random) -> Frozen:
    """Valid parameters: mostly the smallest with some fields redrawn, now and then with every field redrawn.

    The second is what reaches operations that only go together, and takes far longer to generate.
    """
    smallest = family(name).demonstration
    fields = type(smallest).model_fields
    every = rng.random() < EVERY_FIELD
    for _ in range(TRIES):
        chosen = [field for field in fields if every or field in RANGES or rng.random() < SOME_FIELDS]
        drawn = {field: _value(field, fields[field], rng) for field in chosen}
        try:
            return type(smallest).model_validate({**smallest.model_dump(), **drawn})
        except ValidationError:
            continue
    raise AssertionError(f"no valid parameters of family {name!r} in {TRIES} draws")


def drawn_instance(name: str, seed: int, sample: str = "base") -> Instance:
    """The instance for `seed`; parameters for which the family finds none are drawn again."""
    for attempt in range(TRIES):
        params = drawn_params(name, derive(seed, "params", attempt))
        try:
            return generate_instance(name, params, derive_seed(seed, "instance", attempt), sample=sample)
        except GenerationError:
            continue
    raise AssertionError(f"no instance of family {name!r} in {TRIES} draws")


def _value(field: str, info: FieldInfo, rng: random.Random) -> Any:
    """A value that a field's annotation and bounds allow; of numbers, one that keeps the instance small."""
    bounds: dict[type, Any] = {type(each): each for each in info.metadata}
    if info.annotation is bool:
        return rng.random() < 0.5
    if info.annotation is int and field in RANGES:
        return rng.randint(*RANGES[field])
    if info.annotation is int:
        return min(bounds[Le].le, bounds[Ge].ge + rng.choice(STEPS))
    if info.annotation is float:
        return round(rng.uniform(bounds[Ge].ge, bounds[Le].le), 2)
    if get_origin(info.annotation) is tuple:
        items = get_args(get_args(info.annotation)[0])
        return tuple(rng.sample(items, rng.randint(bounds[MinLen].min_length, bounds[MaxLen].max_length)))
    raise TypeError(f"no draw for parameter {field!r} of type {info.annotation}")
