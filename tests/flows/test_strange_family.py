"""A family of others in a study: named in the manifest, validated by itself, generated, run, scored, analyzed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from flows.context import Study
from flows.errors import ConfigurationError
from flows.manifest import load_manifest
from flows.results_file import read_results
from tests.conftest import small_manifest
from tests.flows.small_study import open_study, prepare, run_episodes, score, write_manifest
from tests.tasks_env.distributions import LEDGER, install

EASY = {"accounts": 3, "entries": 12}
CHANGES: dict[str, Any] = {
    "families": {"ledger": {"easy": EASY}},
    "grid/families": {"ledger": ["easy"]},
    "grid/axes": {"tool_names": ["synonyms"], "distractors": ["2"], "resample": ["s1"]},
}


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions that is on the path."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(str(folder))
    return folder


class TestManifest:
    def refused(self, folder: Path, changes: dict[str, Any]) -> str:
        with pytest.raises(ConfigurationError) as caught:
            load_manifest(write_manifest(folder, {**CHANGES, **changes}))
        return str(caught.value)

    def test_parameters_are_read_by_the_family_itself(self, site: Path, tmp_path: Path) -> None:
        install(site, LEDGER)
        assert load_manifest(write_manifest(tmp_path, CHANGES)).families == {"ledger": {"easy": EASY}}
        message = self.refused(tmp_path, {"families": {"ledger": {"easy": {**EASY, "accounts": 9}}}})
        assert "families.ledger.easy: family 'ledger', parameter 'accounts': Input should be less than" in message

    def test_family_that_nobody_installed_is_unknown(self, tmp_path: Path) -> None:
        message = self.refused(tmp_path, {})
        assert "families.ledger.easy: unknown family 'ledger'; known: filesys, query, tabular" in message

    def test_broken_distribution_is_one_error_that_names_it(self, site: Path, tmp_path: Path) -> None:
        install(site, {"ledger": "no_such_ledger:Ledger"})
        message = self.refused(tmp_path, {})
        assert (
            "families.ledger.easy: family 'ledger': distribution 'ledger-tasks 1.2', entry point "
            "'no_such_ledger:Ledger' cannot be loaded: ModuleNotFoundError"
        ) in message
        assert message.count("entry point") == 1
        assert load_manifest(write_manifest(tmp_path)).families.keys() == {"query"}, "and no study without it is harmed"

    def test_name_that_is_taken_is_an_error_in_every_study_that_uses_it(self, site: Path, tmp_path: Path) -> None:
        install(site, {**LEDGER, "query": "tests.tasks_env.stranger:Ledger"})
        with pytest.raises(ConfigurationError, match="the name is taken by a shipped family; also claimed by"):
            load_manifest(write_manifest(tmp_path))
        assert load_manifest(write_manifest(tmp_path, CHANGES)).families == {"ledger": {"easy": EASY}}


class TestStudy:
    @pytest.fixture
    def study(self, site: Path, tmp_path: Path) -> Study:
        install(site, LEDGER)
        opened = open_study(tmp_path, {**CHANGES, "scaffold/worked_example": True})
        prepare(opened)
        run_episodes(opened)
        return opened

    def test_every_cell_runs_and_both_verdicts_occur(self, study: Study) -> None:
        rows = score(study)
        assert {row["cell_id"] for row in rows} == {cell.id for cell in study.cells}
        assert {row["family"] for row in rows} == {"ledger"}
        assert {row["passed"] for row in rows} == {True, False}
        assert not any(row["infra_error"] for row in rows)

    def test_its_transcripts_replay(self, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["replay", "--manifest", str(study.manifest_path)]) == 0
        assert capsys.readouterr().out.startswith("REPLAY OK: ")


@pytest.mark.xdist_group("prefect")
@pytest.mark.usefixtures("prefect_api_url")
def test_whole_chain_runs_over_the_strangers_family(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, LEDGER)
    manifest = small_manifest(
        tmp_path,
        {"families": {"ledger": ["easy"]}, "models": ["scripted-strong"], "instances": 3},
        families={"ledger": {"easy": EASY}},
    )
    assert main(["study", "--smoke", "--manifest", str(manifest)]) == 0
    root = tmp_path / ".smoke"
    frame, metadata = read_results(root / "results" / "results.parquet")
    assert frame.groupby("family").size().to_dict() == {"ledger": 15}
    assert not frame["infra_error"].any()
    assert metadata["grid"]["families"]["ledger"] == ["easy"]
    assert any((root / "results" / "analysis" / "tables").glob("*.parquet"))
    assert "SMOKE OK" in capsys.readouterr().out
    assert main(["replay", "--smoke", "--manifest", str(manifest)]) == 0
    assert main(["verify", "--smoke", "--manifest", str(manifest), "--family", "ledger", "--instances", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("VERIFY OK")
