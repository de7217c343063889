"""The difficulty parameters of the query family."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tasks_env.types import Frozen

QuestionKind = Literal["count", "distinct", "sum", "average", "date", "lookup", "extreme", "list", "top", "absent"]
"""What is asked about the rows that meet the conditions.

    count      how many there are                               number
    distinct   how many different values a column has           number
    sum        the total of a column                            number
    average    the mean of a column, to two decimals            number
    date       the earliest or latest date                      date
    lookup     a column of the only such row                    number, text or date
    extreme    a column of the row with the highest measure     text
    list       the different values of a column, in order       list
    top        the group with the highest total or count        pair: group and total
    absent     how many entities no such row refers to          number
"""


class QueryParams(Frozen):
    """How large the database is and how much a question combines."""

    tables: int = Field(ge=1, le=4, description="Tables in the database; related by foreign keys.")
    rows: int = Field(ge=8, le=200, description="Rows of the largest table; the others have a third or less.")
    min_hops: int = Field(ge=0, le=3, description="Fewest joins that the question needs.")
    max_hops: int = Field(ge=0, le=3, description="Most joins that the question needs.")
    predicates: int = Field(ge=1, le=3, description="Conditions that the question puts on the rows.")
    null_share: float = Field(
        ge=0, le=0.4, description="Share of missing values in the columns that may be NULL; 0: none may."
    )
    questions: tuple[QuestionKind, ...] = Field(
        min_length=1, max_length=10, description="Kinds of question to draw from, each equally often."
    )

    @model_validator(mode="after")
    def validated(self) -> QueryParams:
        """Refuse combinations that no question can meet."""
        if self.min_hops > self.max_hops:
            raise ValueError(f"min_hops ({self.min_hops}) is larger than max_hops ({self.max_hops})")
        if self.max_hops >= self.tables:
            raise ValueError(f"max_hops ({self.max_hops}) must be smaller than tables ({self.tables})")
        if self.max_hops >= 2 and self.predicates < 2:
            raise ValueError("two hops or more need at least 2 predicates, so that every table matters")
        if len(set(self.questions)) != len(self.questions):
            raise ValueError(f"questions repeats a kind: {', '.join(self.questions)}")
        if "absent" in self.questions and self.min_hops < 1:
            raise ValueError("questions of kind 'absent' need min_hops of at least 1")
        return self
