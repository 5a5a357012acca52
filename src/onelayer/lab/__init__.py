"""The lab: questions of the papers as experiments that anyone can run again, with a picture and a plain answer."""

from __future__ import annotations

from onelayer.lab.collapse import Merge, collapse
from onelayer.lab.experiment import Verdict, find, names
from onelayer.lab.harness import run

__all__ = ["Merge", "Verdict", "collapse", "find", "names", "run"]
