"""From parameters and a seed to an `Instance` with an identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tasks_env.canonical import content_hash
from tasks_env.errors import ParameterError
from tasks_env.families import family
from tasks_env.seeding import derive_seed
from tasks_env.types import BASE_SAMPLE, Content, Frozen, Instance


def validated_params(family_name: str, params: Mapping[str, Any]) -> Frozen:
    """The family's parameter model, filled in.

    Raises:
        UnknownName: no such family.
        ParameterError: names the family and the first parameter that failed.
    """
    model = family(family_name).params
    try:
        validated: Frozen = model.model_validate(dict(params))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "(all)"
        raise ParameterError(family_name, where, f"{first['msg']}, got {first['input']!r}") from None
    return validated


def instance_seeds(master_seed: int, family_name: str, difficulty: str, sample: str, count: int) -> list[int]:
    """The seeds of a set; a larger `count` only appends."""
    return [derive_seed(master_seed, "instance", family_name, difficulty, sample, i) for i in range(count)]


def generate_instance(
    family_name: str,
    params: Mapping[str, Any] | Frozen,
    seed: int,
    *,
    difficulty: str = "custom",
    sample: str = BASE_SAMPLE,
) -> Instance:
    """One instance, the same bytes for the same arguments on every machine.

    Raises:
        UnknownName, ParameterError: bad arguments.
        GenerationError: no acceptable instance exists within the family's bounded tries.
    """
    chosen = family(family_name)
    valid = params if isinstance(params, Frozen) else validated_params(family_name, params)
    content: Content = chosen.generate(valid, seed)
    # The family answers for its content being JSON (`Content` validates it where it is not built from parts known
    # to be); validating it a second time would cost more than all of the rest.
    parts = {"spec": content.spec, "world": content.world, "truth": content.truth}
    identity = content_hash([chosen.name, chosen.version, parts], 12)
    return Instance.model_construct(
        instance_id=f"{chosen.name}-{difficulty}-{identity}",
        family=chosen.name,
        difficulty=difficulty,
        sample=sample,
        seed=seed,
        params=valid.model_dump(mode="json"),
        spec=content.spec,
        world=content.world,
        truth=content.truth,
    )
