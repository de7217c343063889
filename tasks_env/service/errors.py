"""What keeps the evaluator from judging: never the submission's doing."""

from __future__ import annotations

from tasks_env.errors import TaskEnvError


class EvidenceError(TaskEnvError):
    """The evaluator's own evidence (task, suite, baseline, control) is missing, edited or does not hold: exit code 30.

    Raised from facts alone that no submission can touch; one paragraph that says what, where and what to do.
    """
