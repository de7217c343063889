"""What each kind of goal means: trees written out by hand, for both solvers."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from tasks_env.errors import GenerationError
from tasks_env.families.filesys.effects import Effects, apply, effects
from tasks_env.families.filesys.goals import Files, Goal, Spec, tree
from tasks_env.families.filesys.readings import ambiguous, wrong_readings
from tasks_env.families.filesys.second_solver import solve

TREE: Files = {
    "/data/orders.csv": "id,city,status,previous\n1,Oslo,open,closed\n2,Riga,reopened,open\n"
    "3,Cork,Open,void\n4,Riga,open,open\n",
    "/logs/day.log": "ERROR a: x after ERROR in b\nINFO a: no error\nERROR b: y\n",
    "/logs/old/night.log": "ERROR c: z\nINFO c: fine\n",
    "/notes/a.md": "Head\nTODO: first\n- the TODO: list\ntodo: small\n",
    "/notes/team/b.md": "Head\nReference: 10\nTODO: second\nTODO: first\n",
    "/notes/team/c.md": "Reference: 10-B\n",
    "/notes/team/d.md.tmp": "x\n",
    "/notes2/h.md": "TODO: fourth\n",
    "/other/e.md": "Reference: 10\nTODO: third\n",
    "/other/f.md.tmp": "y\n",
    "/notes/g.tmp.md": "z\n",
    "/set/app.ini": "[web]\nport = 80\nmode = live\n[db]\n# port = 70\nport = 50\nmode = trial\n",
    "/set/flat.ini": "port_web = 1\nport = 2\n",
}
CHECK: dict[str, JsonValue] = {
    "path": "/set/app.ini",
    "section": "db",
    "key": "port",
    "operator": "at_least",
    "value": "50",
}
YES: dict[str, JsonValue] = {"kind": "delete", "path": "/other/e.md"}
NO: dict[str, JsonValue] = {"kind": "create", "path": "/no.md", "lines": ["no"]}

CASES: list[tuple[dict[str, JsonValue], Effects]] = [
    ({"kind": "create", "path": "/n/x.md", "lines": ["a", "b"]}, {"/n/x.md": "a\nb\n"}),
    (
        {"kind": "move", "source": "/set/flat.ini", "destination": "/x/y.ini"},
        {"/set/flat.ini": None, "/x/y.ini": "port_web = 1\nport = 2\n"},
    ),
    ({"kind": "delete", "path": "/set/flat.ini"}, {"/set/flat.ini": None}),
    (
        {"kind": "edit", "path": "/set/app.ini", "section": "db", "key": "port", "value": "51"},
        {"/set/app.ini": "[web]\nport = 80\nmode = live\n[db]\n# port = 70\nport = 51\nmode = trial\n"},
    ),
    (
        {"kind": "edit", "path": "/set/app.ini", "section": "web", "key": "mode", "value": "trial"},
        {"/set/app.ini": "[web]\nport = 80\nmode = trial\n[db]\n# port = 70\nport = 50\nmode = trial\n"},
    ),
    (
        {"kind": "edit", "path": "/set/flat.ini", "section": None, "key": "port", "value": "9"},
        {"/set/flat.ini": "port_web = 1\nport = 9\n"},
    ),
    ({"kind": "append", "path": "/notes/team/c.md", "line": "end"}, {"/notes/team/c.md": "Reference: 10-B\nend\n"}),
    (
        {"kind": "count", "scope": "/logs/day.log", "recursive": False, "text": "ERROR", "destination": "/n.txt"},
        {"/n.txt": "2\n"},
    ),
    (
        {"kind": "count", "scope": "/logs", "recursive": True, "text": "ERROR", "destination": "/n.txt"},
        {"/n.txt": "3\n"},
    ),
    (
        {
            "kind": "count_rows",
            "path": "/data/orders.csv",
            "column": "status",
            "value": "open",
            "destination": "/n.txt",
        },
        {"/n.txt": "2\n"},
    ),
    (
        {"kind": "collect", "directory": "/notes", "prefix": "TODO:", "destination": "/t.txt"},
        {"/t.txt": "TODO: first\nTODO: second\nTODO: first\n"},
    ),
    (
        {"kind": "find", "directory": "/notes", "line": "Reference: 10", "destination": "/found"},
        {"/notes/team/b.md": None, "/found/b.md": "Head\nReference: 10\nTODO: second\nTODO: first\n"},
    ),
    ({"kind": "purge", "directory": "/notes", "suffix": ".tmp"}, {"/notes/team/d.md.tmp": None}),
    ({"kind": "conditional", "check": CHECK, "then": YES, "otherwise": NO}, {"/other/e.md": None}),
    (
        {"kind": "conditional", "check": {**CHECK, "operator": "more_than"}, "then": YES, "otherwise": NO},
        {"/no.md": "no\n"},
    ),
    (
        {"kind": "conditional", "check": {**CHECK, "value": "51"}, "then": YES, "otherwise": NO},
        {"/no.md": "no\n"},
    ),
    (
        {
            "kind": "conditional",
            "check": {**CHECK, "key": "mode", "operator": "is", "value": "trial"},
            "then": YES,
            "otherwise": NO,
        },
        {"/other/e.md": None},
    ),
    (
        {
            "kind": "conditional",
            "check": {**CHECK, "section": "web", "key": "mode", "operator": "is", "value": "trial"},
            "then": YES,
            "otherwise": NO,
        },
        {"/no.md": "no\n"},
    ),
]


def parsed(goal: dict[str, JsonValue]) -> Goal:
    return Spec.model_validate({"goals": [goal]}).goals[0]


@pytest.mark.parametrize(("goal", "changes"), CASES)
def test_both_solvers_do_what_was_worked_out_by_hand(goal: dict[str, JsonValue], changes: Effects) -> None:
    assert effects(parsed(goal), TREE) == changes
    merged = {**TREE, **changes}
    after = {path: text for path, text in sorted(merged.items()) if text is not None}
    assert apply(changes, TREE) == after
    assert solve({"goals": [goal]}, TREE) == after


@pytest.mark.parametrize(
    ("goal", "counts"),
    [
        (
            {"kind": "count", "scope": "/logs", "recursive": True, "text": "ERROR", "destination": "/n"},
            {"ignoring case": 4, "by occurrences": 4, "by files": 2, "anywhere": 3, "without subfolders": 2},
        ),
        (
            {
                "kind": "count_rows",
                "path": "/data/orders.csv",
                "column": "status",
                "value": "open",
                "destination": "/n",
            },
            {
                "anywhere in the row": 3,
                "in any cell": 3,
                "as part of the cell": 3,
                "ignoring case": 3,
                "all rows": 4,
            },
        ),
    ],
)
def test_misread_counts_are_those_worked_out_by_hand(goal: dict[str, JsonValue], counts: dict[str, int]) -> None:
    assert wrong_readings(parsed(goal), TREE) == {name: {"/n": f"{n}\n"} for name, n in counts.items()}


def test_misread_collections_are_those_worked_out_by_hand() -> None:
    goal = parsed({"kind": "collect", "directory": "/notes", "prefix": "TODO:", "destination": "/t"})
    assert {name: changes["/t"] for name, changes in wrong_readings(goal, TREE).items()} == {
        "contained anywhere": "TODO: first\n- the TODO: list\nTODO: second\nTODO: first\n",
        "ignoring case": "TODO: first\ntodo: small\nTODO: second\nTODO: first\n",
        "from the whole tree": "TODO: first\nTODO: second\nTODO: first\nTODO: fourth\nTODO: third\n",
        "each line once": "TODO: first\nTODO: second\n",
        "without the prefix": "first\nsecond\nfirst\n",
        "sorted by line": "TODO: first\nTODO: first\nTODO: second\n",
        "without subfolders": "TODO: first\n",
    }


def test_misread_names_and_settings_are_those_worked_out_by_hand() -> None:
    purge = wrong_readings(parsed({"kind": "purge", "directory": "/notes", "suffix": ".tmp"}), TREE)
    assert purge == {
        "contained anywhere in the name": {"/notes/g.tmp.md": None, "/notes/team/d.md.tmp": None},
        "from the whole tree": {"/notes/team/d.md.tmp": None, "/other/f.md.tmp": None},
        "without subfolders": {},
    }
    edit = parsed({"kind": "edit", "path": "/set/flat.ini", "section": None, "key": "port", "value": "9"})
    assert wrong_readings(edit, TREE) == {
        "in whichever section comes first": {},
        "in the first line that mentions the key": {"/set/flat.ini": "port_web = 9\nport = 2\n"},
        "as a new line at the end": {"/set/flat.ini": "port_web = 1\nport = 2\nport = 9\n"},
        "without the spaces": {"/set/flat.ini": "port_web = 1\nport=9\n"},
    }
    find = parsed({"kind": "find", "directory": "/notes", "line": "Reference: 10", "destination": "/f"})
    misread = wrong_readings(find, TREE)
    assert set(misread["as part of a line"]) == {"/notes/team/b.md", "/f/b.md", "/notes/team/c.md", "/f/c.md"}
    assert set(misread["from the whole tree"]) == {"/notes/team/b.md", "/f/b.md", "/other/e.md", "/f/e.md"}


@pytest.mark.parametrize(
    ("goal", "change", "reason"),
    [
        (
            {"kind": "count", "scope": "/logs/day.log", "recursive": False, "text": "ERROR", "destination": "/n"},
            {"/logs/day.log": "ERROR a: x after ERROR in b\nERROR b: y\n"},
            "ignoring case",
        ),
        (
            {"kind": "count", "scope": "/logs/day.log", "recursive": False, "text": "ERROR", "destination": "/n"},
            {"/logs/day.log": "INFO a: no error\nERROR b: y\n"},
            "by occurrences",
        ),
        (
            {"kind": "collect", "directory": "/notes", "prefix": "TODO:", "destination": "/t"},
            {"/notes/a.md": "TODO: zero\n- the TODO: list\ntodo: small\n"},
            "each line once",
        ),
        (
            {"kind": "collect", "directory": "/notes", "prefix": "TODO:", "destination": "/t"},
            {"/notes/team-b/h.md": "TODO: x\n"},
            "order of paths",
        ),
        ({"kind": "purge", "directory": "/notes", "suffix": ".tmp"}, {"/other/f.md.tmp": None}, "from the whole tree"),
        (
            {"kind": "find", "directory": "/notes", "line": "Reference: 10", "destination": "/f"},
            {"/notes/team/c.md": "Reference: 11\n"},
            "as part of a line",
        ),
        (
            {"kind": "conditional", "check": CHECK, "then": YES, "otherwise": NO},
            {},
            "in whichever section comes first",
        ),
    ],
)
def test_a_tree_that_cannot_tell_two_readings_apart_is_objected_to(
    goal: dict[str, JsonValue], change: Effects, reason: str
) -> None:
    assert reason in str(ambiguous(parsed(goal), apply(change, TREE)))


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ({"kind": "create", "path": "/set/app.ini", "lines": ["x"]}, "in use"),
        ({"kind": "move", "source": "/none", "destination": "/x"}, "no file"),
        ({"kind": "move", "source": "/set/app.ini", "destination": "/set/flat.ini"}, "in use"),
        ({"kind": "delete", "path": "/none"}, "nothing to do"),
        ({"kind": "edit", "path": "/set/app.ini", "section": "db", "key": "port", "value": "50"}, "nothing to do"),
        ({"kind": "edit", "path": "/set/app.ini", "section": "db", "key": "zone", "value": "1"}, "0 times"),
        ({"kind": "find", "directory": "/notes", "line": "Head", "destination": "/f"}, "2 files"),
        ({"kind": "purge", "directory": "/notes", "suffix": ".bak"}, "nothing to do"),
        ({"kind": "conditional", "check": {**CHECK, "key": "x"}, "then": YES, "otherwise": NO}, "no setting x"),
    ],
)
def test_goals_that_do_not_fit_the_tree_are_refused(goal: dict[str, JsonValue], reason: str) -> None:
    with pytest.raises(GenerationError, match=reason):
        effects(parsed(goal), TREE)


def test_the_second_solver_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        solve({"goals": [{"kind": "dance"}]}, TREE)
    with pytest.raises(FileExistsError):
        solve({"goals": [{"kind": "move", "source": "/set/app.ini", "destination": "/set/flat.ini"}]}, TREE)
    with pytest.raises(ValueError, match="found 0 times"):
        solve({"goals": [{"kind": "edit", "path": "/set/app.ini", "section": None, "key": "x", "value": "1"}]}, TREE)


def test_only_a_mapping_of_texts_is_a_tree() -> None:
    assert tree({"/a": "x"}) == {"/a": "x"}
    bad: list[JsonValue] = [None, [], "x", {"/a": 1}, {"/a": None}]
    for value in bad:
        with pytest.raises(TypeError):
            tree(value)
