"""`agent-bench service rehearse`: an agent for every case of the verification, from its first call to its row.

The same scaffold, ledger, transcripts and evaluator as for any model, offline: the agent is scripted to hand in the
case's submission. What must come out is what benchmark.yaml says of the case. Cases that no agent with these tools
can bring about (links, pipes, bytecode, broken evidence) are named; `verify` has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flows.campaign import Campaign
from flows.console import Console
from flows.context import Options
from flows.episodes.job import Job
from flows.errors import ConfigurationError
from flows.manifest import Limits, Model, Pricing, ScriptedModel
from flows.models.adapter import Adapter
from flows.models.scripted import ScriptedAdapter
from flows.service.run import carry_out
from flows.service.scoring import KeptJudge, evaluation_path, score_finished
from flows.service.study import ServiceStudy
from tasks_env import ToolCall, registered
from tasks_env.errors import UnknownName
from tasks_env.service.benchmark import Benchmark
from tasks_env.service.evaluation import EXITS
from tasks_env.service.family import Judge, ServiceChange, case_tree, exported, judged_here
from tasks_env.service.verification.case import UNSOLVED, UNSOLVED_CODES
from tasks_env.service.verification.cases import cases_of, find_case
from tasks_env.service.workspace import MOST_FILES, plan_of

FOLDER = "service-rehearsal"
LONGEST_PLAN = 60
SCAFFOLD = {"step_cap": LONGEST_PLAN, "conversation_bytes": 400_000}
CLASSES = {0: None, **dict(EXITS.values())}
"""Exit code → failure class."""


class RehearsedAdapter(ScriptedAdapter):
    """A scripted agent that plays a given plan."""

    def __init__(self, entry: ScriptedModel, job: Job, max_output_tokens: int, plan: Sequence[ToolCall]) -> None:
        super().__init__(entry, job, max_output_tokens)
        self._plan = list(plan)


class Rehearsal(Campaign):
    """A campaign whose models are named after the cases that they play."""

    def _open_adapter(self, job: Job) -> Adapter:
        entry, study = self.study.manifest.models[job.episode.model], self.study
        assert isinstance(entry, ScriptedModel)
        assert isinstance(study, ServiceStudy)
        plan = plan_for(study.benchmark, job.episode.model)
        return RehearsedAdapter(entry, job, study.manifest.scaffold.max_output_tokens, plan)


def plan_for(benchmark: Benchmark, case: str) -> tuple[ToolCall, ...]:
    """The calls that hand in a case's submission. Raises `ValueError` if an agent's tools cannot make it."""
    wanted = case_tree(benchmark.id, case)
    if len(wanted) > MOST_FILES:
        raise ValueError(f"case {case!r}: more than {MOST_FILES} files")
    return plan_of(exported(benchmark), wanted)


def playable(benchmark: Benchmark) -> dict[str, str]:
    """Case → why no agent can bring it about; empty text: one can."""
    reasons = {}
    for name, case in cases_of(benchmark).items():
        reasons[name] = "it is about the evaluator's own evidence" if case.breakage is not None else ""
        if not reasons[name]:
            try:
                plan_for(benchmark, name)
            except ValueError as error:
                reasons[name] = str(error).partition(": ")[2]
    return reasons


def rehearse(
    options: Options, benchmark: Benchmark, console: Console, names: Sequence[str] = (), judge: Judge = judged_here
) -> bool:
    """Play every case (or those of `names`), judge, compare. Returns whether every row is the known one.

    Raises:
        ConfigurationError: no such case, or none that an agent could play.
    """
    benchmark.check_evidence()
    chosen = _chosen(benchmark, names)
    kept = KeptJudge(judge)
    agent = ScriptedModel(
        adapter="scripted", pass_rate={"easy": 1.0}, pricing=Pricing(input=0.0, output=0.0), limits=Limits()
    )
    models: dict[str, Model] = dict.fromkeys(chosen, agent)
    with registered(ServiceChange(kept)):
        study = ServiceStudy(options, benchmark, models, runs=1, scaffold=SCAFFOLD, folder=FOLDER)
        study.prepare()
        carry_out(Rehearsal(study, console, {}))
        rows = {row["model"]: row for row in score_finished(study, kept)}
    problems = [problem for name in chosen if (problem := row_problem(study, name, rows.get(name)))]
    for name in chosen:
        console.line(f"  {name:<32} {benchmark.contract.verification[name]:<4} {_row_word(rows.get(name))}")
    for problem in problems:
        console.line(f"REHEARSAL FAILED: {problem}")
    if not problems:
        console.line(f"REHEARSAL OK: {benchmark.id}, {len(chosen)} cases from agent to row")
    return not problems


def row_problem(study: ServiceStudy, case: str, row: dict[str, Any] | None) -> str | None:
    """Why a case's row is not the known one; null if it is."""
    expected = study.benchmark.contract.verification[case]
    if row is None:
        return f"{case}: there is no row"
    if row["infra_error"] or row["outcome"] != "completed":
        return f"{case}: {row['outcome']} ({row['failure_class']})"
    if not evaluation_path(study, row["episode_id"]).is_file():
        return f"{case}: there is no evaluation.json"
    known = [CLASSES[code] for code in (UNSOLVED_CODES if expected == UNSOLVED else [expected])]
    if row["failure_class"] not in known or row["passed"] is not (expected == 0):
        return f"{case}: expected {' or '.join(map(str, known)) if expected else 'a pass'}, got {_row_word(row)}"
    return None


def _row_word(row: dict[str, Any] | None) -> str:
    if row is None:
        return "no row"
    return "passed" if row["passed"] else str(row["failure_class"])


def _chosen(benchmark: Benchmark, names: Sequence[str]) -> list[str]:
    reasons = playable(benchmark)
    for name in names:
        try:
            find_case(benchmark, name)
        except UnknownName as error:
            raise ConfigurationError(f"--case: {error}") from None
        if reasons[name]:
            raise ConfigurationError(f"--case: no agent can bring about {name!r}: {reasons[name]}; `verify` has it")
    return list(names) or [name for name, reason in reasons.items() if not reason]
