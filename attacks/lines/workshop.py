"""Runs tests against a changed copy of the checker, each time in a fork of a process that has NumPy and pytest.

The package that is installed is never touched: a temporary copy stands before it on the path, of this process and
of those it starts. A fork that uses more CPU time than it is given is ended, and counts as noticed.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "onelayer_checker"
MEMORY = 6 << 30  # bytes of address space
#: As in pyproject.toml, without the plugins: loading them would take longer than the tests.
INI = "[pytest]\nfilterwarnings = error\nmarkers = slow: minutes rather than seconds\n"
Stages = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Outcome:
    """ "passed", "failed" or "out of time"; the test that failed; CPU seconds."""

    result: str
    test: str
    cpu: float


class Failures:
    """A plugin of pytest that remembers the first test, or file, that failed."""

    def __init__(self) -> None:
        self.first = ""

    def _note(self, report: Any) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid

    pytest_runtest_logreport = pytest_collectreport = _note


class Workshop:
    """A temporary copy of the checker for each of a number of jobs."""

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs

    def __enter__(self) -> Workshop:
        self.folder = Path(tempfile.mkdtemp(prefix="lines-"))
        (self.folder / "pytest.ini").write_text(INI)
        for job in range(self.jobs):
            shutil.copytree(PACKAGE, self.folder / str(job) / PACKAGE.name)
        _prepare()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        shutil.rmtree(self.folder)

    def baseline(self, module: str, stages: Stages) -> float:
        """CPU seconds that the tests take on the checker as it is; they must pass."""
        text = (PACKAGE / f"{module}.py").read_text()
        (outcome,) = (found for _, found in self.run(module, [text], stages, seconds=600, keep_bytecode=True))
        if outcome.result != "passed":
            raise SystemExit(f"the tests of {module} do not pass as it is: {outcome.result} {outcome.test}")
        return outcome.cpu

    def run(
        self,
        module: str,
        sources: Sequence[str],
        stages: Stages,
        seconds: float,
        keep_bytecode: bool = False,
        go_on: Callable[[], bool] = lambda: True,
    ) -> Iterator[tuple[int, Outcome]]:
        """The outcome for each source of the module, with its index, as they come."""
        free, running, at = list(range(self.jobs)), {}, 0
        while at < len(sources) or running:
            while free and at < len(sources) and go_on():
                job = free.pop()
                pid, pipe = self._start(job, module, sources[at], stages, seconds, keep_bytecode)
                running[pid] = (job, at, pipe, time.monotonic() + 10 * seconds)
                at += 1
            if not running:
                return
            pid = next(iter(running))
            job, index, pipe, deadline = running.pop(pid)
            outcome = _wait(pid, pipe, deadline)
            self._restore(job, module)
            free.append(job)
            yield index, outcome

    def _start(
        self, job: int, module: str, source: str, stages: Stages, seconds: float, keep_bytecode: bool
    ) -> tuple[int, int]:
        folder = self.folder / str(job)
        path = folder / PACKAGE.name / f"{module}.py"
        path.write_text(source)
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()
        readable, writable = os.pipe()
        pid = os.fork()
        if pid:
            os.close(writable)
            return pid, readable
        try:  # in the fork: nothing may return from here
            os.close(readable)
            os.setpgid(0, 0)
            _limit(seconds)
            sys.dont_write_bytecode = not keep_bytecode
            self._test(folder, stages, writable)
        finally:
            os._exit(70)

    def _test(self, folder: Path, stages: Stages, writable: int) -> None:
        import pytest

        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)
        options = ["-x", "-q", "-c", str(self.folder / "pytest.ini"), "--rootdir", str(ROOT), "--tb=no"]
        options += ["--assert=plain"]  # to say how two long lists differ may take minutes
        options += ["-p", "no:cacheprovider", "--basetemp", str(folder / "scratch")]
        for stage in stages:
            failures = Failures()
            code = int(pytest.main([*options, *stage], plugins=[failures]))
            if code:
                os.write(writable, f"{code} {failures.first}".encode())
                os._exit(1 if failures.first else 71)
        os._exit(0)

    def _restore(self, job: int, module: str) -> None:
        shutil.copy2(PACKAGE / f"{module}.py", self.folder / str(job) / PACKAGE.name / f"{module}.py")


def _prepare() -> None:
    """Import what every fork needs, but nothing that imports the checker."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1", "CI": "1"}
    import argparse  # noqa: F401
    import json  # noqa: F401

    import hypothesis  # noqa: F401
    import numpy.testing  # noqa: F401
    import pytest  # noqa: F401

    import attacks.counterexamples
    import attacks.forgeries  # noqa: F401

    assert not any(name.split(".")[0] in ("onelayer", "onelayer_checker") for name in sys.modules)


def _limit(seconds: float) -> None:
    whole = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _wait(pid: int, pipe: int, deadline: float) -> Outcome:
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:  # it sleeps, or waits for a file
            os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            break
        time.sleep(0.002)
    said = os.read(pipe, 4000).decode()
    os.close(pipe)
    cpu = usage.ru_utime + usage.ru_stime
    code = os.waitstatus_to_exitcode(status)
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return Outcome("out of time", "", cpu)
    if code < 0:
        return Outcome("failed", f"died of signal {-code}", cpu)
    if code > 1:
        raise RuntimeError(f"the tests could not be run: exit code {code}, {said}")
    return Outcome("failed" if code else "passed", said.partition(" ")[2], cpu)
