"""The benchmarks as a family: an agent's copy of the service, its tools, and perturbations that reach it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pytest

from tasks_env import (
    FAMILIES,
    FinalState,
    GenerationError,
    Instance,
    ParameterError,
    Session,
    ToolError,
    generate_instance,
    perturbation,
    play,
    registered,
    render,
)
from tasks_env.service.benchmark import benchmark_ids, load_benchmark
from tasks_env.service.errors import EvidenceError
from tasks_env.service.evaluation import Evaluation
from tasks_env.service.evaluator import no_verdict
from tasks_env.service.family import MISTAKEN, ServiceChange, case_tree, check_export, exported, tree_of
from tasks_env.service.verification.cases import cases_of
from tasks_env.service.workspace import MOST_FILES, Workspace, plan_of, workspace_tools

FILES = {"app/main.py": "import fastapi\n", "tests/test_a.py": "def test():\n    pass\n"}


def passing(identity: str, files: Mapping[str, str]) -> Evaluation:
    """A judge that believes nothing but the known-good tree."""
    good = files == case_tree(identity, "known_good")
    refused = no_verdict(load_benchmark(identity), "-", "r", 0)
    status = "pass" if good else "fail"
    return refused.model_copy(
        update={
            "exit_code": 0 if good else 12,
            "passed": good,
            "criteria": [each.model_copy(update={"status": status}) for each in refused.criteria],
        }
    )


@pytest.fixture(autouse=True)
def service() -> Iterator[ServiceChange]:
    family = ServiceChange(passing)
    with registered(family):
        yield family


@pytest.fixture(params=benchmark_ids())
def instance(request: pytest.FixtureRequest) -> Instance:
    return generate_instance("service", {"benchmark": request.param}, 1, difficulty=request.param.lower())


def test_it_is_in_no_study_unless_it_is_lent() -> None:
    assert "service" not in FAMILIES


def test_the_task_is_the_same_for_every_seed_and_its_prompt_is_the_file(instance: Instance) -> None:
    benchmark = load_benchmark(str(instance.spec["benchmark"]))
    other = generate_instance("service", {"benchmark": benchmark.id}, 2, difficulty=benchmark.id.lower())
    assert other.instance_id == instance.instance_id
    assert render(instance).prompt == (benchmark.folder / "task.md").read_text(encoding="utf-8")


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(ParameterError, match="one of BE-001, BE-002"):
        generate_instance("service", {"benchmark": "BE-999"}, 1)


def test_the_reference_passes_and_doing_nothing_and_mistakes_fail(instance: Instance, service: ServiceChange) -> None:
    for plan, passes in (
        (service.reference(instance), True),
        (next(service.untouched(instance)), False),
        (service.mistake(instance, random.Random(1)), False),
    ):
        session = Session(instance, render(instance))
        results = play(session, plan)
        assert not any(result.is_error for result in results)
        assert session.submitted
        assert session.verdict().passed is passes


def test_a_right_tree_that_was_never_handed_in_does_not_pass(instance: Instance, service: ServiceChange) -> None:
    session = Session(instance, render(instance))
    play(session, service.reference(instance)[:-1])
    verdict = session.verdict()
    assert not verdict.passed
    assert [each.name for each in verdict.conditions] == ["handed_in"]
    assert verdict.partial_score == 0


@pytest.mark.parametrize(
    ("axis", "levels"),
    [
        ("paraphrase", ["p1", "p2", "p3", "p4", "p5"]),
        ("tool_names", ["synonyms", "opaque"]),
        ("distractors", ["2", "5"]),
    ],
)
def test_the_reference_passes_under_every_perturbation(
    instance: Instance, service: ServiceChange, axis: str, levels: list[str]
) -> None:
    baseline = render(instance)
    for level in levels:
        [shown] = perturbation(axis).present([instance], level, 5)
        variant = render(instance, shown, axis=axis, level=level)
        assert (variant.prompt, variant.tools) != (baseline.prompt, baseline.tools)
        session = Session(instance, variant)
        play(session, service.reference(instance))
        assert session.verdict().passed


def test_every_case_that_an_agent_can_write_arrives_byte_for_byte(instance: Instance, service: ServiceChange) -> None:
    benchmark = load_benchmark(str(instance.spec["benchmark"]))
    arrived = 0
    for name, case in cases_of(benchmark).items():
        if case.breakage is not None or not case.build(benchmark).is_text or name == "many_files":
            continue
        session = Session(instance, render(instance))
        assert not any(result.is_error for result in play(session, service.plan(instance, name))), name
        assert tree_of(session.final_state()) == case_tree(benchmark.id, name)
        arrived += 1
    assert arrived > 60


def test_a_case_that_no_text_tool_can_make_is_refused(instance: Instance, service: ServiceChange) -> None:
    with pytest.raises(ValueError, match=r"what tools that write text cannot make"):
        service.plan(instance, "symbolic_link")


def test_the_table_of_cases_is_the_second_opinion(instance: Instance, service: ServiceChange) -> None:
    opinion = service.second_opinion(instance)
    session = Session(instance, render(instance))
    play(session, service.reference(instance))
    right = session.final_state()
    assert opinion(right)
    assert all(opinion(proposal.state) for proposal in service.restatements(instance, right))
    wrong = list(service.near_misses(instance, right, random.Random(1)))
    assert [each.operator for each in wrong] == list(MISTAKEN[str(instance.spec["benchmark"])])
    assert not any(opinion(proposal.state) for proposal in wrong)


def test_an_evaluator_that_cannot_judge_gives_no_verdict(instance: Instance) -> None:
    def broken(identity: str, _files: Mapping[str, str]) -> Evaluation:
        return no_verdict(load_benchmark(identity), "the control fails", "r", 0)

    with registered(ServiceChange(broken)):
        session = Session(instance, render(instance))
        session.call("submit", {})
        with pytest.raises(EvidenceError, match="the control fails"):
            session.verdict()


def test_the_agents_copy_is_the_registered_baseline_and_holds_no_answer() -> None:
    benchmark = load_benchmark("BE-002")
    files = exported(benchmark)
    assert {path: text.encode() for path, text in files.items()} == dict(benchmark.baseline)
    text = "\n".join(files.values())
    assert "BE-002" not in text
    assert "known-good" not in text
    for leak in ({"known-good/app/orders/service.py": ""}, {".git/HEAD": ""}, {"app/orders/service.py": "edited"}):
        with pytest.raises(EvidenceError, match="no agent may see it"):
            check_export({**files, **leak}, benchmark.contract.baseline_hash)


def test_a_world_with_a_leak_in_it_is_not_opened(instance: Instance) -> None:
    files = instance.world["files"]
    assert isinstance(files, dict)
    leaking = instance.model_copy(update={"world": {"files": {**files, "acceptance/test_functional.py": "the suite"}}})
    with pytest.raises(EvidenceError, match=r"holds acceptance/test_functional\.py"):
        Session(leaking, render(instance))


def test_generation_refuses_an_edited_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def edited(_self: object) -> None:
        raise EvidenceError("suite_hash is another")

    monkeypatch.setattr("tasks_env.service.benchmark.Benchmark.check_evidence", edited)
    with pytest.raises(GenerationError, match="suite_hash is another"):
        generate_instance("service", {"benchmark": "BE-001"}, 1)


# --- the tools ------------------------------------------------------------------------------------------------


def test_files_are_listed_read_searched_written_and_deleted() -> None:
    workspace = Workspace(FILES)
    assert workspace.call("list_files", {}).text.splitlines() == ["app/main.py  15 bytes", "tests/test_a.py  21 bytes"]
    assert workspace.call("list_files", {"folder": "./tests/"}).text == "tests/test_a.py  21 bytes"
    assert workspace.call("read_file", {"path": "./app//main.py"}).text == "import fastapi\n"
    assert workspace.call("search_text", {"text": "fastapi"}).text == "app/main.py:1: import fastapi"
    assert workspace.call("search_text", {"text": "nowhere"}).text == "no line contains it"
    assert workspace.call("write_file", {"path": "app/new.py", "content": "ø"}).text == "written: 2 bytes"
    workspace.call("delete_file", {"path": "tests/test_a.py"})
    assert workspace.state() == {"files": {"app/main.py": "import fastapi\n", "app/new.py": "ø"}}
    assert not workspace.submitted
    workspace.call("submit", {})
    assert workspace.submitted


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "app/../../x", "", ".", "a\x00b", "a\nb", "app\\x.py", " /x", "app/ x.py", "app/..", "//"],
)
def test_no_path_leads_out_of_the_service(path: str) -> None:
    workspace = Workspace(FILES)
    for name, arguments in (("read_file", {"path": path}), ("write_file", {"path": path, "content": ""})):
        with pytest.raises(ToolError):
            workspace.call(name, dict(arguments))
    assert workspace.state() == {"files": FILES}


@pytest.mark.parametrize("path", ["app", "app/main.py/x"])
def test_a_file_cannot_take_the_place_of_a_folder(path: str) -> None:
    with pytest.raises(ToolError, match="cannot both be there"):
        Workspace(FILES).call("write_file", {"path": path, "content": ""})


def test_a_path_that_no_file_system_takes_is_refused() -> None:
    """It would keep the evaluator from staging what was handed in."""
    with pytest.raises(ToolError, match="longer than 200 bytes"):
        Workspace(FILES).call("write_file", {"path": f"tests/test_{'é' * 150}.py", "content": ""})


def test_what_is_not_there_is_an_error_that_says_what_to_do() -> None:
    workspace = Workspace(FILES)
    with pytest.raises(ToolError, match=r"there is no file app/none\.py; \{tool:list_files\} shows"):
        workspace.call("read_file", {"path": "app/none.py"})
    with pytest.raises(ToolError, match="there is no folder nothing"):
        workspace.call("list_files", {"folder": "nothing"})


def test_the_number_of_files_is_bounded() -> None:
    workspace = Workspace({f"f{number}": "" for number in range(MOST_FILES)})
    workspace.call("write_file", {"path": "f0", "content": "again"})
    with pytest.raises(ToolError, match="delete some first"):
        workspace.call("write_file", {"path": "one-more", "content": ""})


def test_long_search_results_are_cut_and_say_so() -> None:
    found = Workspace({"a.txt": "x\n" * 100}).call("search_text", {"text": "x"}).text.splitlines()
    assert len(found) == 61
    assert found[-1] == "... and 40 more lines"


def test_a_plan_writes_only_what_differs() -> None:
    plan = plan_of(FILES, {"app/main.py": "import fastapi\n", "b.py": "x"})
    assert [call.name for call in plan] == ["list_files", "delete_file", "write_file", "submit"]
    assert workspace_tools()[-1].name == "submit"
    state = FinalState(submitted=True, data={"files": {}})
    assert tree_of(state) == {}
