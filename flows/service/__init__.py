"""The service-change benchmark's commands: evaluate, prove the evaluator, let models do the tasks, report."""
