"""Multi-step goals in a simulated file system, judged by the tree that is left."""

from tasks_env.families.filesys.family import Filesys
from tasks_env.families.filesys.params import FilesysParams

__all__ = ["Filesys", "FilesysParams"]
