"""The contract of a family, examined as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasks_env.contract import acting, declarations, generating, wording
from tasks_env.contract.promises import Promise, broken_promises, told
from tasks_env.contract.subject import Declared, Subject
from tasks_env.errors import ContractError, GenerationError
from tasks_env.families import Family, registered
from tasks_env.generation import generate_instance, instance_seeds, validated_params
from tasks_env.proofs import Proof, Trial, run_trial
from tasks_env.types import BASE_SAMPLE

INSTANCES = 8
PROVEN_UNDER = (
    ("none", "baseline"),
    ("tool_names", "synonyms"),
    ("tool_names", "opaque"),
    ("distractors", "2"),
)

DECLARED: Mapping[str, Promise[Declared]] = {
    "names are in order": declarations.names,
    "parameters refuse nonsense": declarations.parameters,
    "tools are well described": declarations.tools,
}
KEPT: Mapping[str, Promise[Subject]] = {
    "same seed, same bytes": generating.same_bytes,
    "same bytes in another process": generating.same_bytes_elsewhere,
    "instances are JSON": generating.json_instances,
    "every wording is whole": wording.wordings,
    "renaming reaches every text": wording.renaming,
    "the reference passes": acting.reference,
    "worlds are isolated": acting.isolation,
    "states are JSON": acting.json_states,
    "verdicts are consistent": acting.verdicts,
    "any call is answered": acting.any_call,
}
PROOFS_HOLD = "proofs hold"
GENERATES = "instances can be generated"


def check_family(
    family: Family[Any],
    difficulties: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    instances: int = INSTANCES,
    seed: int = 0,
    other_process: bool = True,
) -> None:
    """Examine a family, registered or not, under its demonstration and every given difficulty.

    Args:
        difficulties: Parameters by name, as a manifest has them. Every operator of the family must find a place in
            one of them, or in the demonstration.
        instances: Of each difficulty; the proofs draw as many again for each way of showing them.
        seed: All draws derive from it.
        other_process: Whether the bytes are compared with those of a process with another hash seed, locale and time
            zone; it is left out for a class that cannot be imported or made without arguments.

    Raises:
        ContractError: has a line for every broken promise, which begins with the promise's name.
    """
    if not isinstance(getattr(family, "name", None), str):
        raise ContractError(f"family {type(family).__name__}", ["names are in order: name is missing or no text"])
    with registered(family):
        broken = broken_promises(DECLARED, Declared(family, difficulties or {}, seed))
        try:
            subject = _subject(family, difficulties or {}, instances, seed)
        except GenerationError as error:
            broken.append(f"{GENERATES}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a stranger's parameters raise
            broken.append(f"{GENERATES}: {told(error)}")
        else:
            kept = {name: each for name, each in KEPT.items() if other_process or "process" not in name}
            broken += broken_promises({**kept, PROOFS_HOLD: _proofs}, subject)
    if broken:
        raise ContractError(f"family {family.name!r}", broken)


def _subject(family: Family[Any], difficulties: Mapping[str, Mapping[str, Any]], count: int, seed: int) -> Subject:
    given = {"demonstration": family.demonstration.model_dump(mode="json"), **difficulties}
    params = {name: validated_params(family.name, each) for name, each in given.items()}
    drawn = []
    for name, valid in params.items():
        for each in instance_seeds(seed, family.name, name, BASE_SAMPLE, count):
            try:
                drawn.append(generate_instance(family.name, valid, each, difficulty=name))
            except Exception as error:
                where = f"difficulty {name!r}, seed {each}"
                raise GenerationError(f"{where}: {told(error)}") from error
    return Subject(family, params, tuple(drawn), seed, count)


def _proofs(subject: Subject) -> Iterator[str]:
    proof = Proof([subject.family.name])
    for difficulty, params in subject.params.items():
        for axis, level in PROVEN_UNDER:
            proof.merge(
                run_trial(
                    Trial(
                        family=subject.family.name,
                        difficulty=difficulty,
                        params=params.model_dump(mode="json"),
                        axis=axis,
                        level=level,
                        seed=subject.seed,
                        instances=subject.count,
                    )
                )
            )
    yield from proof.problems()
