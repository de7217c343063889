"""Which changes a task asked for: an allow-list of folders and files."""

from __future__ import annotations

from collections.abc import Sequence

from tasks_env.service.trees import Changes, Tree


def lies_in(path: str, places: Sequence[str]) -> bool:
    """Whether `path` is one of `places`, or in one that is a folder (`app/orders/`)."""
    return any(path == place or (place.endswith("/") and path.startswith(place)) for place in places)


def unrelated(
    changes: Changes, tree: Tree, *, production: Sequence[str], tests: Sequence[str], scratch_counts: bool
) -> dict[str, str]:
    """Changed paths that the task did not ask for, each with the reason.

    Production files may be added, edited and removed. Tests may be added and edited: one of the baseline's that is gone
    is unrelated, since nobody asked for fewer tests. An entry that could not be read is unrelated wherever it is.

    Args:
        scratch_counts: False lets added files pass that lie outside of everything that the baseline has.
    """
    found = {path: f"{reason}; not part of a reviewable change" for path, reason in tree.refused.items()}
    for path in changes.removed:
        if not lies_in(path, production):
            found[path] = "a test of the baseline, removed" if lies_in(path, tests) else "removed"
    for path in changes.edited:
        if not lies_in(path, [*production, *tests]):
            found.setdefault(path, "edited")
    if scratch_counts:
        for path in changes.added:
            if not lies_in(path, [*production, *tests]):
                found.setdefault(path, "added")
    return dict(sorted(found.items()))
