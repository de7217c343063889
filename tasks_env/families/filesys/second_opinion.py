"""An independent judge of final trees, on top of the second solver.

Like the solver it shares no code with the generator, the tools, the reference or the verifier, and it never sees
the stored truth. It reads the documented rule of equality by another route: texts are cut into lines at LF, CRLF
or CR, empty lines at the end are dropped, and lines are compared in normal form D, which tells apart exactly the
texts that normal form C tells apart. Paths are compared as they stand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from tasks_env.families.filesys.second_solver import solve


def second_opinion(spec: Mapping[str, Any], files: Mapping[str, str]) -> Callable[[bool, Mapping[str, Any]], bool]:
    """The judge of one task: takes whether the work was submitted, and the final state's data.

    Args:
        spec: `Instance.spec`.
        files: The start tree, `Instance.world["files"]`.
    """
    solution = solve(spec, files)
    wanted = {path: _lines(text) for path, text in solution.items()}

    def right(submitted: bool, data: Mapping[str, Any]) -> bool:
        tree = data.get("files")
        if not submitted or not isinstance(tree, Mapping) or set(tree) != set(wanted):
            return False
        return all(
            isinstance(text, str) and (text == solution[path] or _lines(text) == wanted[path])
            for path, text in tree.items()
        )

    return right


def _lines(text: str) -> list[str]:
    lines = [unicodedata.normalize("NFD", line) for line in re.split(r"\r\n|\r|\n", text)]
    while lines and not lines[-1]:
        del lines[-1]
    return lines
