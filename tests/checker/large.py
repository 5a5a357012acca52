"""The arithmetics that hold numbers of any size a test draws; those of 16 bits have tests of their own."""

from __future__ import annotations

from onelayer_checker.core import balls
from onelayer_checker.core.claims import SMALL

ARITHMETICS = {name: A for name, A in balls.ARITHMETICS.items() if name not in SMALL}
