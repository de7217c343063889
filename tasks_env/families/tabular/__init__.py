"""Tables to be filtered, joined, aggregated and sorted by a generated spec, judged by the bytes submitted."""

from tasks_env.families.tabular.family import Tabular
from tasks_env.families.tabular.params import TabularParams

__all__ = ["Tabular", "TabularParams"]
