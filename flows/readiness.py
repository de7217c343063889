"""What must be there before the first episode: a named model, its address, its key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from flows.context import Study
from flows.errors import ConfigurationError
from flows.manifest import HttpModel
from flows.models import resolve_endpoint


def check_models(study: Study, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a run that could not ask one of its models.

    Raises:
        ConfigurationError: names every missing environment variable and every model still to be named.
    """
    problems = []
    for name in study.models:
        entry = study.manifest.models[name]
        if not isinstance(entry, HttpModel):
            continue
        try:
            with suppress(ValueError):  # an address that is none: the run tells of it and goes on with the other models
                resolve_endpoint(entry, environ)
        except ConfigurationError as error:
            problems.append(f"model {name!r}: {error}")
        if entry.model is None:
            problems.append(
                f"model {name!r}: models.{name}.model in {study.manifest_path} is null; name the provider's model id"
            )
    if problems:
        raise ConfigurationError("nothing was started:\n  " + "\n  ".join(problems))
