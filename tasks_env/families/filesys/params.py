"""The difficulty parameters of the file system family."""

from __future__ import annotations

from pydantic import ConfigDict, Field, model_validator

from tasks_env.types import Frozen

SEARCH_SPARE = 2
"""Files that a searching goal may need besides its matches: near misses inside and outside its folder."""
CONDITIONAL_FILES = 3
"""Files that a conditional goal may need: the one that decides, and one for each branch."""


class FilesysParams(Frozen):
    """What a generated tree and its goals look like; whole numbers alone, so that neither `true` nor "3" counts."""

    model_config = ConfigDict(strict=True)

    files: int = Field(ge=1, le=80, description="Files in the start tree.")
    depth: int = Field(ge=1, le=6, description="Most folders above a file: 2 allows /notes/team/a.txt.")
    goals: int = Field(ge=1, le=8, description="Goals of the task; none depends on another.")
    searches: int = Field(
        ge=0,
        le=8,
        description="Of the goals: those that look through content or names (count, collect, find, purge).",
    )
    conditionals: int = Field(
        ge=0, le=8, description="Of the goals: those with two branches, decided by a setting in a file."
    )
    matches: int = Field(ge=1, le=8, description="Files or rows that a searching goal has to come upon.")
    decoys: int = Field(ge=0, le=4, description="Further files per goal that resemble the right one.")

    @model_validator(mode="after")
    def validated(self) -> FilesysParams:
        """The kinds of goals fit their number, and the files suffice for them."""
        if self.searches + self.conditionals > self.goals:
            raise ValueError(
                f"searches ({self.searches}) + conditionals ({self.conditionals}) exceed goals ({self.goals})"
            )
        if self.files < self.files_needed:
            raise ValueError(
                f"files ({self.files}) must be at least {self.files_needed}: goals {self.goals},"
                f" searches {self.searches}, conditionals {self.conditionals}, matches {self.matches},"
                f" decoys {self.decoys} may need as many"
            )
        return self

    @property
    def files_needed(self) -> int:
        """The most files that the goals can call for."""
        simple = self.goals - self.searches - self.conditionals
        return (
            simple
            + self.searches * (self.matches + SEARCH_SPARE)
            + self.conditionals * CONDITIONAL_FILES
            + self.goals * self.decoys
        )
