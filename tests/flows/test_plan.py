"""What a study would take: every number against one worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy import stats

from flows.context import Options, Study
from flows.episodes.disk import run_bytes, set_bytes
from flows.plan import detectable, plan_text, project, study_hours
from tests.flows.small_study import document, open_study, tree_bytes

ROOT = Path(__file__).parents[2]
ALL = {"grid/models": ["steady", "served", "cool"]}
# 2 instances x (baseline 2 + order 2 + paraphrase 1 + resample 1 + temperature 1)
EPISODES = 14
# `cool` accepts no temperature.
EPISODES_WITHOUT_TEMPERATURE = 12
LIMITED = {"requests_per_minute": 2}


def test_projection_is_the_one_worked_out_by_hand(tmp_path: Path) -> None:
    study = open_study(tmp_path, ALL)
    served, cool = project(study, "served"), project(study, "cool")
    assert (served.cells, served.episodes) == (5, EPISODES)
    assert (cool.cells, cool.episodes) == (4, EPISODES_WITHOUT_TEMPERATURE)
    # 2000 input tokens at 2 USD and 100 output tokens at 8 USD per million, each episode.
    assert served.expected_usd == pytest.approx(EPISODES * 0.0048)
    # Two attempts of 10 steps, each at most 65536 bytes + 2048 tokens of envelope at 2 USD, and 256 tokens at 8 USD.
    assert served.worst_usd == pytest.approx(EPISODES * 2 * 10 * ((65536 + 2048) * 2 + 256 * 8) / 1e6)
    # 4 steps of 2 seconds, 8 at a time.
    assert served.hours == pytest.approx(EPISODES * 8 / 8 / 3600)
    assert project(study, "steady").hours == 0


def test_rate_limits_lengthen_the_projection(tmp_path: Path) -> None:
    by_requests = open_study(tmp_path, {**ALL, "models/served/limits": {"requests_per_minute": 2}})
    assert project(by_requests, "served").hours == pytest.approx(EPISODES * 4 / 2 / 60)
    by_tokens = open_study(tmp_path, {**ALL, "models/served/limits": {"tokens_per_minute": 100}})
    assert project(by_tokens, "served").hours == pytest.approx(EPISODES * 2100 / 100 / 60)
    few_places = open_study(tmp_path, {**ALL, "execution": {"concurrent_episodes": 1}})
    assert project(few_places, "served").hours == pytest.approx(EPISODES * 8 / 3600)


def test_models_of_one_account_share_its_allowances_and_all_share_the_places(tmp_path: Path) -> None:
    twin = {**document()["models"]["served"], "model": "its-twin"}
    two = {"grid/models": ["served", "twin", "steady"], "models/twin": twin}
    plain = open_study(tmp_path, {**two, "execution": {"concurrent_episodes": 8}})
    # 4 steps of 2 seconds each: alone 8 at a time, together as well.
    assert project(plain, "served").hours == pytest.approx(EPISODES * 8 / 8 / 3600)
    assert study_hours(plain) == pytest.approx(2 * EPISODES * 8 / 8 / 3600)
    shared = open_study(tmp_path, {**two, "models/served/limits": {"requests_per_minute": 2, "tokens_per_minute": 100}})
    by_tokens = 2 * EPISODES * 2100 / 100 / 60
    for name in ("served", "twin"):
        assert project(shared, name).hours == pytest.approx(by_tokens), "the smallest holds for both, together"
    assert study_hours(shared) == pytest.approx(by_tokens)
    other = open_study(tmp_path, {**two, "models/twin/api_key_env": "OTHER_KEY", "models/served/limits": LIMITED})
    assert project(other, "served").hours == pytest.approx(EPISODES * 4 / 2 / 60)
    assert project(other, "twin").hours == pytest.approx(EPISODES * 8 / 8 / 3600)
    assert [line.split()[-1] for line in plan_text(shared).splitlines() if line.startswith("  all ")] == ["9.8"]


def test_text_has_the_numbers(tmp_path: Path) -> None:
    text = plan_text(open_study(tmp_path, ALL))
    rows = {words[0]: words[1:] for line in text.splitlines() if (words := line.split())}
    assert rows["served"][:3] == ["5", "14", "0.07"]
    assert rows["cool"][:3] == ["4", "12", "0.09"]
    assert rows["all"][:2] == ["14", "40"]
    assert "unsupported: cool query-easy-temperature-0.7: the model accepts no temperature" in text
    assert "run seeds: baseline 2, order 2, others 1" in text
    assert "the expected cost fits under the cap of 100.00 USD" in text


def test_plan_above_the_cap_says_so(tmp_path: Path) -> None:
    assert "the expected cost EXCEEDS the cap of 0.01 USD" in plan_text(
        open_study(tmp_path, {**ALL, "budget/cap_usd": 0.01})
    )


def test_disk_past_the_budget_says_so(tmp_path: Path) -> None:
    text = plan_text(open_study(tmp_path, {**ALL, "budget/disk_gb": 1e-6}))
    assert " GB which EXCEEDS the budget of 1e-06 GB" in text
    assert "GB of it Prefect's" in text
    assert "Prefect's" not in plan_text(open_study(tmp_path, {**ALL, "execution/tracking": "per_cell"}))


def test_cells_are_listed_on_demand(tmp_path: Path) -> None:
    study = open_study(tmp_path, ALL)
    assert "query-easy-none-baseline: " not in plan_text(study)
    lines = plan_text(study, list_cells=True).splitlines()
    assert "  query-easy-none-baseline: 3 models x 2 instances x 2 runs (baseline)" in lines
    assert "  query-easy-temperature-0.7: 2 models x 2 instances x 1 runs (sample base)" in lines
    assert "  query-easy-resample-s1: 3 models x 2 instances x 1 runs (sample s1)" in lines


def test_part_of_the_grid_is_planned_alone(tmp_path: Path) -> None:
    study = open_study(tmp_path, ALL, model="served", cell="query-easy-order-shuffled")
    assert (project(study, "served").cells, project(study, "served").episodes) == (1, 4)
    assert [row.axis for row in detectable(study)] == ["order"]


def test_planning_writes_nothing(tmp_path: Path) -> None:
    study = open_study(tmp_path, ALL)
    before = tree_bytes(tmp_path)
    plan_text(study, list_cells=True)
    assert tree_bytes(tmp_path) == before


def test_detectable_differences_follow_the_normal_approximation(tmp_path: Path) -> None:
    """(z at 97.5% + z at 80%) x sqrt(variance of one instance's difference / instances), by hand."""
    study = open_study(tmp_path, {**ALL, "grid/instances": 50, "grid/axes/paraphrase": ["p1", "p2"]})
    rows = {row.axis: row for row in detectable(study)}
    quantiles = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    spread = 0.7 * 0.3

    def smallest(n: int, runs: float, shared: float) -> float:
        variance = 2 * spread * (0.75 - shared) + spread * 0.25 * (1 / 2 + 1 / runs)
        return float(quantiles * math.sqrt(variance / n))

    one = rows["paraphrase"]
    assert one.one_model_one_level == pytest.approx(smallest(50, 1, 0.5), rel=0.02)
    assert one.one_model == pytest.approx(smallest(50, 2, 0.5), rel=0.02)
    assert one.all_models == pytest.approx(smallest(150, 2, 0.5), rel=0.02)
    assert rows["resample"].one_model_one_level == pytest.approx(smallest(50, 1, 0.0), rel=0.02)
    assert rows["temperature"].all_models == pytest.approx(smallest(100, 1, 0.5), rel=0.02), "one model is not asked"


def test_one_level_chosen_is_one_level(tmp_path: Path) -> None:
    study = open_study(tmp_path, {"grid/axes/paraphrase": ["p1", "p2"]}, cell="query-easy-paraphrase-p2")
    [row] = detectable(study)
    assert row.one_model == row.one_model_one_level


class TestTheShippedGrid:
    @pytest.fixture
    def study(self) -> Study:
        return Study(Options(manifest=str(ROOT / "experiments.yaml")))

    def test_is_expected_under_200_usd(self, study: Study) -> None:
        expected = sum(project(study, model).expected_usd for model in study.models)
        # 6 strata x 80 instances x (2 + 5 + 2 + 2 + 1 + 1 + 2) = 7200 episodes a model.
        assert [project(study, model).episodes for model in study.models] == [7200, 7200]
        assert 0 < expected < 200 <= study.manifest.budget.cap_usd

    def test_fits_on_the_disk(self, study: Study) -> None:
        episodes = {model: project(study, model).episodes for model in study.models}
        projected = run_bytes(study.manifest, episodes) + set_bytes(study.manifest, study.cells)
        assert 0 < projected < study.manifest.budget.disk_gb * 1e9
        assert f"disk: about {projected / 1e9:.2f} GB of 5 GB, " in plan_text(study)
