"""A benchmark: one task over the sample service, its suites, and what its evaluation goes by.

<library>/sample-service/                     the baseline that every task starts from
<library>/tasks/<ID>-<slug>/benchmark.yaml    the contract: `Contract`
                           /task.md           the exact prompt given to the agent
                           /paraphrases/      the same task in other words
                           /acceptance/       the suites that the evaluator owns
                           /known-good/       the files of a correct submission, laid over the baseline
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tasks_env.errors import UnknownName
from tasks_env.service.errors import EvidenceError
from tasks_env.service.trees import Bounds, Files, read_tree, tree_hash

LIBRARY = Path(__file__).resolve().parent
CONTRACT = "benchmark.yaml"
BASELINE = "sample-service"
BASELINE_TESTS = "tests"
CACHES = ("__pycache__", ".pytest_cache")
OWN_BOUNDS = Bounds(files=1000, file_bytes=1_000_000, total_bytes=5_000_000)
"""Of the evaluator's own trees."""

Check = Literal["starts", "baseline", "functional", "contract", "dependencies", "scope"]
"""What a criterion is checked by, in the order in which a failure decides the exit code."""
CHECKS: tuple[Check, ...] = ("starts", "baseline", "functional", "contract", "dependencies", "scope")
SUITES = ("baseline", "functional", "contract")

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Section(BaseModel):
    """Immutable, refuses unknown keys and loose types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Limits(Section):
    """What a submission may take. Seconds are wall time; the control decides whose fault it is that they ran out."""

    start_s: float = Field(gt=0, le=300)
    """From starting the service to its first answer."""
    request_s: float = Field(gt=0, le=300)
    suite_s: float = Field(gt=0, le=900)
    address_mb: int = Field(ge=128)
    """Address space of each process."""
    resident_mb: int = Field(ge=128)
    """Memory of all processes together."""
    processes: int = Field(ge=4)
    output_kb: int = Field(ge=1)
    """What a service may print in all."""
    written_mb: int = Field(ge=1)
    """All files together that a service may write; no single one can be larger."""
    entries: int = Field(ge=1)
    """Files and folders of a submission; and the two below: their sizes."""
    file_kb: int = Field(ge=1)
    total_kb: int = Field(ge=1)

    @property
    def bounds(self) -> Bounds:
        """How much of a submission is read."""
        return Bounds(files=self.entries, file_bytes=self.file_kb * 1000, total_bytes=self.total_kb * 1000)


class Criterion(Section):
    """One acceptance criterion of the task."""

    id: str = Field(pattern=r"^AC[1-9][0-9]?$")
    text: str = Field(min_length=1)
    check: Check
    tests: tuple[str, ...] = ()
    """Ids of the tests that decide it, for a suite: exactly these are run, and each must pass."""
    says: tuple[str, ...] = Field(min_length=1)
    """What every wording of the task must say in the one item of its list that states the criterion: regular
    expressions, without regard to case."""

    @field_validator("tests", "says", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


class Contract(Section):
    """benchmark.yaml."""

    schema_version: Literal[1]
    id: str = Field(pattern=r"^BE-[0-9]{3}$")
    title: str = Field(min_length=1)
    category: str = Field(min_length=1)
    prompt_file: str = Field(pattern=r"^[a-z][a-z0-9_]*\.md$")
    paraphrases: dict[str, str]
    """Level of the axis `paraphrase` → file."""
    evaluator_version: str = Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")
    """Raised with every change that could alter a verdict; the study's own version has nothing to do with it."""
    baseline_hash: Hash
    suite_hash: Hash
    """Of the acceptance suites."""
    allowed_production_paths: list[str] = Field(min_length=1)
    test_paths: list[str] = Field(min_length=1)
    ignored_paths: list[str]
    """Names of folders that no tree is compared by: caches. Everything else counts, whatever .gitignore says."""
    scratch_files_count_as_unrelated: bool
    dependency_manifests: list[str] = Field(min_length=1)
    importable: list[str]
    """Modules of the declared dependencies, and of what those always bring along."""
    own_modules: list[str]
    limits: Limits
    criteria: list[Criterion] = Field(min_length=1)
    verification: dict[str, int] = Field(min_length=1)
    """Case → the exit code that it must give; 1 stands for any of what an unsolved task gives: 10, 11, 12."""

    @field_validator("criteria")
    @classmethod
    def _sound(cls, criteria: list[Criterion]) -> list[Criterion]:
        ids = [criterion.id for criterion in criteria]
        if ids != [f"AC{number}" for number in range(1, len(ids) + 1)]:
            raise ValueError(f"criteria are numbered AC1, AC2, …; got {', '.join(ids)}")
        for criterion in criteria:
            if (criterion.check in SUITES) != bool(criterion.tests):
                raise ValueError(f"{criterion.id}: a suite has tests, and no other check has any")
        checks = {criterion.check for criterion in criteria}
        missing = {"starts", "baseline", "functional", "dependencies", "scope"} - checks
        if missing:
            raise ValueError(f"no criterion is checked by {', '.join(sorted(missing))}")
        tests = [test for criterion in criteria for test in criterion.tests]
        if len(set(tests)) < len(tests):
            raise ValueError("a test decides two criteria")
        return criteria


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as it lies on the disk, checked against its contract."""

    contract: Contract
    folder: Path
    library: Path

    @property
    def id(self) -> str:
        """`BE-002`."""
        return self.contract.id

    @property
    def acceptance(self) -> Path:
        """Folder of the suites."""
        return self.folder / "acceptance"

    @property
    def baseline_folder(self) -> Path:
        """Folder of the service that the task starts from."""
        return self.library / BASELINE

    @cached_property
    def baseline(self) -> Files:
        """The service that the task starts from."""
        return _own_tree(self.baseline_folder)

    @cached_property
    def known_good(self) -> Files:
        """A correct submission."""
        return {**self.baseline, **_own_tree(self.folder / "known-good")}

    @property
    def prompt(self) -> str:
        """task.md."""
        return _text(self.folder / self.contract.prompt_file)

    @property
    def paraphrases(self) -> dict[str, str]:
        """The other wordings by level."""
        return {level: _text(self.folder / file) for level, file in self.contract.paraphrases.items()}

    def tests_of(self, check: str) -> dict[str, str]:
        """Test id → criterion, for one suite."""
        return {test: each.id for each in self.contract.criteria if each.check == check for test in each.tests}

    def hashes(self) -> dict[str, str]:
        """Of the baseline and the suites as they lie there, by the names of the contract's fields."""
        return {"baseline_hash": tree_hash(self.baseline), "suite_hash": tree_hash(_own_tree(self.acceptance))}

    def check_evidence(self) -> None:
        """Refuse to judge by a baseline or suites that are not the registered ones.

        Raises:
            EvidenceError: says what differs.
        """
        for manifest in self.contract.dependency_manifests:
            if manifest not in self.baseline:
                raise EvidenceError(
                    f"{self.baseline_folder / manifest}: the baseline's manifest is missing, so no dependency could be "
                    "called new; restore it"
                )
        for name, found in self.hashes().items():
            registered = str(getattr(self.contract, name))
            if found != registered:
                raise EvidenceError(
                    f"{self.folder / CONTRACT}: {name} is {registered[:12]}…, but what lies there has {found[:12]}…; "
                    "restore the files, or register the new hash together with a new evaluator_version"
                )


def benchmark_ids(library: Path = LIBRARY) -> list[str]:
    """The ids of all benchmarks of a library."""
    return sorted(folder.name[:6] for folder in (library / "tasks").glob("BE-*") if folder.is_dir())


def load_benchmark(identity: str, library: Path = LIBRARY) -> Benchmark:
    """The benchmark called `identity`: its id, or its folder's name.

    Raises:
        UnknownName: there is none.
        EvidenceError: its contract is missing or malformed; the message has every failing field.
    """
    found = [
        folder
        for folder in sorted((library / "tasks").glob("BE-*"))
        if folder.is_dir() and identity in (folder.name, folder.name[:6])
    ]
    if len(found) != 1:
        raise UnknownName("benchmark", identity, benchmark_ids(library))
    contract = _contract(found[0] / CONTRACT)
    if contract.id != found[0].name[:6]:
        raise EvidenceError(f"{found[0] / CONTRACT}: id: {contract.id}, but the folder is called {found[0].name}")
    return Benchmark(contract, found[0], library)


def _contract(path: Path) -> Contract:
    try:
        document: Any = YAML(typ="safe", pure=True).load(_text(path))
    except (YAMLError, ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: not valid YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(document, Mapping):
        raise EvidenceError(f"{path}: expected a mapping of fields, got {type(document).__name__}")
    try:
        return Contract.model_validate(document)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise EvidenceError(f"{path}: {'; '.join(problems)}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EvidenceError(f"{path}: cannot be read: {reason}; restore it") from None


def _own_tree(folder: Path) -> Files:
    try:
        tree = read_tree(folder, CACHES, OWN_BOUNDS)
    except OSError as error:
        raise EvidenceError(f"{folder}: cannot be read: {error.strerror}; restore it") from None
    if tree.refused:
        path, reason = next(iter(tree.refused.items()))
        raise EvidenceError(f"{folder / path}: does not belong to the evaluator's files: {reason}; remove it")
    return tree.files
