"""The tools of the file system by canonical names, as an agent is told about them."""

from __future__ import annotations

from tasks_env.families.filesys.paths import RULES
from tasks_env.tools import parameter, tool
from tasks_env.types import ToolSpec

CLOSING_TOOL = "submit"

TOOLS: tuple[ToolSpec, ...] = (
    tool(
        "list_files",
        "List a folder: its files and folders by full path; the path of a folder ends with a slash. " + RULES,
        {"path": parameter("string", "Absolute path of the folder; / is the root.")},
        {
            "recursive": parameter(
                "boolean", "True: all files in the folder and its subfolders. False, the default: one level."
            )
        },
    ),
    tool(
        "read_file",
        "Show the whole text of a file.",
        {"path": parameter("string", "Absolute path of the file.")},
    ),
    tool(
        "search_files",
        "Find the lines that contain a text, in one file or in all files of a folder and its subfolders."
        " The text is taken literally, and upper and lower case differ. Each line found is shown once, as"
        " path:line number: line.",
        {"text": parameter("string", "What a line must contain; no line breaks.", minLength=1)},
        {"path": parameter("string", "Absolute path of the file or folder to look in; default: / (everything).")},
    ),
    tool(
        "write_file",
        "Create a file, or replace the whole text of an existing one. Missing folders are created."
        " Line breaks are stored as LF; whether the last line ends with one does not matter.",
        {
            "path": parameter("string", "Absolute path of the file."),
            "content": parameter("string", "The whole new text of the file."),
        },
    ),
    tool(
        "move_file",
        "Move or rename one file; its text stays the same. Missing folders are created; an existing"
        " file is never replaced. A folder that has no files left no longer exists.",
        {
            "source": parameter("string", "Absolute path of the file to move."),
            "destination": parameter("string", "Absolute path that the file is to have, file name included."),
        },
    ),
    tool(
        "delete_file",
        "Delete one file for good. A folder that has no files left no longer exists.",
        {"path": parameter("string", "Absolute path of the file.")},
    ),
    tool(
        CLOSING_TOOL,
        "Say that the work is done: the files are judged as they are now, and nothing can be changed afterwards.",
        {},
    ),
)
