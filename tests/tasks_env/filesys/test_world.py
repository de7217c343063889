"""The tools on the tree: what they do, what they refuse, and what they say."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from tasks_env.errors import ToolError
from tasks_env.families.filesys import world as limits
from tasks_env.families.filesys.goals import Files
from tasks_env.families.filesys.tools import TOOLS
from tasks_env.families.filesys.world import FileWorld
from tasks_env.naming import resolve
from tasks_env.session import Session, render
from tasks_env.tools import check_arguments
from tasks_env.types import JsonObject, Naming
from tests.tasks_env.filesys.levels import FAMILY, instance, start

TREE: Files = {
    "/config/app.ini": "[web]\nport = 80\n",
    "/notes/a.md": "first line\nTODO: one\n",
    "/notes/team/b.md": "TODO: two\nTODO: three and TODO: four\ntodo: five\n",
    "/readme.txt": "hello\n",
}


@pytest.fixture
def world() -> FileWorld:
    return FileWorld(TREE)


def files(world: FileWorld) -> object:
    return world.state()["files"]


def refusal(world: FileWorld, name: str, arguments: dict[str, object]) -> ToolError:
    before = world.state()
    with pytest.raises(ToolError) as caught:
        world.call(name, arguments)  # type: ignore[arg-type]
    assert world.state() == before
    assert len(caught.value.message) < 500
    return caught.value


def test_list_shows_one_level_with_full_paths(world: FileWorld) -> None:
    reply = world.call("list_files", {"path": "/"})
    assert reply.text.split("\n") == ["/config/", "/notes/", "/readme.txt"]
    assert reply.note == "(4 files at every level)"
    assert world.call("list_files", {"path": "/notes/"}).text.split("\n") == ["/notes/a.md", "/notes/team/"]


def test_recursive_list_shows_all_files(world: FileWorld) -> None:
    reply = world.call("list_files", {"path": "/", "recursive": True})
    assert reply.text.split("\n") == list(TREE)
    assert reply.note == "(4 files)"


def test_the_root_of_an_empty_tree_can_be_listed() -> None:
    assert FileWorld({}).call("list_files", {"path": "/"}).note == "(no files)"


def test_long_lists_and_searches_are_cut_and_say_so() -> None:
    many = FileWorld({f"/d/{n:03}.md": "same\n" for n in range(250)})
    listed = many.call("list_files", {"path": "/d"})
    assert len(listed.text.split("\n")) == limits.LIST_ROWS
    assert "the first 200 rows of 250" in listed.note
    found = many.call("search_files", {"text": "same"})
    assert len(found.text.split("\n")) == limits.SEARCH_ROWS
    assert "250 matching lines in 250 of 250 files; the first 60 rows of 250" in found.note
    long = FileWorld({"/a.md": "x" * 5000 + "\n"}).call("search_files", {"text": "x"})
    assert len(long.text) == limits.ROW_CHARS + 1


def test_read_gives_the_whole_text(world: FileWorld) -> None:
    assert world.call("read_file", {"path": "/notes/../config/./app.ini"}).text == TREE["/config/app.ini"]
    world.call("write_file", {"path": "/empty.md", "content": ""})
    assert world.call("read_file", {"path": "/empty.md"}).note == "(the file is empty)"


def test_search_is_literal_case_sensitive_and_counts_a_line_once(world: FileWorld) -> None:
    reply = world.call("search_files", {"text": "TODO: t", "path": "/notes"})
    assert reply.text.split("\n") == [
        "/notes/team/b.md:1: TODO: two",
        "/notes/team/b.md:2: TODO: three and TODO: four",
    ]
    assert reply.note == "(2 matching lines in 1 of 2 files)"
    assert world.call("search_files", {"text": "TODO"}).note == "(3 matching lines in 2 of 4 files)"
    assert world.call("search_files", {"text": "T.DO"}).note == "no line contains this text; 4 files searched"
    assert world.call("search_files", {"text": "port", "path": "/config/app.ini"}).text.endswith("2: port = 80")


def test_write_creates_folders_replaces_texts_and_stores_lf(world: FileWorld) -> None:
    assert world.call("write_file", {"path": "/x/y/z.md", "content": "a\r\nb\rc"}).text == "created /x/y/z.md (3 lines)"
    assert world.call("read_file", {"path": "/x/y/z.md"}).text == "a\nb\nc"
    assert world.call("write_file", {"path": "//readme.txt", "content": "a\n"}).text == "replaced /readme.txt (1 lines)"


def test_both_ways_of_writing_an_accent_name_one_file(world: FileWorld) -> None:
    world.call("write_file", {"path": "/cafe\u0301.md", "content": "1"})
    world.call("write_file", {"path": "/caf\u00e9.md", "content": "2"})
    assert world.call("list_files", {"path": "/"}).text.split("\n")[0] == "/café.md"
    assert world.call("read_file", {"path": "/cafe\u0301.md"}).text == "2"


def test_upper_and_lower_case_differ(world: FileWorld) -> None:
    error = refusal(world, "read_file", {"path": "/Readme.txt"})
    assert "did you mean '/readme.txt'?" in error.message
    world.call("move_file", {"source": "/readme.txt", "destination": "/README.txt"})
    assert world.call("read_file", {"path": "/README.txt"}).text == "hello\n"


def test_move_keeps_the_text_and_empty_folders_vanish(world: FileWorld) -> None:
    world.call("move_file", {"source": "/config/app.ini", "destination": "/old/app.ini"})
    assert "no file or folder '/config'" in refusal(world, "list_files", {"path": "/config"}).message
    assert world.call("read_file", {"path": "/old/app.ini"}).text == TREE["/config/app.ini"]
    world.call("move_file", {"source": "/readme.txt", "destination": "/readme.txt/inside.txt"})
    assert world.call("list_files", {"path": "/readme.txt"}).text == "/readme.txt/inside.txt"


def test_submit_ends_the_work(world: FileWorld) -> None:
    assert world.call("submit", {}).text == "submitted"
    assert world.submitted
    assert "has been submitted" in refusal(world, "delete_file", {"path": "/readme.txt"}).message


@pytest.mark.parametrize(
    ("name", "arguments", "argument", "reason"),
    [
        ("list_files", {"path": "/readme.txt"}, "path", "is a file; show its text with {tool:read_file}"),
        ("list_files", {"path": "notes"}, "path", "absolute"),
        ("list_files", {"path": "/nodes"}, "path", "did you mean '/notes'"),
        ("read_file", {"path": "/notes"}, "path", "is a folder, not a file; {tool:list_files}"),
        ("read_file", {"path": "/"}, "path", "'/' is a folder"),
        ("read_file", {"path": "/readme.txt/"}, "path", "leave out the slash"),
        ("read_file", {"path": "/team/b.md"}, "path", "did you mean '/notes/team/b.md'?"),
        ("search_files", {"text": "a\nb"}, "text", "single lines"),
        ("search_files", {"text": "a", "path": "/none"}, "path", "no file or folder"),
        ("write_file", {"path": "/notes", "content": ""}, "path", "names a folder"),
        ("write_file", {"path": "/new/", "content": ""}, "path", "names a folder"),
        ("write_file", {"path": "/", "content": ""}, "path", "names a folder"),
        ("write_file", {"path": "/readme.txt/x", "content": ""}, "path", "'/readme.txt' is a file"),
        ("write_file", {"path": "/a.md", "content": "\ud800"}, "content", "lone surrogate"),
        ("write_file", {"path": "/a.md", "content": "x" * 20_001}, "content", "at most 20000"),
        ("move_file", {"source": "/none.md", "destination": "/b.md"}, "source", "no file '/none.md'"),
        ("move_file", {"source": "/notes", "destination": "/b"}, "source", "is a folder"),
        ("move_file", {"source": "/readme.txt", "destination": "/notes"}, "destination", "names a folder"),
        ("move_file", {"source": "/readme.txt", "destination": "/notes/a.md"}, "destination", "never replaced"),
        ("move_file", {"source": "/readme.txt", "destination": "/readme.txt"}, "destination", "already lies"),
        ("delete_file", {"path": "/notes/"}, "path", "is a folder"),
        ("delete_file", {"path": "/x"}, "path", "no file '/x'"),
    ],
)
def test_what_cannot_be_done_changes_nothing_and_names_the_argument(
    world: FileWorld, name: str, arguments: dict[str, object], argument: str, reason: str
) -> None:
    error = refusal(world, name, arguments)
    assert error.argument == argument
    assert reason in error.message


def test_the_tree_cannot_grow_without_bound(world: FileWorld) -> None:
    for number in range(limits.FILE_LIMIT - len(TREE)):
        world.call("write_file", {"path": f"/f/{number}", "content": ""})
    assert "is full" in refusal(world, "write_file", {"path": "/f/more", "content": ""}).message
    heavy = FileWorld({f"/{n}": "x" * limits.TEXT_CHARS for n in range(limits.TREE_CHARS // limits.TEXT_CHARS)})
    assert "is full" in refusal(heavy, "write_file", {"path": "/one-more", "content": "x"}).message
    heavy.call("write_file", {"path": "/0", "content": "less"})


def test_schemas_are_flat_described_and_checked_before_the_tool_runs() -> None:
    for spec in TOOLS:
        assert len(spec.description) > 20
        for schema in spec.parameters["properties"].values():
            assert schema["type"] in ("string", "boolean")
            assert schema["description"]
    search = next(spec for spec in TOOLS if spec.name == "search_files")
    with pytest.raises(ToolError) as caught:
        check_arguments(search, {"text": ""})
    assert caught.value.argument == "text"
    assert TOOLS[-1].name == "submit"


def test_path_rules_are_told_to_the_agent() -> None:
    told = next(spec.description for spec in TOOLS if spec.name == "list_files")
    for rule in ("absolute", "upper and lower case differ", "..", "slashes", "normal form C", "root"):
        assert rule in told


def test_no_look_at_a_start_tree_is_cut() -> None:
    for level, seed in [("largest", seed) for seed in range(4)] + [("hard", seed) for seed in range(10)]:
        task = instance(level, seed)
        session = Session(task, render(task))
        looks: list[tuple[str, JsonObject]] = [("list_files", {"path": "/", "recursive": True})]
        looks += [("read_file", {"path": path}) for path in start(task)]
        looks += [(call.name, call.arguments) for call in FAMILY.reference(task) if call.name == "search_files"]
        for name, arguments in looks:
            result = session.call(name, arguments)
            assert not result.is_error
            assert "[cut:" not in result.content
            assert "rows of" not in result.content


def test_every_refusal_names_the_argument_that_is_wrong() -> None:
    task = instance("easy", 0)
    session = Session(task, render(task))
    for spec in TOOLS[:-1]:
        right: JsonObject = dict.fromkeys(spec.parameters["required"], next(iter(start(task))))
        for name in spec.parameters["properties"]:
            wrong: list[JsonValue] = [7, None, [], "\ud800"]
            if name not in ("text", "content", "recursive"):
                wrong += ["/a\x00b", "a.md", "/..", "/" + "x" * 300]
            for value in wrong:
                result = session.call(spec.name, {**right, name: value})
                assert result.is_error
                assert result.content.startswith(f"error in argument '{name}': "), (spec.name, name, value)
                assert len(result.content) < 600
    assert session.final_state().data == task.world


def test_data_in_results_is_never_resolved() -> None:
    task = instance("easy", 0)
    session = Session(task, render(task))
    session.call("write_file", {"path": "/{tool:submit}.md", "content": "{arg:path}\n"})
    assert session.call("read_file", {"path": "/{tool:submit}.md"}).content == "{arg:path}\n"
    found = session.call("search_files", {"text": "{arg:path}"}).content
    assert found.startswith("/{tool:submit}.md:1: {arg:path}\n")
    missing = session.call("read_file", {"path": "/{tool:submit}/{arg:path}"})
    assert missing.is_error
    assert "/path" not in missing.content


NAMES = st.sampled_from(["a", "b", "c.md", "d.md"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
CALLS = st.one_of(
    st.tuples(st.just("write_file"), st.fixed_dictionaries({"path": PATHS, "content": st.text("xy\n", max_size=4)})),
    st.tuples(st.just("move_file"), st.fixed_dictionaries({"source": PATHS, "destination": PATHS})),
    st.tuples(st.just("delete_file"), st.fixed_dictionaries({"path": PATHS})),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(CALLS, max_size=14))
def test_any_sequence_of_changes_acts_like_a_dictionary_and_no_path_is_file_and_folder(
    calls: list[tuple[str, dict[str, str]]],
) -> None:
    world = FileWorld({})
    model: dict[str, str] = {}
    for name, arguments in calls:
        try:
            world.call(name, dict(arguments))
        except ToolError:
            assert world.state() == {"files": dict(sorted(model.items()))}
            continue
        if name == "write_file":
            model[arguments["path"]] = arguments["content"]
        elif name == "move_file":
            model[arguments["destination"]] = model.pop(arguments["source"])
        else:
            del model[arguments["path"]]
        assert world.state() == {"files": dict(sorted(model.items()))}
        assert not [one for one in model for other in model if other.startswith(one + "/")]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([spec.name for spec in TOOLS]),
    st.dictionaries(
        st.sampled_from(["path", "text", "content", "source", "destination", "recursive"]),
        st.one_of(st.text(max_size=20), st.text(max_size=20).map(lambda text: "/" + text), st.booleans()),
    ),
)
def test_any_arguments_end_in_a_reply_or_a_tool_error(name: str, arguments: dict[str, str | bool]) -> None:
    spec = next(spec for spec in TOOLS if spec.name == name)
    world = FileWorld(TREE)
    try:
        check_arguments(spec, dict(arguments))
        reply = world.call(name, dict(arguments))
    except ToolError:
        assert not world.submitted
        return
    assert resolve(reply.note, Naming()) == reply.note


def test_a_search_that_finds_every_line_of_a_full_tree_takes_little_memory() -> None:
    """A row repeats its path, so that all rows together would be many times as large as the tree."""
    folder = "/" + "\N{GRINNING FACE}" * 200
    crowded = FileWorld({f"{folder}/{number}": "a\n" * 10_000 for number in range(19)})
    tracemalloc.start()
    try:
        reply = crowded.call("search_files", {"text": "a"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reply.note == "(190000 matching lines in 19 of 19 files; the first 60 rows of 190000 are shown)"
    assert len(reply.text.split("\n")) == limits.SEARCH_ROWS
    assert peak < 10_000_000
