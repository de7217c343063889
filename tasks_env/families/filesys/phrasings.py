"""The base wording and five paraphrases of every goal: data, filled in by `wording`.

A clause starts with a small letter and has no full stop, so that it can stand alone or in a branch of a
condition. Paths and keys stand in backticks, literal text in double quotes, so that no punctuation can be
taken for data.
"""

from __future__ import annotations

from tasks_env.types import Frozen


class Phrasing(Frozen):
    """One way to word a task."""

    one: str
    """The frame of a task with one goal, `{goals}`."""
    many: str
    """The frame of a task with several goals."""
    item: str
    """One goal of several: `{number}` and `{goal}`."""
    clauses: dict[str, str]
    """Kind of goal → clause."""
    one_line: str
    many_lines: str
    joiner: str
    setting: str
    sectioned: str
    file: str
    folder: str
    checks: dict[str, str]
    """Operator → what a setting's value is compared with."""


BASE = Phrasing(
    one="You work in a file system, through the tools. {goals}\n\nEvery other file must stay exactly as"
    " it is, and no other file may be added. A newline at the end of a file makes no difference."
    " When you are done, call {{tool:submit}}.",
    many="You work in a file system, through the tools. Reach all of these goals; they do not depend"
    " on one another:\n\n{goals}\n\nEvery other file must stay exactly as it is, and no other file"
    " may be added. A newline at the end of a file makes no difference. When you are done, call"
    " {{tool:submit}}.",
    item="{number}. {goal}",
    clauses={
        "create": "create the file `{path}` with exactly {lines}",
        "move": "move the file `{source}` so that its full path is `{destination}`; its text does not change",
        "delete": "delete the file `{path}`",
        "edit": "in the file `{path}`, change the value of {setting} to `{value}`; keep the rest of the file,"
        " spacing included, as it is",
        "append": 'add the line "{line}" to the end of the file `{path}`, after everything that is already there',
        "count": 'count the lines that contain the text "{text}" in {where}, and write only that number, in'
        " digits, to the new file `{destination}`; upper and lower case differ, and a line counts"
        " once even if it contains the text several times",
        "count_rows": 'count the rows of the CSV file `{path}` whose column `{column}` is exactly "{value}"'
        " (upper and lower case differ), and write only that number, in digits, to the new"
        " file `{destination}`",
        "collect": 'copy every line that starts with "{prefix}" (upper and lower case differ) from the'
        " files in the folder `{directory}` and its subfolders to the new file"
        " `{destination}`: whole lines, repeated ones as often as they occur, sorted by the"
        " full path of their file from A to Z and within a file in the order in which they"
        " stand",
        "find": "find the only file in the folder `{directory}` or its subfolders that has a line which is"
        ' exactly "{line}", and move it directly into the folder `{destination}`; its name and text'
        " do not change",
        "purge": 'delete every file in the folder `{directory}` and its subfolders whose name ends with "{suffix}"',
        "conditional": "look up {setting} in the file `{path}` (lines that start with # are comments). If"
        " its value {check}: {then}. Otherwise: {otherwise}",
    },
    one_line="this one line: {lines}",
    many_lines="these {count} lines, in this order: {lines}",
    joiner=", ",
    setting="the setting `{key}`",
    sectioned="the setting `{key}` in the section `[{section}]`",
    file="the file `{scope}`",
    folder="the files in the folder `{scope}` and its subfolders",
    checks={
        "is": "is `{value}`",
        "at_least": "is at least `{value}` (`{value}` included)",
        "more_than": "is more than `{value}` (`{value}` itself is not)",
    },
)

TERSE = Phrasing(
    one="Task in a file tree (use the tools): {goals}.\nTouch nothing else; add nothing else. Final"
    " newlines: ignored.\nThen {{tool:submit}}.",
    many="Tasks in a file tree (use the tools), in any order:\n{goals}\nTouch nothing else; add nothing"
    " else. Final newlines: ignored.\nThen {{tool:submit}}.",
    item="- {goal}",
    clauses={
        "create": "new file `{path}`, {lines}",
        "move": "`{source}` -> `{destination}` (full new path, same text)",
        "delete": "remove file `{path}`",
        "edit": "`{path}`: {setting} = `{value}`; rest of the file untouched, spacing too",
        "append": '`{path}`: append as last line "{line}", keep the lines before it',
        "count": 'number of lines containing "{text}" in {where} -> new file `{destination}`, digits only'
        " (case-sensitive; one count per line, however many hits in it)",
        "count_rows": 'number of rows of CSV `{path}` with column `{column}` exactly "{value}"'
        " (case-sensitive) -> new file `{destination}`, digits only",
        "collect": 'lines starting with "{prefix}" (case-sensitive) in files under `{directory}`, any'
        " level -> new file `{destination}`; whole lines, keep repeats, order: full file path"
        " A-Z, then position in the file",
        "find": 'the single file under `{directory}`, any level, with a line equal to "{line}" -> directly'
        " into folder `{destination}`, same name, same text",
        "purge": 'under `{directory}`, any level: remove all files with names ending in "{suffix}"',
        "conditional": "`{path}` (# lines are comments): {setting} {check}? yes: {then}; no: {otherwise}",
    },
    one_line="sole line {lines}",
    many_lines="exactly {count} lines in this order: {lines}",
    joiner=" then ",
    setting="key `{key}`",
    sectioned="section `[{section}]`, key `{key}`",
    file="file `{scope}`",
    folder="files under `{scope}`, any level",
    checks={
        "is": "equal to `{value}`",
        "at_least": ">= `{value}`",
        "more_than": "> `{value}`",
    },
)

POLITE = Phrasing(
    one="Hello! I need a hand with some files, which you can reach with the tools. Could you please"
    " {goals}?\n\nPlease don't add any further file, and don't alter any of the others. It doesn't"
    " matter whether a file ends with a newline. Once it's done, please call {{tool:submit}} so"
    " that I know. Thank you!",
    many="Hello! I need a hand with some files, which you can reach with the tools. Could you please"
    " do the following for me, in whatever order you like?\n\n{goals}\n\nPlease don't add any further"
    " file, and don't alter any of the others. It doesn't matter whether a file ends with a"
    " newline. Once it's all done, please call {{tool:submit}} so that I know. Thank you!",
    item="({number}) Could you {goal}?",
    clauses={
        "create": "put a new file at `{path}` that holds {lines}, and nothing more",
        "move": "give the file that is now at `{source}` the full path `{destination}`, with its text just as it is",
        "delete": "get rid of the file `{path}`",
        "edit": "set {setting} to `{value}` in `{path}`, without touching anything else in that file, not"
        " even the spacing",
        "append": 'put one more line below all the others in `{path}`, namely "{line}", and keep those others',
        "count": 'tell me how many lines of {where} have "{text}" in them, by putting the number in digits,'
        " and nothing more, into a new file `{destination}` (capitals and small letters are different"
        " to me, and a line with more than one hit is still one line)",
        "count_rows": "tell me in how many rows of the CSV file `{path}` the column `{column}` says exactly"
        ' "{value}", capitals and small letters being different, by putting the number in digits, and'
        " nothing more, into a new file `{destination}`",
        "collect": 'make a new file `{destination}` out of all the lines that begin with "{prefix}" (written'
        " just so, capitals and all) in the files of the folder `{directory}`, including its"
        " subfolders, with each line complete, with repeats left in, going through the files by full"
        " path from A to Z and through each file from top to bottom",
        "find": "look through the folder `{directory}`, including its subfolders, for the one file in which"
        ' "{line}" is a line of its own, and move that file directly into the folder `{destination}`'
        " with the same name and text",
        "purge": 'get rid of all files with a name that ends in "{suffix}" in the folder `{directory}`,'
        " including its subfolders",
        "conditional": "check {setting} in `{path}`, where lines with # in front are just comments, and then,"
        " provided that its value {check}, {then}; but if that is not so, {otherwise}",
    },
    one_line="just the line {lines}",
    many_lines="{count} lines, which are, from first to last, {lines}",
    joiner=" and then ",
    setting="the entry `{key}`",
    sectioned="the entry `{key}` under the heading `[{section}]`",
    file="the file `{scope}`",
    folder="all files in the folder `{scope}`, including its subfolders,",
    checks={
        "is": "reads `{value}`",
        "at_least": "is `{value}` or higher",
        "more_than": "is higher than `{value}`, not just equal to it",
    },
)

FORMAL = Phrasing(
    one="The following rules apply to this assignment. The work is carried out on a file"
    " system by means of the tools provided. Only what the assignment calls for may change: all"
    " remaining files shall be left unmodified and no additional files shall be left behind. The"
    " presence or absence of newlines at the end of a file is not assessed. The work counts as"
    " finished when {{tool:submit}} has been called.\n\nAssignment: it is required to {goals}.",
    many="The following rules apply to this assignment. The work is carried out on a file"
    " system by means of the tools provided. Only what the assignment calls for may change: all"
    " remaining files shall be left unmodified and no additional files shall be left behind. The"
    " presence or absence of newlines at the end of a file is not assessed. The parts are"
    " independent of each other. The work counts as finished when {{tool:submit}} has been"
    " called.\n\n{goals}",
    item="Part {number}: it is required to {goal}.",
    clauses={
        "create": "establish a file whose path is `{path}` and whose complete content consists of {lines}",
        "move": "relocate the file stored under `{source}`, with its content unmodified, to the full path"
        " `{destination}`",
        "delete": "remove the file stored under `{path}`",
        "edit": "assign the value `{value}` to {setting} of the configuration file `{path}`, all other"
        " content of which, including its spacing, shall be preserved",
        "append": "extend the file `{path}`, the present content of which shall be preserved, by a final line"
        ' reading "{line}"',
        "count": 'determine the number of lines in which the character sequence "{text}" occurs, with letter'
        " case being significant and any line with several occurrences being counted a single time,"
        " within {where}, and record this number alone, as decimal digits, in a newly created file"
        " `{destination}`",
        "count_rows": "determine, for the CSV file `{path}`, the number of rows whose entry in the column"
        ' `{column}` is identical to "{value}", with letter case being significant, and record this'
        " number alone, as decimal digits, in a newly created file `{destination}`",
        "collect": "compile in a newly created file `{destination}` all lines, in full and including any"
        ' repetitions, which begin with "{prefix}", with letter case being significant, and which are'
        " contained in files located at any level beneath the folder `{directory}`; files shall be"
        " taken in ascending alphabetical order of their full paths, and the lines of a file in their"
        " original order",
        "find": "identify, among the files located at any level beneath the folder `{directory}`, the one"
        ' file that has a line identical in its entirety to "{line}", and relocate it, with name and'
        " content unmodified, directly to the folder `{destination}`",
        "purge": "remove, at any level beneath the folder `{directory}`, each file whose name has the ending"
        ' "{suffix}"',
        "conditional": "examine the file `{path}`, in which lines beginning with # are comments, and, in the"
        " event that the value of {setting} {check}, to {then}; in any other event, to"
        " {otherwise}",
    },
    one_line="the single line {lines}",
    many_lines="the following {count} lines in the given order: {lines}",
    joiner="; ",
    setting="the parameter `{key}`",
    sectioned="the parameter `{key}` of section `[{section}]`",
    file="the file `{scope}`",
    folder="the files located at any level beneath the folder `{scope}`",
    checks={
        "is": "equals `{value}`",
        "at_least": "is greater than or equal to `{value}`",
        "more_than": "is strictly greater than `{value}`",
    },
)

OUTCOME = Phrasing(
    one="This is how the file system should look when you call {{tool:submit}} at the end (the tools"
    " let you see and change it): {goals}. Apart from that it should look the way it does now: no"
    " file more, no file changed. Whether a file's last line ends with a newline is all the same.",
    many="This is how the file system should look when you call {{tool:submit}} at the end (the tools"
    " let you see and change it), with each point standing by itself:\n{goals}\nApart from that it"
    " should look the way it does now: no file more, no file changed. Whether a file's last line"
    " ends with a newline is all the same.",
    item="* {goal}.",
    clauses={
        "create": "there is a new file `{path}`, and all it contains is {lines}",
        "move": "what is now the file `{source}` has the full path `{destination}` and the same text as before",
        "delete": "the file `{path}` no longer exists",
        "edit": "{setting} in `{path}` has the value `{value}`, and everything else in that file, spacing"
        " included, is as before",
        "append": '`{path}` has one more line than now, the very last one: "{line}"',
        "count": "a new file `{destination}` contains a number in digits and nothing more, namely how many"
        ' lines with "{text}" in them (same capitals and small letters) there are in {where}, where a'
        " line is one line no matter how often the text is in it",
        "count_rows": "a new file `{destination}` contains a number in digits and nothing more, namely how"
        ' many rows of the CSV file `{path}` have exactly "{value}" (same capitals and small'
        " letters) in the column `{column}`",
        "collect": 'a new file `{destination}` contains, uncut, each line with "{prefix}" (same capitals and'
        " small letters) at its start that is found in a file anywhere inside the folder"
        " `{directory}`, subfolders too; a line found twice is there twice, files with an"
        " alphabetically earlier full path come first, and lines of one file stay in sequence",
        "find": "the one file anywhere inside the folder `{directory}`, subfolders too, that has a line reading"
        ' "{line}", with nothing before or after it, lies directly in the folder `{destination}` instead,'
        " its name and text as before",
        "purge": "anywhere inside the folder `{directory}`, subfolders too, no file with a name ending in"
        ' "{suffix}" is left',
        "conditional": "it depends on {setting} in `{path}` (what follows a # at the start of a line is a"
        " comment): if the value {check}, then {then}; if it does not fit that, then"
        " {otherwise}",
    },
    one_line="one line, {lines}",
    many_lines="{count} lines, top to bottom: {lines}",
    joiner=", ",
    setting="the option `{key}`",
    sectioned="the option `{key}` below `[{section}]`",
    file="the file `{scope}`",
    folder="the files anywhere inside the folder `{scope}`, subfolders too",
    checks={
        "is": "is exactly `{value}`",
        "at_least": "is `{value}` or above",
        "more_than": "is above `{value}` (not `{value}`)",
    },
)

CASUAL = Phrasing(
    one="Got a bit of file cleanup for you. Ground rules first: hands off all the files I don't"
    " mention, no stray files left lying around, and don't worry about a newline at the end of a"
    " file. Here's the job: {goals}. Use the tools, and hit {{tool:submit}} when you're through.",
    many="Got a bit of file cleanup for you. Ground rules first: hands off all the files I don't"
    " mention, no stray files left lying around, and don't worry about a newline at the end of a"
    " file. Here are the jobs, none of which gets in the way of another:\n{goals}\nUse the tools,"
    " and hit {{tool:submit}} when you're through with the lot.",
    item="#{number} - {goal}.",
    clauses={
        "create": "we need a new file, `{path}`; what goes in is {lines}, and nothing else",
        "move": "`{source}` is in the wrong place, so move it; the full path should be `{destination}`, and"
        " leave the text alone",
        "delete": "`{path}` can go, so delete that file",
        "edit": "{setting} has the wrong value in `{path}`; make it `{value}` and leave the rest of that file"
        " alone, down to the spacing",
        "append": 'tack this line on at the very end of `{path}`: "{line}" (what is there already stays)',
        "count": 'go through {where}, and count the lines with "{text}" in them, minding upper and'
        " lower case; two hits in a line still make one line; then save the bare number, in"
        " digits, as the new file `{destination}`",
        "count_rows": "go through the CSV file `{path}` and count the rows where the column `{column}` is"
        ' "{value}" on the nose, minding upper and lower case; then save the bare number, in'
        " digits, as the new file `{destination}`",
        "collect": "go through every file in the folder `{directory}`, the subfolders as well, and pull"
        ' out the lines that start with "{prefix}", minding upper and lower case; save them'
        " as the new file `{destination}`, each line in one piece, doubles and all, sorted A"
        " to Z by the full path of the file they come from and, for one and the same file, in"
        " the order they have there",
        "find": "somewhere in the folder `{directory}`, the subfolders as well, there's just one file with"
        ' this exact line, nothing before or after it: "{line}"; drop that file right into the folder'
        " `{destination}` and keep its name and text",
        "purge": "in the folder `{directory}`, the subfolders as well, delete whatever file has a name ending"
        ' in "{suffix}"',
        "conditional": "open `{path}` and see what {setting} says (skip the # lines, they're comments). In"
        " case it {check}, here's what to do: {then}. If not, do this instead: {otherwise}",
    },
    one_line="a single line, {lines}",
    many_lines="{count} lines, in just this order: {lines}",
    joiner=", next ",
    setting="`{key}`",
    sectioned="`{key}` in the `[{section}]` part",
    file="the file `{scope}`",
    folder="every file in the folder `{scope}`, the subfolders as well",
    checks={
        "is": "says `{value}`",
        "at_least": "is `{value}` or anything bigger",
        "more_than": "is bigger than `{value}` (`{value}` on its own won't do)",
    },
)

PHRASINGS: dict[str, Phrasing] = {
    "base": BASE,
    "p1": TERSE,
    "p2": POLITE,
    "p3": FORMAL,
    "p4": OUTCOME,
    "p5": CASUAL,
}
