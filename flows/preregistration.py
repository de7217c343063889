"""Which text of the hypotheses was in force when: read from git, once, at the edge.

The text in force at a time is that of the last commit to the file at or before it, by commit time. Commit times are
what the committer's clock said; they show good order, they do not prove it. Whatever is missing (no git, no
repository, an untracked or changed file, hypotheses committed after the first row) becomes a warning, not an error.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from flows.results import NO_START
from flows.stats.hypotheses import Hypothesis, HypothesisError, Registration, parse_hypotheses

_TIMEOUT_S = 30

CODES: dict[str, str] = {
    "missing_file": "there is no such file",
    "no_git": "git could not be run",
    "no_repository": "the file is in no git repository",
    "untracked": "the file was never committed",
    "uncommitted_changes": "the file differs from its last commit, which is the one that judges",
    "shallow_history": "the repository is a shallow clone: earlier texts may be missing",
    "unordered_times": "a commit is dated before its predecessor; it counts from its predecessor's time on",
    "deleted": "a commit removed the file; the text before it stays in force",
    "unknown_start": "some rows do not say when they started; the first text judges them, and whether it came before "
    "them is unknown",
    "committed_after_first_row": "the first text was committed after rows had started",
    "changed_after_first_row": "the text changed after the first row had started",
    "unparsable": "a text registers hypotheses wrongly; the rows it covers are not judged",
}
"""Warning code -> meaning."""


class PreregistrationWarning(NamedTuple):
    """One thing that weakens the claim of preregistration."""

    code: str
    message: str


@dataclass(frozen=True)
class RegisteredText:
    """One text of the file and since when it holds; commit and time are null if it was never committed."""

    text: str
    text_hash: str
    """First 16 hex digits of the SHA-256 of the text, UTF-8 with LF."""
    commit: str | None = None
    committed_at: datetime | None = None

    @property
    def name(self) -> str:
        """Commit and hash, for tables."""
        return f"{self.commit[:12] if self.commit else 'uncommitted'} ({self.text_hash})"


@dataclass(frozen=True)
class Preregistration:
    """The texts in the order they came into force, what they register for which rows, and what is amiss."""

    texts: tuple[RegisteredText, ...]
    registrations: tuple[Registration, ...]
    """Only those with rows to judge, if any row exists; else the last text's."""
    warnings: tuple[PreregistrationWarning, ...]

    def in_force(self, moment: datetime) -> RegisteredText | None:
        """The text that judges a row started at `moment`; the first one for rows older than every commit."""
        return _in_force(self.texts, moment)


def read_preregistration(path: Path, started_at: Iterable[datetime]) -> Preregistration:
    """The registered texts of a hypotheses file and the rows each one judges.

    Args:
        path: The hypotheses file, in the working tree of a git repository or not.
        started_at: When each results row started, with time zone, `NO_START` if that is unknown; any order.
    """
    moments = sorted(moment.astimezone(UTC) for moment in started_at)
    texts, warnings = _read_texts(path)
    first = next((moment for moment in moments if moment != NO_START), None)
    if texts and NO_START in moments:
        warnings.append(_warn("unknown_start"))
    if first is not None:
        warnings += _timing_warnings(texts, first)
    registrations, mistakes = _registrations(texts, moments)
    return Preregistration(tuple(texts), tuple(registrations), tuple(warnings + mistakes))


def _warn(code: str, detail: str = "") -> PreregistrationWarning:
    return PreregistrationWarning(code, CODES[code] + (f": {detail}" if detail else ""))


def _read_texts(path: Path) -> tuple[list[RegisteredText], list[PreregistrationWarning]]:
    if not path.is_file():
        return [], [_warn("missing_file", path.name)]
    working = _registered(path.read_bytes())
    folder, name = path.resolve().parent, path.name
    top = _git(folder, "rev-parse", "--show-toplevel")
    if isinstance(top, PreregistrationWarning):
        return [working], [top]
    log = _git(folder, "log", "--topo-order", "--reverse", "--format=%H %cI", "--", name)
    if isinstance(log, PreregistrationWarning) or not log.strip():
        return [working], [_warn("untracked", name)]
    warnings: list[PreregistrationWarning] = []
    if _text_or_none(_git(folder, "rev-parse", "--is-shallow-repository")) == "true":
        warnings.append(_warn("shallow_history"))
    texts: list[RegisteredText] = []
    for line in log.decode("ascii").splitlines():
        commit, stamp = line.split(" ", 1)
        committed_at = datetime.fromisoformat(stamp).astimezone(UTC)
        content = _git(folder, "show", f"{commit}:./{name}")
        if isinstance(content, PreregistrationWarning):
            warnings.append(_warn("deleted", commit[:12]))
            continue
        previous = texts[-1] if texts else None
        text = replace(_registered(content), commit=commit, committed_at=committed_at)
        if previous is not None and previous.text_hash == text.text_hash:
            continue
        if previous is not None and previous.committed_at is not None and committed_at < previous.committed_at:
            warnings.append(_warn("unordered_times", commit[:12]))
            text = replace(text, committed_at=previous.committed_at)
        texts.append(text)
    if not texts:
        return [working], [*warnings, _warn("untracked", name)]
    if texts[-1].text_hash != working.text_hash:
        warnings.append(_warn("uncommitted_changes", f"{name} against {texts[-1].name}"))
    return texts, warnings


def _registered(content: bytes) -> RegisteredText:
    text = content.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return RegisteredText(text, hashlib.sha256(text.encode("utf-8")).hexdigest()[:16])


def _git(folder: Path, *arguments: str) -> bytes | PreregistrationWarning:
    """Standard output, or why there is none. A hook's GIT_DIR must not point git at another repository."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "--literal-pathspecs", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, env=environment, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _warn("no_git", type(error).__name__)
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", errors="replace").strip().splitlines()
        return _warn("no_repository", lines[0] if lines else f"git {arguments[0]} failed")
    return result.stdout


def _text_or_none(output: bytes | PreregistrationWarning) -> str | None:
    return None if isinstance(output, PreregistrationWarning) else output.decode("utf-8").strip()


def _in_force(texts: Iterable[RegisteredText], moment: datetime) -> RegisteredText | None:
    chosen: RegisteredText | None = None
    for text in texts:
        if chosen is None or (text.committed_at is not None and text.committed_at <= moment):
            chosen = text
    return chosen


def _timing_warnings(texts: list[RegisteredText], first_row: datetime) -> list[PreregistrationWarning]:
    late = [text for text in texts if text.committed_at is not None and text.committed_at > first_row]
    warnings = []
    for text in late:
        code = "committed_after_first_row" if text is texts[0] else "changed_after_first_row"
        assert text.committed_at is not None
        detail = f"{text.name} at {text.committed_at.isoformat()}, first row at {first_row.isoformat()}"
        warnings.append(_warn(code, detail))
    return warnings


def _same(first: tuple[Hypothesis, ...], second: tuple[Hypothesis, ...]) -> bool:
    """Whether two texts register the same, wording aside: then a change of text need not split the rows."""
    aside = {"text", "line", "amended"}
    return [h.model_dump(exclude=aside) for h in first] == [h.model_dump(exclude=aside) for h in second]


def _registrations(
    texts: list[RegisteredText], moments: list[datetime]
) -> tuple[list[Registration], list[PreregistrationWarning]]:
    """Neighbouring texts that register the same are one; texts without a row to judge are left out."""
    warnings: list[PreregistrationWarning] = []
    found: list[Registration] = []
    for position, text in enumerate(texts):
        start = None if position == 0 else text.committed_at
        try:
            hypotheses = parse_hypotheses(text.text)
        except HypothesisError as error:
            warnings.append(_warn("unparsable", f"{text.name}: {'; '.join(str(error).splitlines())}"))
            hypotheses = ()
        if found and _same(found[-1].hypotheses, hypotheses):
            continue
        if found:
            found[-1] = replace(found[-1], started_until=start)
        before = True if position else _precedes(text, moments)
        found.append(Registration(hypotheses, text.name, start, None, before))
    if not moments:
        return found[-1:], warnings
    judged = [registration for registration in found if any(_covers(registration, moment) for moment in moments)]
    return judged, warnings


def _precedes(text: RegisteredText, moments: list[datetime]) -> bool | None:
    """Whether the first text was committed before every row, in order of their starts; null if that is unknown."""
    known = [moment for moment in moments if moment != NO_START]
    if text.committed_at is not None and known and known[0] < text.committed_at:
        return False
    return None if text.committed_at is None or len(known) < len(moments) else True


def _covers(registration: Registration, moment: datetime) -> bool:
    start, until = registration.started_from, registration.started_until
    return (start is None or moment >= start) and (until is None or moment < until)
