"""Natural-language questions against a generated SQLite database."""

from tasks_env.families.query.family import Query
from tasks_env.families.query.params import QueryParams

__all__ = ["Query", "QueryParams"]
