"""Which text was in force: real git repositories with commits at known times."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.preregistration import CODES, Preregistration, read_preregistration
from flows.results import NO_START

JAN, FEB, MAR, APR = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3, 4))
NAME = "HYPOTHESES.md"


def text(effect: float = 0.03, prose: str = "It falls.", identity: str = "H-A") -> str:
    return (
        f"# Hypotheses\n\n{prose}\n\n```yaml\nid: {identity}\naxis: tool_names\nlevel: opaque\n"
        f"kind: directional\nsign: -1\nsmallest_effect: {effect}\n```\n"
    )


class Repository:
    """A git repository whose commits are made at given times, untouched by the user's own settings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / NAME
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, at: datetime = JAN) -> str:
        stamp = at.strftime("%Y-%m-%dT%H:%M:%S+00:00")
        who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _WHO.items()}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_DATE": stamp,
            **who,
        }
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    def commit(self, content: str | None, at: datetime, name: str = NAME) -> str:
        target = self.root / name
        if content is None:
            target.unlink()
        else:
            target.write_text(content, encoding="utf-8")
        self.git("add", "-A", at=at)
        self.git("commit", "-q", "--allow-empty", "-m", "change", at=at)
        return self.git("rev-parse", "HEAD").strip()


_WHO = {"NAME": "Somebody", "EMAIL": "somebody@example.org"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "study")


def codes(found: Preregistration) -> list[str]:
    return [warning.code for warning in found.warnings]


def test_a_text_committed_before_every_row_judges_without_warning(repository: Repository) -> None:
    commit = repository.commit(text(), JAN)
    found = read_preregistration(repository.file, [MAR, FEB])
    assert codes(found) == []
    (one,) = found.texts
    assert (one.text, one.commit, one.committed_at) == (text(), commit, JAN)
    (registration,) = found.registrations
    assert [hypothesis.id for hypothesis in registration.hypotheses] == ["H-A"]
    assert registration.before_rows
    assert commit[:12] in registration.name
    assert one.text_hash in registration.name


def test_rows_of_unknown_start_are_judged_by_the_first_text_with_a_warning(repository: Repository) -> None:
    repository.commit(text(0.03), JAN)
    repository.commit(text(0.05), MAR)
    found = read_preregistration(repository.file, [NO_START, APR])
    assert codes(found) == ["unknown_start"]
    assert [one.before_rows for one in found.registrations] == [None, True]
    late = read_preregistration(repository.file, [NO_START, datetime(2025, 12, 1, tzinfo=UTC)])
    assert codes(late) == ["unknown_start", "committed_after_first_row", "changed_after_first_row"]
    assert [one.before_rows for one in late.registrations] == [False]


def test_rows_started_before_a_change_are_judged_by_the_earlier_text(repository: Repository) -> None:
    repository.commit(text(0.03), JAN)
    repository.commit(text(0.10), MAR)
    found = read_preregistration(repository.file, [FEB, APR])
    assert codes(found) == ["changed_after_first_row"]
    first, second = found.registrations
    assert first.hypotheses[0].smallest_effect == 0.03
    assert second.hypotheses[0].smallest_effect == 0.10
    assert (first.started_from, first.started_until) == (None, MAR)
    assert (second.started_from, second.started_until) == (MAR, None)
    assert first.before_rows
    assert second.before_rows
    assert found.in_force(FEB) == found.texts[0]
    assert found.in_force(MAR) == found.texts[1]
    assert found.in_force(MAR - timedelta(seconds=1)) == found.texts[0]


def test_a_change_between_registration_and_the_first_row_leaves_the_later_text_alone(repository: Repository) -> None:
    repository.commit(text(0.03), JAN)
    repository.commit(text(0.10), FEB)
    found = read_preregistration(repository.file, [MAR])
    assert codes(found) == []
    (registration,) = found.registrations
    assert registration.hypotheses[0].smallest_effect == 0.10


def test_a_change_of_wording_does_not_split_the_rows(repository: Repository) -> None:
    repository.commit(text(prose="It falls."), JAN)
    repository.commit(text(prose="It will fall."), MAR)
    found = read_preregistration(repository.file, [FEB, APR])
    assert codes(found) == ["changed_after_first_row"]
    (registration,) = found.registrations
    assert registration.hypotheses[0].text == "It falls."
    assert (registration.started_from, registration.started_until) == (None, None)


def test_a_text_committed_after_the_first_row_is_not_a_preregistration(repository: Repository) -> None:
    repository.commit(text(), MAR)
    found = read_preregistration(repository.file, [FEB, APR])
    assert codes(found) == ["committed_after_first_row"]
    (registration,) = found.registrations
    assert registration.before_rows is False
    assert found.in_force(FEB) == found.texts[0]


def test_uncommitted_changes_do_not_judge(repository: Repository) -> None:
    repository.commit(text(0.03), JAN)
    repository.file.write_text(text(0.10), encoding="utf-8")
    found = read_preregistration(repository.file, [FEB])
    assert codes(found) == ["uncommitted_changes"]
    assert found.registrations[0].hypotheses[0].smallest_effect == 0.03


def test_line_ends_are_no_change(repository: Repository) -> None:
    repository.commit(text(), JAN)
    repository.file.write_bytes(text().replace("\n", "\r\n").encode())
    assert codes(read_preregistration(repository.file, [FEB])) == []


def test_an_untracked_file_judges_with_a_warning(repository: Repository) -> None:
    repository.commit("x", JAN, "other.txt")
    repository.file.write_text(text(), encoding="utf-8")
    found = read_preregistration(repository.file, [FEB])
    assert codes(found) == ["untracked"]
    assert found.registrations[0].before_rows is None
    assert found.registrations[0].name.startswith("uncommitted")


def test_a_repository_without_any_commit_is_untracked(repository: Repository) -> None:
    repository.file.write_text(text(), encoding="utf-8")
    found = read_preregistration(repository.file, [FEB])
    assert len(found.registrations) == 1
    assert len(found.warnings) == 1


def test_outside_a_repository_the_file_judges_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text(), encoding="utf-8")
    found = read_preregistration(tmp_path / NAME, [FEB])
    assert codes(found) == ["no_repository"]
    assert len(found.registrations) == 1


def test_without_git_the_file_judges_with_a_warning(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit(text(), JAN)
    monkeypatch.setenv("PATH", str(repository.root))
    found = read_preregistration(repository.file, [FEB])
    assert codes(found) == ["no_git"]
    assert len(found.registrations) == 1


def test_a_missing_file_registers_nothing(tmp_path: Path) -> None:
    found = read_preregistration(tmp_path / NAME, [FEB])
    assert codes(found) == ["missing_file"]
    assert found.registrations == ()
    assert found.in_force(FEB) is None


def test_a_deleted_and_restored_file_keeps_its_history(repository: Repository) -> None:
    repository.commit(text(0.03), JAN)
    repository.commit(None, FEB)
    repository.commit(text(0.10), MAR)
    found = read_preregistration(repository.file, [APR])
    assert codes(found) == ["deleted"]
    assert [one.committed_at for one in found.texts] == [JAN, MAR]


def test_a_commit_dated_before_its_predecessor_counts_from_the_predecessor_on(repository: Repository) -> None:
    repository.commit(text(0.03), MAR)
    repository.commit(text(0.10), JAN)
    found = read_preregistration(repository.file, [APR])
    assert codes(found) == ["unordered_times"]
    assert [one.committed_at for one in found.texts] == [MAR, MAR]


def test_a_text_that_registers_wrongly_is_a_warning_and_judges_nothing(repository: Repository) -> None:
    repository.commit(text() + "\n```yaml\nid: H-B\nfoo: 1\n```\n", JAN)
    found = read_preregistration(repository.file, [FEB])
    assert codes(found) == ["unparsable"]
    assert "unknown key 'foo'" in found.warnings[0].message
    assert found.registrations[0].hypotheses == ()


def test_texts_without_rows_to_judge_are_left_out(repository: Repository) -> None:
    repository.commit(text(0.03), JAN)
    repository.commit(text(0.10), MAR)
    (registration,) = read_preregistration(repository.file, [FEB]).registrations
    assert registration.hypotheses[0].smallest_effect == 0.03
    (latest,) = read_preregistration(repository.file, []).registrations
    assert latest.hypotheses[0].smallest_effect == 0.10


def test_commits_to_other_files_are_no_change(repository: Repository) -> None:
    repository.commit(text(), JAN)
    repository.commit("x", MAR, "other.txt")
    found = read_preregistration(repository.file, [FEB])
    assert codes(found) == []
    assert len(found.texts) == 1


def test_a_file_in_a_folder_and_times_in_other_zones(repository: Repository) -> None:
    (repository.root / "sub").mkdir()
    repository.commit(text(), JAN, f"sub/{NAME}")
    local = FEB.astimezone().replace(microsecond=0)
    found = read_preregistration(repository.root / "sub" / NAME, [local])
    assert codes(found) == []
    assert found.texts[0].committed_at == JAN


def test_a_hooks_git_environment_does_not_lead_elsewhere(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(text(), JAN)
    other = Repository(tmp_path / "other")
    other.commit(text(0.5), JAN)
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    found = read_preregistration(repository.file, [FEB])
    assert codes(found) == []
    assert found.texts[0].text == text()


def test_a_shallow_clone_is_a_warning(repository: Repository, tmp_path: Path) -> None:
    repository.commit(text(0.03), JAN)
    repository.commit(text(0.10), FEB)
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(clone))
    found = read_preregistration(clone / NAME, [MAR])
    assert codes(found) == ["shallow_history"]
    assert len(found.texts) == 1


def test_every_warning_code_is_documented() -> None:
    assert all(meaning.strip() for meaning in CODES.values())
