"""Families of others: found by name, loaded when asked for, refused with the distribution's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks_env import Family, generate_instance
from tasks_env.errors import RegistrationError, UnknownName
from tasks_env.families import FAMILIES, family, registered
from tests.tasks_env.distributions import LEDGER, install
from tests.tasks_env.stranger import Ledger

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions that is on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class TestInstalled:
    def test_family_is_found_by_its_name(self, site: Path) -> None:
        install(site, LEDGER)
        assert isinstance(family("ledger"), Ledger)
        assert family("ledger") is family("ledger")
        assert generate_instance("ledger", {"accounts": 2, "entries": 4}, 1).family == "ledger"

    def test_module_may_hold_an_instance(self, site: Path) -> None:
        text = "from tests.tasks_env.stranger import Ledger\nours = Ledger()\n"
        install(site, {"ledger": "an_instance_of_ledger:ours"}, modules={"an_instance_of_ledger": text})
        assert isinstance(family("ledger"), Ledger)

    def test_unknown_name_lists_installed_families_too(self, site: Path) -> None:
        install(site, LEDGER)
        with pytest.raises(UnknownName, match=r"known: filesys, ledger, query, tabular; did you mean 'ledger'\?"):
            family("legder")

    def test_it_is_gone_with_its_distribution(self, tmp_path: Path) -> None:
        install(tmp_path, LEDGER)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(tmp_path))
            assert family("ledger").name == "ledger"
        with pytest.raises(UnknownName, match="unknown family 'ledger'"):
            family("ledger")

    def test_nothing_is_imported_before_the_name_is_used(self, tmp_path: Path) -> None:
        install(
            tmp_path,
            {"lazy": "lazy_family:Lazy"},
            modules={"lazy_family": "print('imported'); raise SystemError('broken')"},
        )
        program = (
            "from tasks_env import family, TaskEnvError\n"
            "print(family('query').name)\n"
            "try: family('tabluar')\nexcept TaskEnvError as error: print(error)\n"
            "try: family('lazy')\nexcept TaskEnvError as error: print(error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
            capture_output=True,
            text=True,
            check=True,
        )
        query, unknown, imported, broken = done.stdout.splitlines()
        assert query == "query"
        assert "known: filesys, lazy, query, tabular" in unknown
        assert imported == "imported"
        assert broken == (
            "family 'lazy': distribution 'ledger-tasks 1.2', entry point 'lazy_family:Lazy' cannot be loaded: "
            "SystemError: broken"
        )


class TestRefused:
    @pytest.mark.parametrize(
        ("target", "module", "problem"),
        [
            ("no_such_module_here:Ledger", "", "cannot be loaded: ModuleNotFoundError: No module named"),
            ("bad_one:Ledger", "x = 1", "cannot be loaded: AttributeError"),
            ("bad_two:Ledger", "1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
            ("bad_three:Ledger", "class Ledger:\n    pass", "gives Ledger, not a tasks_env Family"),
            ("bad_four:ledger", "ledger = 7", "gives int, not a tasks_env Family"),
            (
                "bad_five:Half",
                "from tasks_env import Family\nclass Half(Family):\n    name = 'ledger'",
                "cannot be loaded: TypeError: Can't instantiate abstract class Half",
            ),
            (
                "bad_six:Other",
                "from tests.tasks_env.stranger import Ledger\nclass Other(Ledger):\n    name = 'book'",
                "gives a family called 'book'; both names must be the same",
            ),
        ],
    )
    def test_broken_entry_point_names_the_distribution(
        self, site: Path, target: str, module: str, problem: str
    ) -> None:
        name = target.split(":")[0]
        install(site, {"ledger": target}, modules={name: module} if module else {})
        for _ in range(2):
            with pytest.raises(RegistrationError) as caught:
                family("ledger")
            assert str(caught.value).startswith(
                f"family 'ledger': distribution 'ledger-tasks 1.2', entry point '{target}' {problem}"
            )
            assert caught.value.family == "ledger"
        assert family("query") is FAMILIES["query"]

    def test_name_of_a_shipped_family_is_taken(self, site: Path) -> None:
        install(site, {"query": "tests.tasks_env.stranger:Ledger", **LEDGER})
        with pytest.raises(RegistrationError, match="taken by a shipped family; also claimed by distribution 'ledger"):
            family("query")
        assert family("tabular") is FAMILIES["tabular"]
        assert isinstance(family("ledger"), Ledger)

    def test_name_that_two_distributions_claim_is_taken(self, site: Path) -> None:
        install(site, LEDGER)
        install(site, LEDGER, name="more-tasks")
        with pytest.raises(RegistrationError) as caught:
            family("ledger")
        assert "taken twice: by distribution 'ledger-tasks 1.2'" in str(caught.value)
        assert "and by distribution 'more-tasks 1.2'" in str(caught.value)

    def test_same_distribution_seen_twice_is_one(
        self, site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As an editable install is, once from its source folder and once from site-packages."""
        install(site, LEDGER)
        monkeypatch.syspath_prepend(str(install(tmp_path_factory.mktemp("again"), LEDGER)))
        assert isinstance(family("ledger"), Ledger)


class TestLent:
    def test_family_takes_part_within_the_block_alone(self) -> None:
        ours = Ledger()
        with registered(ours):
            assert family("ledger") is ours
            with pytest.raises(UnknownName, match="known: filesys, ledger, query, tabular"):
                family("nothing")
        with pytest.raises(UnknownName):
            family("ledger")

    def test_it_comes_before_others_of_its_name_and_leaves_them_after(self, site: Path) -> None:
        class Renamed(Ledger):
            name = "query"

        install(site, LEDGER)
        installed, ours, renamed = family("ledger"), Ledger(), Renamed()
        with registered(ours), registered(renamed):
            assert family("ledger") is ours
            assert family("query") is renamed
        assert family("ledger") is installed
        assert family("query") is FAMILIES["query"]

    def test_block_ends_with_an_error_too(self) -> None:
        def broken() -> None:
            with registered(Ledger()):
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            broken()
        with pytest.raises(UnknownName):
            family("ledger")


def test_the_stranger_is_a_family_by_the_public_interface_alone() -> None:
    assert isinstance(Ledger(), Family)
    assert "ledger" not in FAMILIES
