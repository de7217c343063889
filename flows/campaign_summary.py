"""What a run did and what it left, for people: its closing lines, and the error that stopped it."""

from __future__ import annotations

from flows.campaign import Campaign
from flows.errors import RunHalted, StudyError


def remaining(campaign: Campaign) -> str:
    """The unfinished work as lines, one per model, family and difficulty: each cell's episodes left of all."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for model, cell in campaign.study.work:
        total = len(campaign.study.episodes(model, cell))
        done = campaign.completed(model, cell)
        if done < total:
            cells = groups.setdefault((model, cell.family, cell.difficulty), [])
            cells.append(f"{cell.axis}-{cell.level} {total - done}/{total}")
    return "\n".join(
        f"  {model} {name}-{difficulty}: {', '.join(cells)}" for (model, name, difficulty), cells in groups.items()
    )


def halt_error(campaign: Campaign) -> StudyError | None:
    """The error that stopped the run, with the remaining work listed; null if none did."""
    error = campaign.halted
    if isinstance(error, RunHalted):
        return RunHalted(f"{error}\nleft to do (cell episodes left/planned):\n{remaining(campaign)}")
    return error


def summary_lines(campaign: Campaign) -> list[str]:
    """What the run did, for people: counts, spend against the cap, infra_errors, cells that are all infra_error."""
    tally, totals, cap = campaign.tally, campaign.ledger.totals(), campaign.ledger.cap_usd
    uncertain = totals.unknown + totals.reserved
    lines = [
        f"run: {tally.finished} of {tally.planned} episodes finished ({tally.skipped} before this run), "
        f"{tally.infra_errors} infra_error; spent {totals.spent:.4f} of {cap:.2f} USD"
        + (f", {uncertain:.4f} USD unknown" if uncertain else "")
    ]
    abandoned = totals.abandoned()
    if abandoned:
        lines.append(
            f"run: {sum(abandoned.values()):.4f} USD of these are held for {len(abandoned)} episodes whose process "
            "died; they may have been spent and count against the cap"
        )
    if tally.passed_over:
        lines.append(
            f"run: {tally.passed_over} unfinished episodes were passed over: their latest attempt is no infra_error; "
            "run without --only to go on with them"
        )
    elsewhere = totals.elsewhere()
    if elsewhere:
        hosts = sorted({str(totals.owners[key].host) for key in elsewhere})
        lines.append(
            f"run: {sum(elsewhere.values()):.4f} USD of these are held for {len(elsewhere)} episodes of other machines "
            f"({', '.join(hosts)}), of which nobody here can see whether they still run"
        )
    for model, why in campaign.unusable.items():
        left = sum(
            len(campaign.study.episodes(name, cell)) - campaign.completed(name, cell)
            for name, cell in campaign.study.work
            if name == model
        )
        lines.append(f"run: WARNING: {why}; {left} of its episodes are left; mend it and run again")
    if totals.committed > cap * (1 + 1e-9):
        lines.append(
            f"run: WARNING: {totals.committed:.4f} USD are spent, unknown or held, over the cap of {cap:.2f}: a "
            "provider billed more than the requests' own limits allow, or the cap was lowered"
        )
    if campaign.capped:
        lines.append(
            f"run: PARTIAL: the cost cap is reached; {tally.completed} of {tally.planned} episodes completed, spend "
            f"{totals.spent:.4f} USD (+ {uncertain:.4f} reserved or unknown) against a cap of {cap:.2f} USD; raise "
            "budget.cap_usd and run again to go on"
        )
        lines.append(f"left to do (cell episodes left/planned):\n{remaining(campaign)}")
    lines += [
        f"run: WARNING: every episode of cell {cell} of model {model} is an infra_error"
        for model, cell in tally.dead_cells()
    ]
    return lines
