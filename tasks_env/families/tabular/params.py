"""The difficulty of a tabular task, as validated numbers."""

from __future__ import annotations

from pydantic import Field, model_validator

from tasks_env.types import Frozen


class TabularParams(Frozen):
    """Difficulty parameters; all are required."""

    rows: int = Field(ge=3, le=200, description="Rows of the main table.")
    groups: int = Field(ge=2, le=8, description="Distinct values that each category column draws from.")
    distractor_columns: int = Field(ge=0, le=6, description="Columns of the inputs that the task never needs.")
    missing_percent: int = Field(ge=0, le=40, description="Chance in percent that an optional cell is empty.")
    joins: int = Field(ge=0, le=2, description="Lookup tables to join to the main table.")
    filters: int = Field(ge=0, le=3, description="Conditions on rows that must all hold.")
    derived_columns: int = Field(ge=0, le=1, description="Columns computed from two others.")
    group_keys: int = Field(ge=0, le=2, description="Columns to group by; 0 means that rows are not grouped.")
    measures: int = Field(ge=0, le=3, description="Aggregates per group; needs at least one group key.")
    sort_keys: int = Field(ge=0, le=2, description="Columns to sort by, not counting the stated tie-breaks.")
    limit: bool = Field(description="Whether only the first rows of the sorted result are kept.")

    @model_validator(mode="after")
    def _fits_together(self) -> TabularParams:
        if (self.measures > 0) != (self.group_keys > 0):
            raise ValueError("measures and group_keys must be both 0 or both positive")
        if self.group_keys and not self.sort_keys:
            raise ValueError("a grouped result needs sort_keys of at least 1, so that its order is stated")
        if self.limit and not self.sort_keys:
            raise ValueError("limit needs sort_keys of at least 1, so that the first rows are defined")
        if not (self.joins or self.filters or self.derived_columns or self.group_keys or self.sort_keys):
            raise ValueError("at least one operation is needed: the untouched input must not be the answer")
        if self.group_keys and self.groups**self.group_keys > self.rows:
            raise ValueError("groups ** group_keys may not exceed rows: most groups would be empty")
        if self.limit and self.group_keys and self.groups**self.group_keys < 3:
            raise ValueError("limit needs at least 3 groups: groups ** group_keys must be 3 or more")
        if self.rows < self.least_rows:
            raise ValueError(f"rows must be at least {self.least_rows} here, so that every step can matter")
        return self

    @property
    def least_rows(self) -> int:
        """Fewer rows than this cannot hold a task in which every step matters.

        The result has two rows, and three groups or rows to choose from where there is a limit; each comes from a row
        that meets everything. Each filter needs a row that fails it alone, or leaving it out would change nothing;
        each inner join needs a row that is dropped for its reference alone, or a left join would give the same. No row
        serves twice. A left join needs none, since what tells it apart is in the result, and a task has one at most.
        """
        may_be_left = self.joins > 0 and (not self.group_keys or self.measures > 1)
        return (3 if self.limit else 2) + self.filters + self.joins - may_be_left
