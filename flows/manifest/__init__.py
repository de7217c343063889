"""The manifest: experiments.yaml, resolved to one profile, with its two hashes."""

from flows.manifest.hashes import SCAFFOLD_VERSION, manifest_hash, scientific_hash, scientific_model
from flows.manifest.load import DEFAULT_PROFILE, load_manifest
from flows.manifest.schema import (
    BASELINE_AXIS,
    BASELINE_LEVEL,
    Capabilities,
    Expectation,
    HttpModel,
    Limits,
    Manifest,
    Model,
    Pricing,
    Retry,
    Scaffold,
    ScriptedModel,
)

__all__ = [
    "BASELINE_AXIS",
    "BASELINE_LEVEL",
    "DEFAULT_PROFILE",
    "SCAFFOLD_VERSION",
    "Capabilities",
    "Expectation",
    "HttpModel",
    "Limits",
    "Manifest",
    "Model",
    "Pricing",
    "Retry",
    "Scaffold",
    "ScriptedModel",
    "load_manifest",
    "manifest_hash",
    "scientific_hash",
    "scientific_model",
]
