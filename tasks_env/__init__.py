"""A task environment for agents: verified tasks, shown in ways that must not matter.

    instance = generate_instance("query", family("query").demonstration, seed=1)
    [shown] = perturbation("tool_names").present([instance], "synonyms", seed=1)
    session = Session(instance, render(instance, shown, axis="tool_names", level="synonyms", seed=1))
    play(session, family("query").reference(instance))
    assert session.verdict().passed

It runs no model and opens no connection.
"""

from __future__ import annotations

from tasks_env.contract import check_family, check_perturbation
from tasks_env.errors import (
    ContractError,
    GenerationError,
    ParameterError,
    RegistrationError,
    TaskEnvError,
    ToolError,
    UnknownName,
)
from tasks_env.families import FAMILIES, Family, Proposal, Reply, SecondOpinion, family, registered
from tasks_env.generation import generate_instance, instance_seeds, validated_params
from tasks_env.perturbations import PERTURBATIONS, Perturbation, perturbation
from tasks_env.session import Session, play, render, verify
from tasks_env.types import (
    Condition,
    Content,
    FinalState,
    Instance,
    JsonObject,
    Naming,
    Presentation,
    ToolCall,
    ToolResult,
    ToolSpec,
    Variant,
    Verdict,
    VerifierInput,
)

__all__ = [
    "FAMILIES",
    "PERTURBATIONS",
    "Condition",
    "Content",
    "ContractError",
    "Family",
    "FinalState",
    "GenerationError",
    "Instance",
    "JsonObject",
    "Naming",
    "ParameterError",
    "Perturbation",
    "Presentation",
    "Proposal",
    "RegistrationError",
    "Reply",
    "SecondOpinion",
    "Session",
    "TaskEnvError",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "ToolSpec",
    "UnknownName",
    "Variant",
    "Verdict",
    "VerifierInput",
    "check_family",
    "check_perturbation",
    "family",
    "generate_instance",
    "instance_seeds",
    "perturbation",
    "play",
    "registered",
    "render",
    "validated_params",
    "verify",
]
