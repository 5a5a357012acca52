"""The lab: questions of the papers as experiments that anyone can run again, with a picture and a plain answer."""

from __future__ import annotations

from onelayer.lab.experiment import Verdict
from onelayer.lab.harness import run
from onelayer.lab.merges import Merge, collapse
from onelayer.lab.registry import find, names

__all__ = ["Merge", "Verdict", "collapse", "find", "names", "run"]
