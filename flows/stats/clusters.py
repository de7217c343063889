"""What is resampled as one: an instance, or, where context is carried from task to task, the tasks that shared it.

Episodes of one conversation depend on each other: a mistake, or a habit, is carried on. So a cluster holds all
instances that ever shared a conversation, in any cell, run or model; where every episode was a conversation of its own
it is the instance. A study keeps its companies the same in every cell, so that its clusters have the size of its
conversations; a table whose companies cross has fewer and larger ones.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

CONVERSATION = "conversation_id"
NEGATIVE_CONTROLS = ("order", "resample")
"""Axes that cannot move a score while each episode is a conversation of its own."""


def carries_context(frame: pd.DataFrame) -> bool:
    """Whether any episode shared a conversation; a table without the column has none that did."""
    return CONVERSATION in frame.columns and bool(frame[CONVERSATION].notna().any())


def control_axes(frame: pd.DataFrame) -> tuple[str, ...]:
    """The axes that cannot move a score in these results: order can, where context is carried."""
    return tuple(axis for axis in NEGATIVE_CONTROLS if axis != "order" or not carries_context(frame))


def cluster_ids(frame: pd.DataFrame) -> pd.Series:
    """Every row's cluster, called by the first of its instances; independent of the order of the rows.

    Args:
        frame: Columns instance_id and, where context is carried, conversation_id.
    """
    if not carries_context(frame):
        return frame["instance_id"]
    instances, names = pd.factorize(frame["instance_id"], sort=True)
    conversations, shared = pd.factorize(frame[CONVERSATION])
    linked = conversations >= 0
    size = len(names) + len(shared)
    links = coo_array(
        (np.ones(int(linked.sum())), (instances[linked], len(names) + conversations[linked])), shape=(size, size)
    )
    _, component = connected_components(links, directed=False)
    own = component[: len(names)]
    _, first = np.unique(own, return_index=True)  # names are sorted, so the first is the least
    least = dict(zip(own[first].tolist(), first.tolist(), strict=True))
    text = names.astype("str")
    return pd.Series([text[least[component[code]]] for code in instances], index=frame.index, dtype="str")
