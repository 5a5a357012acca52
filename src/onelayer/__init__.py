"""onelayer: compile data into the explicit weights of a Transformer with one attention layer."""

from __future__ import annotations

from onelayer.constructions.contexts.boltzmann import boltzmann
from onelayer.constructions.memorization import memorize
from onelayer.errors import HypothesisError
from onelayer.memory import Memory

__version__ = "0.1.0"
__all__ = ["HypothesisError", "Memory", "__version__", "boltzmann", "memorize"]
