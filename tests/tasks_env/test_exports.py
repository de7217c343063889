from __future__ import annotations

import textwrap

import tasks_env

EXPORTED = """
    FAMILIES PERTURBATIONS Condition Content ContractError Family FinalState GenerationError Instance JsonObject Naming
    ParameterError Perturbation Presentation Proposal RegistrationError Reply SecondOpinion Session TaskEnvError
    ToolCall ToolError ToolResult ToolSpec UnknownName Variant Verdict VerifierInput check_family check_perturbation
    family generate_instance instance_seeds perturbation play registered render validated_params verify
"""


def test_the_public_names_are_these_and_no_others() -> None:
    assert tasks_env.__all__ == EXPORTED.split()


def test_every_public_name_exists_and_is_documented() -> None:
    for name in tasks_env.__all__:
        public = getattr(tasks_env, name)
        assert isinstance(public, dict) or name in ("JsonObject", "SecondOpinion") or public.__doc__, name


def test_every_error_and_type_is_public() -> None:
    errors = {
        name
        for name, each in vars(tasks_env.errors).items()
        if isinstance(each, type) and issubclass(each, tasks_env.TaskEnvError)
    }
    nouns = {
        name
        for name, each in vars(tasks_env.types).items()
        if isinstance(each, type) and issubclass(each, tasks_env.types.Frozen) and name != "Frozen"
    }
    assert errors | nouns <= set(tasks_env.__all__)


def test_the_example_in_the_docstring_runs() -> None:
    assert tasks_env.__doc__ is not None
    example = "\n".join(line for line in tasks_env.__doc__.splitlines() if line.startswith("    "))
    names = {name: getattr(tasks_env, name) for name in tasks_env.__all__}
    exec(textwrap.dedent(example), names)
    assert names["session"].verdict().passed
