"""Errors of the environment.

TaskEnvError
├── ParameterError      a family's difficulty parameters are invalid (a configuration mistake)
├── GenerationError     no acceptable instance was found for a seed
├── UnknownName         a family, difficulty, axis, level or tool that does not exist
├── RegistrationError   a family that a distribution registers cannot be used
├── ContractError       a family or a perturbation breaks promises that everything else relies on
└── ToolError           a tool call that cannot be carried out: data for the agent, never a crash
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class TaskEnvError(Exception):
    """Base of every error that this package raises on purpose."""


class ParameterError(TaskEnvError):
    """A difficulty parameter failed validation. `family` and `parameter` say which one."""

    def __init__(self, family: str, parameter: str, message: str) -> None:
        super().__init__(f"family {family!r}, parameter {parameter!r}: {message}")
        self.family = family
        self.parameter = parameter


class GenerationError(TaskEnvError):
    """A family found no acceptable instance for a seed within its bounded number of tries."""


class UnknownName(TaskEnvError):
    """A name that is not among the known ones; the message lists them and suggests the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(names) or 'none'}{hint}")
        self.kind = kind
        self.name = name
        self.near = near


class RegistrationError(TaskEnvError):
    """An installed distribution's family cannot be used. `family` is the name that was asked for."""

    def __init__(self, family: str, message: str) -> None:
        super().__init__(f"family {family!r}: {message}")
        self.family = family


class ContractError(TaskEnvError):
    """A family or a perturbation breaks its contract. `broken` has a line for every broken promise."""

    def __init__(self, subject: str, broken: Sequence[str]) -> None:
        super().__init__("\n- ".join([f"{subject} breaks its contract:", *broken]))
        self.subject = subject
        self.broken = tuple(broken)


class ToolError(TaskEnvError):
    """A tool call that cannot be carried out; the agent reads the message as the tool's result.

    Args:
        message: What was wrong and what to do. `{tool:NAME}` and `{arg:NAME}` stand for the name under
            which the agent knows a tool or an argument.
        argument: The canonical name of the offending argument, if there is one.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument
