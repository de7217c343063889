"""What a manifest may say, and how a mistake in it is answered: refused at load, by field path, nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.errors import ConfigurationError
from flows.manifest import ScriptedModel, load_manifest
from tests.flows.small_study import REMOVED, tree_bytes, write_manifest

ROOT = Path(__file__).parents[3]


def refusal(path: Path, **options: Any) -> str:
    """The message of a refused manifest, after checking that nothing was written beside it."""
    before = tree_bytes(path.parent)
    with pytest.raises(ConfigurationError) as caught:
        load_manifest(path, **options)
    assert caught.value.exit_code == 2
    assert tree_bytes(path.parent) == before
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown top-level key": ({"buget": {}}, ["buget: unknown key", "did you mean 'budget'?"]),
    "unknown nested key": ({"grid/instnces": 3}, ["grid.instnces: unknown key", "did you mean 'instances'?"]),
    "unknown key two levels down": ({"grid/runs/basline": 2}, ["grid.runs.basline", "did you mean 'baseline'?"]),
    "unknown key of a model": ({"models/served/pricng": {}}, ["models.served.pricng", "did you mean 'pricing'?"]),
    "unknown key below a model": (
        {"models/served/pricing/inptu": 1.0},
        ["models.served.pricing.inptu: unknown key", "did you mean 'input'?"],
    ),
    "key that resembles nothing": ({"grid/zzz": 1}, ["grid.zzz: unknown key"]),
    "missing number": ({"grid/instances": REMOVED}, ["grid.instances: missing; expected a whole number"]),
    "missing section": ({"retry": REMOVED}, ["retry: missing; expected a mapping"]),
    "missing price": ({"models/served/pricing/output": REMOVED}, ["models.served.pricing.output", "a number"]),
    "missing model id": ({"models/served/model": REMOVED}, ["models.served.model: missing; expected a string or null"]),
    "string for a number": ({"grid/instances": "two"}, ["grid.instances", "integer", "got 'two'"]),
    "digits as a string": ({"grid/instances": "2"}, ["grid.instances", "integer", "got '2'"]),
    "boolean for a number": ({"grid/instances": True}, ["grid.instances", "integer", "got True"]),
    "fraction for a whole number": ({"seed": 1.5}, ["seed", "integer", "got 1.5"]),
    "number for a name": ({"study": 3}, ["study", "string", "got 3"]),
    "number for a level": ({"grid/axes/temperature": [0.7]}, ["grid.axes.temperature.0", "string", "got 0.7"]),
    "list for a section": ({"grid": [1]}, ["grid: expected a mapping", "got [1]"]),
    "null for a section": ({"budget": None}, ["budget: expected a mapping", "got None"]),
    "mapping for a list": ({"grid/models": {}}, ["grid.models", "list"]),
    "value out of range": ({"grid/runs/baseline": 1}, ["grid.runs.baseline", "greater than or equal to 2", "got 1"]),
    "one run seed for order": ({"grid/runs/order": 1}, ["grid.runs.order", "greater than or equal to 2"]),
    "negative seed": ({"seed": -1}, ["seed", "greater than or equal to 0"]),
    "name with a slash": ({"study": "a/b"}, ["study", "pattern"]),
    "model name with capitals": ({"models/Big": {}}, ["models.Big", "pattern"]),
    "word outside its choices": ({"execution": {"tracking": "per_epsode"}}, ["execution.tracking", "'per_episode'"]),
    "unknown adapter": ({"models/served/adapter": "opnai"}, ["models.served.adapter", "openai, anthropic", "'opnai'"]),
    "missing adapter": ({"models/served/adapter": REMOVED}, ["models.served.adapter", "scripted", "missing"]),
    "no address": ({"models/served/base_url": REMOVED}, ["models.served", "exactly one of base_url and base_url_env"]),
    "two addresses": ({"models/served/base_url_env": "URL"}, ["models.served", "exactly one of base_url"]),
    "address without a scheme": ({"models/served/base_url": "localhost"}, ["models.served.base_url", "pattern"]),
    "root outside": ({"root": "../elsewhere"}, ["root", "without '..'", "got '../elsewhere'"]),
    "absolute root": ({"root": "/somewhere"}, ["root", "relative folder"]),
    "no axes": ({"grid/axes": {}}, ["grid.axes", "at least 1"]),
    "axis without levels": ({"grid/axes/paraphrase": []}, ["grid.axes", "'paraphrase' is empty"]),
    "family without difficulties": ({"grid/families/query": []}, ["grid.families", "'query' is empty"]),
    "no models": ({"grid/models": []}, ["grid.models", "at least 1"]),
    "model twice": ({"grid/models": ["steady", "steady"]}, ["grid.models", "listed twice: steady"]),
    "level twice": ({"grid/axes/paraphrase": ["p1", "p2", "p1"]}, ["grid.axes", "listed twice: p1"]),
    "difficulty twice": ({"grid/families/query": ["easy", "easy"]}, ["grid.families", "listed twice: easy"]),
    "other schema version": ({"schema_version": 2}, ["schema_version: expected 1, got 2"]),
    "schema version as a fraction": ({"schema_version": 1.0}, ["schema_version: expected 1, got 1.0"]),
    "schema version as a truth value": ({"schema_version": True}, ["schema_version: expected 1, got True"]),
    "no schema version": ({"schema_version": REMOVED}, ["schema_version: expected 1, it is missing"]),
    "no profiles": ({"profiles": {}}, ["profiles: expected a mapping with at least one profile"]),
    "profile that is no mapping": ({"profiles/full": 3}, ["profiles.full: expected a mapping, got 3"]),
    "profile named in the file": ({"profile": "full"}, ["profile: unknown key", "--profile"]),
    "unknown model in the grid": ({"grid/models": ["stedy"]}, ["grid.models", "'stedy'", "did you mean 'steady'?"]),
    "unknown model unlike any": ({"grid/models": ["zzz"]}, ["grid.models", "known: cool, served, steady"]),
    "unknown family": ({"families/qery": {"easy": {}}}, ["families.qery.easy", "'qery'", "'query'"]),
    "unknown family in the grid": ({"grid/families/qery": ["easy"]}, ["grid.families", "did you mean 'query'?"]),
    "unknown difficulty": ({"grid/families/query": ["esy"]}, ["grid.families.query", "did you mean 'easy'?"]),
    "unknown axis": ({"grid/axes/paraphrases": ["p1"]}, ["grid.axes.paraphrases", "'paraphrase'"]),
    "the baseline as an axis": ({"grid/axes/none": ["baseline"]}, ["grid.axes.none", "unknown perturbation axis"]),
    "unknown level": ({"grid/axes/paraphrase": ["p9"]}, ["grid.axes.paraphrase", "'p9'"]),
    "unknown resample level": ({"grid/axes/resample": ["t1"]}, ["grid.axes.resample", "'t1'", "s1"]),
    "unknown temperature": ({"grid/axes/temperature": ["hot"]}, ["grid.axes.temperature", "'hot'", "0.7"]),
    "effect on an unknown axis": ({"models/steady/effects": {"ordr": {"shuffled": 0.1}}}, ["effects.ordr", "'order'"]),
    "effect on an unknown level": (
        {"models/steady/effects": {"order": {"shufled": 0.1}}},
        ["models.steady.effects.order", "'shufled'", "'shuffled'"],
    ),
    "effect of an unknown family": ({"models/steady/family_effects": {"qery": 0.1}}, ["family_effects", "'query'"]),
    "chance for an unknown difficulty": (
        {"models/steady/pass_rate": {"easy": 0.5, "hrd": 0.5}},
        ["models.steady.pass_rate: unknown name 'hrd'"],
    ),
    "no chance for a difficulty": (
        {"families/query/hard": {}, "models/steady/pass_rate": {"hard": 0.5}},
        ["models.steady.pass_rate: missing for difficulty 'easy'"],
    ),
    "chance above 1": ({"models/steady/pass_rate": {"easy": 1.2}}, ["models.steady.pass_rate.easy", "equal to 1"]),
    "chance above 1 by an effect": (
        {"models/steady/pass_rate": {"easy": 0.95}, "models/steady/effects": {"order": {"shuffled": 0.1}}},
        ["models.steady", "from 0.950 to 1.050", "keep it in 0..1"],
    ),
    "chance below 0 by family and spread": (
        {
            "models/steady/pass_rate": {"easy": 0.2},
            "models/steady/family_effects": {"query": -0.15},
            "models/steady/instance_spread": 0.1,
        },
        ["models.steady", "from -0.050", "keep it in 0..1"],
    ),
    "family parameter out of range": (
        {"families/query/easy/rows": 9999},
        ["families.query.easy", "family 'query'", "parameter 'rows'", "200", "9999"],
    ),
    "family parameter of another type": (
        {"families/query/easy/rows": "8"},
        ["families.query.easy", "family 'query'", "parameter 'rows'", "expected int", "got '8'"],
    ),
    "family parameter as a truth value": ({"families/query/easy/tables": True}, ["parameter 'tables'", "got True"]),
    "family parameter missing": ({"families/query/easy/rows": REMOVED}, ["family 'query'", "parameter 'rows'"]),
    "family parameter unknown": ({"families/query/easy/rowz": 3}, ["family 'query'", "parameter 'rowz'"]),
    "baseline temperature out of range": ({"decoding": {"baseline_temperature": 3}}, ["decoding", "from 0 to 2"]),
    "baseline temperature as a word": ({"decoding": {"baseline_temperature": "cold"}}, ["provider_default", "'cold'"]),
    "baseline temperature as a truth value": ({"decoding": {"baseline_temperature": True}}, ["from 0 to 2", "True"]),
}


@pytest.mark.parametrize("name", CASES)
def test_mistake_is_refused_with_its_field_path(tmp_path: Path, name: str) -> None:
    changes, expected = CASES[name]
    message = refusal(write_manifest(tmp_path, changes))
    for part in expected:
        assert part in message


def test_every_problem_is_listed_at_once(tmp_path: Path) -> None:
    message = refusal(write_manifest(tmp_path, {"grid/instances": 0, "seed": "x", "budget/cap": 3}))
    assert message.startswith("3 problems:\n")
    for field in ("grid.instances", "seed", "budget.cap"):
        assert f"\n  {field}: " in message


def test_references_are_listed_at_once(tmp_path: Path) -> None:
    message = refusal(write_manifest(tmp_path, {"grid/models": ["nobody"], "families/query/easy/rows": 1}))
    assert message.startswith("2 problems:\n")


NON_FINITE = {
    "cap_usd": "budget/cap_usd",
    "price": "models/served/pricing/input",
    "effect": "models/steady/effects/order/shuffled",
    "pass rate": "models/steady/pass_rate/easy",
    "temperature": "decoding/baseline_temperature",
    "wait": "retry/max_wait_s",
    "family parameter": "families/query/easy/null_share",
    "expectation": "expectation/tokens_in",
}


@pytest.mark.parametrize("place", NON_FINITE)
@pytest.mark.parametrize("number", [".inf", "-.inf", ".nan"])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, place: str, number: str) -> None:
    path = write_manifest(tmp_path, {NON_FINITE[place]: "HERE"})
    path.write_text(path.read_text().replace('"HERE"', number))
    assert NON_FINITE[place].split("/")[-1] in refusal(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a mapping of sections, got NoneType"),
        ("- a\n", "expected a mapping of sections, got list"),
        ("a: [1\n", "not valid YAML"),
        ("a: 1\na: 2\n", "found duplicate key"),
        ("grid:\n  models: [a]\n  models: [b]\n", "found duplicate key"),
        ("a: !!python/object:os.system x\n", "not valid YAML"),
        ("study: 2026-13-45\n", "not valid YAML"),
        ("a: " + "[" * 600, "nested too deeply"),
        ("a: *nowhere\n", "not valid YAML"),
        ("a: 1\n---\nb: 1\n", "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
        ("3: a\n", "schema_version"),
    ],
)
def test_text_that_is_no_manifest_is_refused_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "experiments.yaml"
    path.write_text(text)
    message = refusal(path)
    assert expected in message
    assert "\n" not in message


def test_duplicate_key_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "experiments.yaml"
    path.write_text("schema_version: 1\nseed: 1\nseed: 2\n")
    message = refusal(path)
    assert '"seed"' in message
    assert "line 3" in message


def test_keys_that_are_no_strings_are_refused(tmp_path: Path) -> None:
    path = write_manifest(tmp_path)
    path.write_text(path.read_text().replace('"cap_usd"', "3"))
    assert "budget" in refusal(path)
    path = write_manifest(tmp_path)
    path.write_text(path.read_text().replace('"full"', "3"))
    assert "no profile 'full'; known: 3, more" in refusal(path)


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "no such manifest; give its path with --manifest" in refusal(tmp_path / "none.yaml")
    (tmp_path / "folder.yaml").mkdir()
    assert "cannot be read" in refusal(tmp_path / "folder.yaml")
    (tmp_path / "latin.yaml").write_bytes("study: Zürich\n".encode("latin-1"))
    assert "cannot be read" in refusal(tmp_path / "latin.yaml")


def test_unknown_profile_is_refused_with_the_nearest(tmp_path: Path) -> None:
    message = refusal(write_manifest(tmp_path), profile="mroe")
    assert message == "profiles: no profile 'mroe'; known: full, more; did you mean 'more'?"


def test_anchors_and_merge_keys_stand_for_what_they_name(tmp_path: Path) -> None:
    path = write_manifest(tmp_path)
    text = path.read_text()
    prices = '"pricing": {\n    "input": 3.0,\n    "output": 15.0\n   }'
    assert prices in text
    plain = load_manifest(path)
    text = text.replace(prices, '"pricing": *prices').replace(
        '"pricing": {\n    "input": 1.0', '"pricing": &prices {\n    "input": 1.0'
    )
    path.write_text(text)
    anchored = load_manifest(path)
    assert anchored.models["cool"].pricing == plain.models["steady"].pricing
    path.write_text(text.replace('"pricing": *prices', '"pricing": {<<: *prices, "output": 9.0}'))
    merged = load_manifest(path).models["cool"].pricing
    assert (merged.input, merged.output) == (1.0, 9.0)


def test_profile_overrides_key_by_key_one_level_deep(tmp_path: Path) -> None:
    shared = load_manifest(write_manifest(tmp_path))
    over = load_manifest(
        write_manifest(tmp_path, {"profiles/more": {"grid": {"axes": {"order": ["shuffled"]}}, "seed": 9}}), "more"
    )
    assert over.grid.axes == {"order": ["shuffled"]}, "a key is replaced whole"
    assert over.grid.instances == shared.grid.instances, "its neighbours stay"
    assert (over.seed, over.profile, shared.profile) == (9, "more", "full")
    assert over.scaffold == shared.scaffold


def test_profile_without_overrides_is_the_shared_part(tmp_path: Path) -> None:
    empty = load_manifest(write_manifest(tmp_path, {"profiles/bare": None}), "bare")
    full = load_manifest(write_manifest(tmp_path))
    assert empty.model_copy(update={"profile": "full"}) == full


def test_mistake_in_an_override_is_refused(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, {"profiles/more/grid/instnces": 3})
    load_manifest(path)
    assert "grid.instnces: unknown key; did you mean 'instances'?" in refusal(path, profile="more")


def test_seed_replaces_the_master_seed(tmp_path: Path) -> None:
    path = write_manifest(tmp_path)
    assert load_manifest(path).seed == 7
    assert load_manifest(path, seed=0).seed == 0
    assert "seed" in refusal(path, seed=2**63)


def test_model_named_like_an_adapter_keeps_its_name_in_messages(tmp_path: Path) -> None:
    entry = {"adapter": "openai", "model": "m", "base_url": "http://h", "pricing": {"input": "x", "output": 1.0}}
    assert "models.openai.pricing.input: " in refusal(write_manifest(tmp_path, {"models/openai": entry}))


def test_manifest_cannot_be_changed_after_loading(tmp_path: Path) -> None:
    manifest = load_manifest(write_manifest(tmp_path))
    with pytest.raises(ValueError, match="frozen"):
        manifest.seed = 3  # type: ignore[misc]


class TestTheShippedManifest:
    """experiments.yaml, every profile."""

    @pytest.mark.parametrize("profile", ["full", "smoke", "local"])
    def test_is_valid(self, profile: str) -> None:
        shipped = load_manifest(ROOT / "experiments.yaml", profile)
        assert shipped.study == "how-reliable-is-an-agent-benchmark"
        assert len(shipped.grid.models) >= 2
        assert set(shipped.grid.families) == {"tabular", "filesys", "query"}

    def test_full_and_smoke_cover_every_axis_and_stated_level(self) -> None:
        for profile in ("full", "smoke"):
            grid = load_manifest(ROOT / "experiments.yaml", profile).grid
            assert {name: len(levels) for name, levels in grid.families.items()} == {
                "tabular": 2,
                "filesys": 2,
                "query": 2,
            }
            assert grid.axes["paraphrase"] == ["p1", "p2", "p3", "p4", "p5"]
            assert grid.axes["distractors"] == ["2", "5"]
            assert grid.axes["temperature"] == ["0.7"]
            assert len(grid.axes["tool_names"]) >= 2
            assert set(grid.axes) >= {"resample", "order"}

    def test_full_names_no_model(self) -> None:
        manifest = load_manifest(ROOT / "experiments.yaml")
        assert [getattr(manifest.models[name], "model", "") for name in manifest.grid.models] == [None, None]
        assert manifest.budget.cap_usd <= 200
        assert manifest.budget.disk_gb <= 5

    def test_smoke_needs_no_network_and_has_a_known_crossover(self) -> None:
        manifest = load_manifest(ROOT / "experiments.yaml", "smoke")
        entries = [manifest.models[name] for name in manifest.grid.models]
        assert len(entries) >= 4
        strong, steady = manifest.models["scripted-strong"], manifest.models["scripted-steady"]
        assert all(isinstance(entry, ScriptedModel) for entry in entries)
        assert isinstance(strong, ScriptedModel)
        assert isinstance(steady, ScriptedModel)
        for difficulty in ("easy", "hard"):
            lead = strong.pass_rate[difficulty] - steady.pass_rate[difficulty]
            opaque = lead + strong.effects["tool_names"]["opaque"] - steady.effects["tool_names"]["opaque"]
            assert lead > 0 > opaque
