"""Functions to be approximated: named, written as a formula, built line by line, or given as Python."""

from __future__ import annotations

from onelayer.problems.targets.program import Builder, Node, Program
from onelayer.problems.targets.target import Target, names, resolve
from onelayer.problems.targets.zoo import ZOO, Kind

__all__ = ["ZOO", "Builder", "Kind", "Node", "Program", "Target", "names", "resolve"]
