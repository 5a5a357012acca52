"""Copies of the checker's modules with a line replaced, and whether any check notices."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest


def installed(monkeypatch: pytest.MonkeyPatch, sources: Mapping[str, str], name: str) -> SimpleNamespace:
    """Modules of these sources, in their order, that import each other instead of the checker's own."""
    made = {}
    for part, source in sources.items():
        for other in sources:
            source = re.sub(rf"onelayer_checker\.(\w+\.)?{other}\b", f"mutant_{other}", source)
        made[part] = types.ModuleType(f"mutant_{part}")
        monkeypatch.setitem(sys.modules, f"mutant_{part}", made[part])  # dataclasses look their module up
        exec(compile(source, f"<{name}>", "exec"), made[part].__dict__)
    return SimpleNamespace(**made)


def assert_caught(checks: Iterable[Callable[[Any], object]], mutant: Any, *errors: type[Exception]) -> None:
    """Some check fails, or stumbles in one of these ways."""
    for check in checks:
        try:
            check(mutant)
        except (AssertionError, RuntimeWarning, *errors):
            return
    pytest.fail("no check noticed")
