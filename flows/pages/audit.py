"""A seeded sample of finished episodes for a spot audit, and the page on which each lies beside its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from flows.grid import Episode
from flows.pages.html import link, page, pair, rows_table
from flows.pages.markdown import markdown_of
from flows.pages.seen import Seen
from tasks_env.seeding import derive

Stratum = tuple[str, str]
"""Outcome, and `passed`, `failed` or `none`."""


def allocate(sizes: Mapping[Stratum, int], wanted: int) -> dict[Stratum, int]:
    """How many of each stratum: one of each as long as they last, the largest first; the rest by size.

    The rest goes, one at a time, to the stratum with the largest size per episode already taken, counting one more
    (d'Hondt's method): never more than there are, and the same in every process.
    """
    order = sorted(sizes, key=lambda stratum: (-sizes[stratum], stratum))
    taken = dict.fromkeys(order, 0)
    for stratum in order[:wanted]:
        taken[stratum] = min(1, sizes[stratum])
    while sum(taken.values()) < min(wanted, sum(sizes.values())):
        open_ones = [stratum for stratum in order if taken[stratum] < sizes[stratum]]
        taken[max(open_ones, key=lambda stratum: sizes[stratum] / (taken[stratum] + 1))] += 1
    return {stratum: count for stratum, count in taken.items() if count}


def sample(strata: Mapping[Stratum, Sequence[Episode]], wanted: int, seed: int) -> list[Episode]:
    """At most `wanted` episodes, by stratum and then id; the same for the same episodes and seed."""
    chosen = []
    counts = allocate({stratum: len(episodes) for stratum, episodes in strata.items()}, wanted)
    for stratum in sorted(counts):
        ids = {episode.episode_id: episode for episode in strata[stratum]}
        rng = derive(seed, "audit", *stratum)
        chosen += [ids[episode_id] for episode_id in sorted(rng.sample(sorted(ids), counts[stratum]))]
    return chosen


def audit_title(count: int, total: int, seed: int) -> str:
    """What the page is of."""
    return f"Audit of {count} of {total} finished episodes, seed {seed}"


def audit_html(title: str, sizes: Mapping[Stratum, int], episodes: Sequence[Seen]) -> str:
    """Strata, contents, and every episode with transcript and verdict side by side."""
    drawn = Counter((seen.end["outcome"], seen.word) for seen in episodes)
    strata = rows_table(
        ("outcome", "verdict", "finished", "drawn"),
        [(*stratum, size, drawn[stratum]) for stratum, size in sorted(sizes.items())],
        numbers=(2, 3),
    )
    contents = rows_table(
        ("", "episode", "model", "cell", "outcome", "verdict"),
        [
            (n, link(s.head["episode_id"]), s.head["model"], s.head["cell_id"], s.end["outcome"], s.word)
            for n, s in enumerate(episodes, start=1)
        ],
        numbers=(0,),
    )
    pairs = "\n".join(pair(seen, number, len(episodes)) for number, seen in enumerate(episodes, start=1))
    body = f"<h1>{title}</h1>\n<section>{strata}</section>\n<section>{contents}</section>\n{pairs}"
    return page(title, body, wide=True)


def audit_markdown(title: str, sizes: Mapping[Stratum, int], episodes: Sequence[Seen]) -> str:
    """The same one after another, each with a box to tick when its verdict is right."""
    drawn = Counter((seen.end["outcome"], seen.word) for seen in episodes)
    lines = [f"# {title}", ""]
    lines += [
        f"- {outcome}, verdict {word}: {drawn[(outcome, word)]} of {size}"
        for (outcome, word), size in sorted(sizes.items())
    ]
    lines.append("")
    lines += [
        f"- [ ] {number}. {seen.head['episode_id']} {seen.head['model']} {seen.head['cell_id']}: "
        f"{seen.end['outcome']}, verdict {seen.word}"
        for number, seen in enumerate(episodes, start=1)
    ]
    return "\n\n".join(["\n".join(lines), *(f"---\n\n{markdown_of(seen)}" for seen in episodes)])
