"""What proves the evaluator: submissions of which the right verdict is known, built in code from the known-good one."""
