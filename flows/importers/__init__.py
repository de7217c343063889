"""Results of other harnesses in this study's results schema, so that every analysis that they allow can run.

A format is an `Importer`; docs/importing.md shows how to write and register one.
"""

from flows.importers.importer import Choices, Episode, Importer, ImportProblem
from flows.importers.scale import Scale

__all__ = ["Choices", "Episode", "ImportProblem", "Importer", "Scale"]
