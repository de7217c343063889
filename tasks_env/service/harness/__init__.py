"""Programs that run in processes of their own: they import the standard library and installed packages, nothing else.

`confined.py` starts a command with as little reach as the machine allows, `serve.py` serves a submission,
`suite.py` puts a suite's questions to it over HTTP, `own_tests.py` runs the tests that a submission brings along.
"""
