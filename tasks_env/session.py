"""Showing an instance and acting on it: rendering a variant, and the session that carries out its calls."""

from __future__ import annotations

from tasks_env.canonical import content_hash
from tasks_env.errors import ToolError, UnknownName
from tasks_env.families import family
from tasks_env.naming import canonical_arguments, resolve, shown_spec
from tasks_env.perturbations.distractors import distractor
from tasks_env.tools import DEEPEST, check_arguments, integers_as_such, nested_too_deeply
from tasks_env.types import (
    FinalState,
    Instance,
    JsonObject,
    Presentation,
    ToolCall,
    ToolResult,
    Variant,
    Verdict,
    VerifierInput,
)

TOOL_OUTPUT_CHARS = 6000


def render(
    instance: Instance,
    presentation: Presentation | None = None,
    *,
    axis: str = "none",
    level: str = "baseline",
    seed: int = 0,
) -> Variant:
    """The instance as `presentation` shows it; the identity presentation gives the baseline's bytes.

    Raises:
        UnknownName: no such wording or distractor.
        ValueError: two tools, or two arguments of one tool, would be shown under one name.
    """
    shown = presentation or Presentation()
    chosen = family(instance.family)
    if shown.phrasing not in chosen.phrasings:
        raise UnknownName(f"phrasing of family {chosen.name!r}", shown.phrasing, chosen.phrasings)
    specs = [shown_spec(spec, shown.naming) for spec in chosen.tools()]
    specs += [distractor(name).spec for name in shown.distractors]
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise ValueError(f"two tools would be shown under one name: {', '.join(sorted(names))}")
    parts = {
        "instance_id": instance.instance_id,
        "source_hash": content_hash(instance.model_dump(mode="json")),
        "family": instance.family,
        "difficulty": instance.difficulty,
        "instance_seed": instance.seed,
        "axis": axis,
        "level": level,
        "seed": seed,
        "presentation": shown.model_dump(mode="json"),
        "prompt": resolve(chosen.prompt(instance, shown.phrasing), shown.naming),
        "tools": [spec.model_dump(mode="json") for spec in specs],
    }
    return Variant.model_validate({"variant_id": content_hash(parts, 16), **parts})


class Session:
    """One episode's world behind the variant's names.

    Args:
        instance: The source of the variant.
        variant: What the agent sees.
        max_output_chars: Longer tool results are cut, and say so.
    """

    def __init__(self, instance: Instance, variant: Variant, max_output_chars: int = TOOL_OUTPUT_CHARS) -> None:
        if variant.instance_id != instance.instance_id:
            raise ValueError(f"variant {variant.variant_id} belongs to {variant.instance_id}")
        self.instance = instance
        self.variant = variant
        self.calls: list[ToolCall] = []
        """Calls carried out without error on the real tools, by canonical names."""
        self._family = family(instance.family)
        self._world = self._family.open(instance)
        self._naming = variant.presentation.naming
        self._specs = {spec.name: spec for spec in variant.tools}
        self._canonical = {self._naming.tools.get(spec.name, spec.name): spec.name for spec in self._family.tools()}
        self._max_output_chars = max_output_chars

    @property
    def submitted(self) -> bool:
        """Whether the closing tool has been called successfully."""
        return self._world.submitted

    def call(self, name: str, arguments: JsonObject) -> ToolResult:
        """Carry out a call made under shown names; errors come back as results."""
        spec = self._specs.get(name)
        if spec is None:
            return ToolResult(
                content=f"error: there is no tool {name[:100]!r}; available tools: {', '.join(self._specs)}",
                is_error=True,
            )
        if nested_too_deeply(arguments):
            return ToolResult(content=f"error: arguments nested more than {DEEPEST} levels deep", is_error=True)
        canonical = self._canonical.get(name)
        try:
            check_arguments(spec, arguments)
        except ToolError as error:
            content = _error_text(error.message, error.argument)
            return ToolResult(content=content, is_error=True, call=self._canonical_call(name, arguments))
        arguments = integers_as_such(spec, arguments)
        call = self._canonical_call(name, arguments)
        if canonical is None:
            return ToolResult(content=self._bounded(distractor(name).answer(arguments)), call=call)
        try:
            reply = self._world.call(canonical, call.arguments)
        except ToolError as error:
            message, argument = resolve(error.message, self._naming), error.argument
            shown = self._naming.arguments.get(argument, argument) if argument is not None else None
            return ToolResult(content=_error_text(self._bounded(message), shown), is_error=True, call=call)
        self.calls.append(call)
        note = resolve(reply.note, self._naming)
        return ToolResult(
            content=self._bounded(reply.text) + (f"\n{note}" if note else ""),
            call=call,
            ends_episode=canonical == self._family.closing_tool,
        )

    def final_state(self) -> FinalState:
        """The world as it is now."""
        return FinalState(submitted=self.submitted, data=self._world.state())

    def verdict(self) -> Verdict:
        """The family's verdict on the present state."""
        return verify(self.instance, tuple(self.calls), self.final_state())

    def _canonical_call(self, name: str, arguments: JsonObject) -> ToolCall:
        canonical = self._canonical.get(name)
        if canonical is None:
            return ToolCall(name=name, arguments=arguments)
        return ToolCall(name=canonical, arguments=canonical_arguments(arguments, self._naming))

    def _bounded(self, text: str) -> str:
        if len(text) <= self._max_output_chars:
            return text
        cut = text[: self._max_output_chars]
        return f"{cut}\n[cut: {len(cut)} of {len(text)} characters shown]"


def _error_text(message: str, argument: str | None) -> str:
    if argument is None:
        return f"error: {message}"
    return f"error in argument {argument!r}: {message}"


def verify(instance: Instance, calls: tuple[ToolCall, ...], final_state: FinalState) -> Verdict:
    """Judge an episode by its calls and final state alone."""
    evidence = VerifierInput(instance=instance, calls=calls, final_state=final_state)
    return family(instance.family).verify(evidence)


def play(session: Session, plan: tuple[ToolCall, ...]) -> list[ToolResult]:
    """Carry out a plan of canonical calls under the session's shown names."""
    naming = session.variant.presentation.naming
    return [
        session.call(
            naming.tools.get(call.name, call.name),
            {naming.arguments.get(name, name): value for name, value in call.arguments.items()},
        )
        for call in plan
    ]
