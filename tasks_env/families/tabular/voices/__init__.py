"""The six phrasings by name: an explicit map."""

from tasks_env.families.tabular.voices.base import BASE
from tasks_env.families.tabular.voices.p1 import P1
from tasks_env.families.tabular.voices.p2 import P2
from tasks_env.families.tabular.voices.p3 import P3
from tasks_env.families.tabular.voices.p4 import P4
from tasks_env.families.tabular.voices.p5 import P5
from tasks_env.families.tabular.voices.voice import Voice

VOICES: dict[str, Voice] = {"base": BASE, "p1": P1, "p2": P2, "p3": P3, "p4": P4, "p5": P5}

__all__ = ["VOICES", "Voice"]
