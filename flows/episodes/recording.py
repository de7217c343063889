"""What a transcript says was called, read back so that it can be carried out again.

Calls that the scaffold itself refused (too many in a turn, arguments that were no JSON object, the task already handed
in) never reached a tool and are not carried out again. A transcript that contradicts itself, such as one with a result
that no answer asked for, does not replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tasks_env import Instance, Variant, family
from tasks_env.canonical import content_hash
from tasks_env.errors import UnknownName
from tasks_env.replay import RecordedCall, Recording, replay

_CALLS_LEFT_ALONE = ("refused", "context_overflow", "truncated")
"""Outcomes whose last answer may hold calls that nobody carried out."""


class Contradiction(Exception):
    """The transcript's events do not fit each other."""


def replay_problem(instance: Instance, variant: Variant, events: Sequence[dict[str, Any]]) -> str | None:
    """Why a whole transcript does not replay: the first diverging call, or what contradicts what; null if it does.

    Args:
        events: Of an episode that has a verdict. An infra_error has none, and nothing rests on its calls.
    """
    try:
        head, end = events[0], events[-1]
        if (head["instance_id"], head["variant_id"]) != (instance.instance_id, variant.variant_id):
            return f"it is of variant {head['variant_id']} of {head['instance_id']}, not of {variant.variant_id}"
        recording = recording_of(events)
        difference = replay(instance, variant, recording, head["scaffold"]["tool_output_chars"])
        if difference is not None:
            return str(difference)
        names = [each.call.name if each.call else each.name for each in recording.calls]
        if (end["trajectory_length"], end["trajectory_hash"]) != (len(names), content_hash(names, 16)):
            return f"trajectory: recorded {end['trajectory_length']} calls, replayed {len(names)}, or in another order"
    except Contradiction as error:
        return str(error)
    except (KeyError, TypeError, ValueError, UnknownName) as error:
        return f"cannot be read back: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def recording_of(events: Sequence[dict[str, Any]]) -> Recording:
    """The calls that reached the tools, and how the episode says it ended.

    Raises:
        Contradiction: results and answers do not belong together.
        KeyError, TypeError, ValueError, UnknownName: another version wrote it, or it was edited.
    """
    end = events[-1]
    return Recording.model_validate(
        {"calls": tuple(_calls(events)), "carried_out": end["calls"], "final_state": end["final_state"]}
    )


def _calls(events: Sequence[dict[str, Any]]) -> Iterator[RecordedCall]:
    per_turn, closing_tool = events[0]["scaffold"]["calls_per_turn"], family(events[0]["family"]).closing_tool
    asked: list[dict[str, Any]] = []
    answered, step, over = 0, 0, False
    for event in events:
        left_alone = event["event"] == "end" and answered == 0 and event["outcome"] in _CALLS_LEFT_ALONE
        if event["event"] in ("answer", "end") and answered < len(asked) and not left_alone:
            raise Contradiction(f"step {step}: {len(asked)} calls, but {answered} results")
        if event["event"] == "answer":
            asked, answered, step = event["calls"], 0, event["step"]
        elif event["event"] == "result":
            if answered == len(asked):
                raise Contradiction(f"step {event['step']}: a result of {event['name']!r} that no call asked for")
            call = asked[answered]
            if (event["step"], event["call_id"], event["name"]) != (step, call["id"], call["name"]):
                raise Contradiction(
                    f"step {step}: the result of {event['name']!r} stands where {call['name']!r} was called"
                )
            refused = over or answered >= per_turn or call["arguments"] is None
            answered += 1
            if not refused:
                fields = {key: event[key] for key in ("name", "call", "content", "is_error")}
                recorded = RecordedCall.model_validate({"arguments": call["arguments"], **fields})
                yield recorded
                over = not recorded.is_error and recorded.call is not None and recorded.call.name == closing_tool
            elif event["call"] is not None or not event["is_error"]:
                raise Contradiction(f"step {step}: a call of {event['name']!r} that was refused has a tool's result")
