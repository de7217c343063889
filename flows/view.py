"""Which finished episodes a person wants to see, and how: a list, one of them, or a sample of them for an audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from flows.context import Study
from flows.errors import ConfigurationError, StudyError
from flows.grid import Episode
from flows.outcomes import INFRA_ERROR
from flows.pages.audit import Stratum, audit_html, audit_markdown, audit_title, sample
from flows.pages.html import episode_html
from flows.pages.markdown import markdown_of
from flows.pages.seen import Seen, look
from flows.scoring import TRANSCRIPT, whole_transcript

LISTED = 40


def view_text(study: Study, wanted: str | None) -> str:
    """The transcript of the episode whose id begins with `wanted`; without it a list of finished episodes.

    In the smoke profile the first finished episode is shown instead of the list.

    Raises:
        ConfigurationError: no such episode, or several.
        StudyError: nothing has been run yet.
    """
    finished = _finished(study)
    if wanted is None and study.manifest.profile != "smoke":
        return _listing(study, finished)
    return markdown_of(_chosen(study, finished, wanted))


def view_html(study: Study, wanted: str | None) -> str:
    """The page of the episode whose id begins with `wanted`; without it of the first finished one. Raises likewise."""
    return episode_html(_chosen(study, _finished(study), wanted))


def audit_text(study: Study, count: int, seed: int | None, *, html: bool) -> str:
    """A sample of `count` finished episodes, stratified over outcomes and verdicts, each with its verdict.

    Args:
        seed: Of the sample; null: the study's.

    Raises:
        StudyError: nothing has been run yet.
    """
    strata = _strata(study, _finished(study))
    drawn_by = study.manifest.seed if seed is None else seed
    chosen = [_seen(study, episode) for episode in sample(strata, count, drawn_by)]
    sizes = {stratum: len(episodes) for stratum, episodes in strata.items()}
    title = audit_title(len(chosen), sum(sizes.values()), drawn_by)
    return (audit_html if html else audit_markdown)(title, sizes, chosen)


def _strata(study: Study, finished: Sequence[Episode]) -> dict[Stratum, list[Episode]]:
    """The finished episodes by outcome and verdict; the journal's word where this very transcript was scored."""
    rows = {row.get(TRANSCRIPT): row for row in study.store.journal_rows()}
    strata: dict[Stratum, list[Episode]] = defaultdict(list)
    for episode in finished:
        marker = study.store.marker(study.transcript(episode))
        row = rows.get(marker["sha256"]) if marker else None
        if marker and marker["outcome"] == INFRA_ERROR:
            stratum = (INFRA_ERROR, "none")
        elif marker and row and row.get("passed") is not None:
            stratum = (marker["outcome"], "passed" if row["passed"] else "failed")
        else:
            seen = _seen(study, episode)
            stratum = (seen.end["outcome"], seen.word)
        strata[stratum].append(episode)
    return strata


def _finished(study: Study) -> list[Episode]:
    finished = list(finished_episodes(study))
    if not finished:
        raise StudyError(f"{study.store.runs}: no finished episode of this selection; run `agent-bench run` first")
    return finished


def _chosen(study: Study, finished: Sequence[Episode], wanted: str | None) -> Seen:
    return _seen(study, finished[0] if wanted is None else one_of(finished, wanted))


def _seen(study: Study, episode: Episode) -> Seen:
    path = study.transcript(episode)
    return look(whole_transcript(path), study.instances(episode.cell)[episode.instance_id], path)


def one_of(finished: Sequence[Episode], wanted: str) -> Episode:
    """The episode whose id begins with `wanted`. Raises `ConfigurationError` unless there is exactly one."""
    chosen = [episode for episode in finished if episode.episode_id.startswith(wanted)]
    if len(chosen) != 1:
        what = "no finished episode" if not chosen else f"{len(chosen)} episodes"
        raise ConfigurationError(
            f"{what} of this selection whose id begins with {wanted!r}; `agent-bench view` lists them"
        )
    return chosen[0]


def any_finished(study: Study) -> bool:
    """Whether there is an episode to show."""
    return next(finished_episodes(study), None) is not None


def finished_episodes(study: Study) -> Iterator[Episode]:
    """The episodes of the selection that have a marked transcript, in the order of the grid."""
    for model, cell in study.work:
        if study.has_variants(cell):
            finished = study.finished(model, cell)
            for episode in study.episodes(model, cell):
                if episode.episode_id in finished:
                    yield episode


def _listing(study: Study, episodes: Sequence[Episode]) -> str:
    lines = [f"{len(episodes)} finished episodes; `agent-bench view ID` shows one"]
    for episode in episodes[:LISTED]:
        marker = study.store.marker(study.transcript(episode)) or {}
        lines.append(
            f"  {episode.episode_id}  {episode.model}  {episode.cell.id}  {episode.instance_id}  "
            f"run {episode.run_seed}  {marker.get('outcome')}{_place(episode)}"
        )
    if len(episodes) > LISTED:
        lines.append(f"  … and {len(episodes) - LISTED} more; narrow with --model and --cell")
    return "\n".join(lines)


def _place(episode: Episode) -> str:
    if episode.conversation_id is None:
        return ""
    return f"  (task {episode.conversation_position} of conversation {episode.conversation_id})"
