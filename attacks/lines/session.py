"""One session of pytest in this process: tests are collected once, and handed to whoever runs them."""

from __future__ import annotations

import functools
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MEMORY = 6 << 30  # bytes of address space
#: As in pyproject.toml, without the plugins: loading them would take longer than the tests.
INI = "[pytest]\nfilterwarnings = error\nmarkers =\n  slow: minutes\n  seconds: more than a moment\n"
#: CPU seconds for a test that nobody measured, and for collecting all.
ENOUGH, COLLECTED = 60.0, 5.0
STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"}


@dataclass(frozen=True)
class Measured:
    """What a test takes, in CPU seconds, and the lines of the module it runs; None if it starts processes."""

    cpu: float
    lines: list[int] | None

    def reaches(self, lines: range) -> bool:
        return not lines or self.lines is None or any(line in lines for line in self.lines)


@dataclass(eq=False)
class Session:
    """A plugin of pytest: what was collected, and the first test, or file, that failed."""

    body: Callable[[Session], None]
    items: list[pytest.Item] = field(default_factory=list)
    failed: str = ""

    def start(self, folder: Path, tests: Sequence[str]) -> int:
        """Collect the tests, with the checker in the folder before every other, and hand them to ``body``."""
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(silence, stream)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)
        options = ["-x", "-q", "-c", str(folder / "pytest.ini"), "--rootdir", str(ROOT), "--tb=no"]
        options += ["--assert=plain"]  # to say how two long lists differ may take minutes
        options += ["-p", "no:cacheprovider", "--basetemp", str(folder / "scratch")]
        return int(pytest.main([*options, *tests], plugins=[self]))

    def note(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    pytest_runtest_logreport = pytest_collectreport = note

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = session.items
        self.body(self)
        return True

    @property
    def names(self) -> list[str]:
        return [item.nodeid for item in self.items]

    def run(self, order: Sequence[str], allowed: dict[str, float]) -> str:
        """Run these tests until one fails; its name, or nothing. One that takes too long ends the process."""
        by_name = {item.nodeid: item for item in self.items}
        chosen = [by_name[name] for name in order]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for item, following in zip_longest(chosen, chosen[1:]):
            allow_seconds(allowed.get(item.nodeid, ENOUGH))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                break
        return self.failed

    def measure(self, path: str) -> dict[str, Measured]:
        """What each test takes and which lines of a file it runs, as if it were alone; until one fails."""
        lines: set[int] = set()
        starts: set[str] = set()
        sys.addaudithook(lambda event, _: starts.add(event) if event in STARTS else None)

        def enter(frame: FrameType, *_: Any) -> Any:
            return step if frame.f_code.co_filename == path else None

        def step(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return step

        found = {}
        caches = [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper)]
        for item in self.items:
            lines.clear()
            starts.clear()
            for cache in caches:  # what another test left there would not be computed
                cache.cache_clear()
            start = time.process_time()
            sys.settrace(enter)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            sys.settrace(None)
            if self.failed:
                break
            found[item.nodeid] = Measured(time.process_time() - start, None if starts else sorted(lines))
        return found


def allow_seconds(cpu: float) -> None:
    """From here on, this many more seconds of CPU time; then the process is ended."""
    end = int(time.process_time() + cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
