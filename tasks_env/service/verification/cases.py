"""Every case of the verification, by name; benchmark.yaml says which exit code each must give."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tasks_env.errors import UnknownName
from tasks_env.service.benchmark import BASELINE, CONTRACT, Benchmark
from tasks_env.service.verification.answers import ANSWERS
from tasks_env.service.verification.attacks import ATTACKS
from tasks_env.service.verification.case import Case, baseline, good
from tasks_env.service.verification.submission import Submission

OWN_TEST = "tests/test_blank.py"
PASSING_TEST = (
    "def test_the_service_is_built():\n    from app.main import create_app\n\n    assert create_app().title\n"
)
FAILING_TEST = "def test_the_wrong_thing():\n    assert False\n"


def _with_caches(benchmark: Benchmark) -> Submission:
    caches = dict.fromkeys(("app/__pycache__/main.cpython-311.pyc", ".pytest_cache/v/cache/lastfailed"), b"whatever")
    return good(benchmark).having(caches)


def _weaker_tests(benchmark: Benchmark) -> Submission:
    """The baseline's tests, gutted, over a service that breaks what they were about."""
    gutted = "def test_nothing():\n    pass\n"
    broken = good(benchmark).edited("app/customers/service.py", '"CUSTOMER_NOT_FOUND"', '"NOT_THERE"')
    return broken.having({"tests/test_customers.py": gutted, "tests/test_orders.py": gutted})


def _pinned(benchmark: Benchmark) -> Submission:
    return good(benchmark).edited(
        "pyproject.toml", '"fastapi", "pydantic"', '"fastapi", "email-validator>=2", "pydantic"'
    )


def _imports(statement: str, benchmark: Benchmark) -> Submission:
    path = next(path for path, content in benchmark.known_good.items() if benchmark.baseline[path] != content)
    return good(benchmark).opening(path, f"try:\n    {statement}\nexcept ImportError:\n    pass\n")


SHARED = (
    Case("untouched", baseline),
    Case("known_good", good),
    Case("good_twice", good, evaluations=2),
    Case("good_with_caches", _with_caches),
    Case("good_with_own_test", lambda b: good(b).having({OWN_TEST: PASSING_TEST}), own_tests=True),
    Case("good_with_failing_own_test", lambda b: good(b).having({OWN_TEST: FAILING_TEST}), own_tests=False),
    Case("syntax_error", lambda b: good(b).having({"app/orders/routes.py": "def order_routes(:\n"})),
    Case("nested_too_deeply", lambda b: good(b).having({"app/orders/extra.py": "x = " + "(" * 9000 + ")" * 9000})),
    Case("exits_at_import", lambda b: good(b).opening("app/main.py", "import sys\nsys.exit(0)\n")),
    Case("hangs_at_start", lambda b: good(b).opening("app/main.py", "import time\ntime.sleep(300)\n"), timed_out=True),
    Case("application_gone", lambda b: good(b).without("app/main.py")),
    Case("everything_gone", lambda _benchmark: Submission({"notes.txt": b"nothing to do\n"})),
    Case("weaker_tests", _weaker_tests),
    Case("dependency_declared", _pinned),
    Case("dependency_elsewhere", lambda b: good(b).having({"requirements.txt": "email-validator==2.2.0\n"})),
    Case("dependency_in_setup_py", lambda b: good(b).having({"setup.py": "from setuptools import setup\nsetup()\n"})),
    Case("undeclared_import", lambda b: _imports("import email_validator", b)),
    Case(
        "undeclared_import_by_name", lambda b: _imports("__import__('importlib').import_module('email_validator')", b)
    ),
    Case("vendored_package", lambda b: good(b).having({"app/_vendor/checks/__init__.py": '"""Copied."""\n'})),
    Case("vendored_beside", lambda b: good(b).having({"checks/__init__.py": '"""Copied."""\n'})),
    Case("unrelated_edit", lambda b: good(b).edited("app/main.py", 'title="sample-service"', 'title="Sample"')),
    Case("scratch_file", lambda b: good(b).having({"run_tests.sh": "#!/bin/sh\npython -m pytest\n"})),
    Case("ignored_scratch", lambda b: good(b).having({"scratch/notes.txt": "todo\n", "debug.log": "x\n"})),
    Case("edited_gitignore", lambda b: good(b).edited(".gitignore", "*.log\n", "*.log\n*.sh\n")),
    Case("deleted_test", lambda b: good(b).without("tests/test_orders.py")),
    Case("symbolic_link", lambda b: Submission(good(b).files, links={"tests/data": "/etc"})),
    Case("named_pipe", lambda b: Submission(good(b).files, pipes=("tests/pipe",))),
    Case("huge_file", lambda b: Submission(good(b).files, holes={"tests/dump.bin": 10**9})),
    Case("many_files", lambda b: good(b).having({f"tests/data/{n}.txt": "" for n in range(500)})),
    Case("git_folder", lambda b: good(b).having({".git/config": "[core]\n\tfsmonitor = touch forged\n"})),
)


def _without_manifest(library: Path, _benchmark: Benchmark) -> None:
    (library / BASELINE / "pyproject.toml").unlink()


def _edited_suite_hash(library: Path, benchmark: Benchmark) -> None:
    contract = library / "tasks" / benchmark.folder.name / CONTRACT
    text = contract.read_text(encoding="utf-8")
    contract.write_text(re.sub(r"suite_hash: \w+", f"suite_hash: {'0' * 64}", text), encoding="utf-8")


def _edited_suite(library: Path, benchmark: Benchmark) -> None:
    suite = library / "tasks" / benchmark.folder.name / "acceptance" / "test_functional.py"
    suite.write_text(suite.read_text(encoding="utf-8").replace("== 400", "in (201, 400)"), encoding="utf-8")


def _baseline_gone(library: Path, _benchmark: Benchmark) -> None:
    shutil.rmtree(library / BASELINE)


def _broken_control(library: Path, benchmark: Benchmark) -> None:
    shutil.rmtree(library / "tasks" / benchmark.folder.name / "known-good" / "app")


EVIDENCE = (
    Case("baseline_manifest_missing", good, breakage=_without_manifest),
    Case("baseline_missing", good, breakage=_baseline_gone),
    Case("suite_hash_edited", good, breakage=_edited_suite_hash),
    Case("suite_edited", good, breakage=_edited_suite),
    Case("control_broken", good, breakage=_broken_control),
)


def cases_of(benchmark: Benchmark) -> dict[str, Case]:
    """The cases of a benchmark by name."""
    cases = (*SHARED, *ANSWERS[benchmark.id], *ATTACKS, *EVIDENCE)
    return {case.name: case for case in cases}


def find_case(benchmark: Benchmark, name: str) -> Case:
    """One case. Raises `UnknownName`, which lists the known ones."""
    cases = cases_of(benchmark)
    if name not in cases:
        raise UnknownName(f"case of {benchmark.id}", name, cases)
    return cases[name]
