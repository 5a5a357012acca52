"""Runs tests against mutants of a module of the checker, each in a fork of a process that has collected the tests.

The package that is installed is never touched: a temporary copy stands before it on the path, of this process and
of those it starts. In a fork the function that differs is replaced (`swap.py`); a mutant of what runs at import is
imported in a fork that has only NumPy and pytest. Tests that do not reach the line are left out, and those that
noticed other mutants of the same function come first. A fork that uses more CPU time than it is given is ended,
and counts as noticed.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, TracebackType

from attacks.lines import swap
from attacks.lines.mutations import Mutant
from attacks.lines.session import COLLECTED, INI, ROOT, Measured, Session, allow_seconds

PACKAGE = ROOT / "src" / "onelayer_checker"
PATIENCE = 600.0  # seconds on the clock: it sleeps, or waits for a file
NOTICED, BROKEN = 1, 70  # exit codes of a fork
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Outcome:
    """ "passed", "failed" or "out of time"; the test that failed; CPU seconds."""

    result: str
    test: str
    cpu: float


class Workshop:
    """A temporary copy of the checker for each of a number of jobs."""

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs

    def __enter__(self) -> Workshop:
        self.folder = Path(tempfile.mkdtemp(prefix="lines-"))
        for job in range(self.jobs):
            shutil.copytree(PACKAGE, self.folder / str(job) / PACKAGE.name)
            (self.folder / str(job) / "pytest.ini").write_text(INI)
        _prepare()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        shutil.rmtree(self.folder)

    def run(
        self, mutants: Sequence[Mutant], tests: Sequence[str], measure: bool = True, end: float = float("inf")
    ) -> Iterator[tuple[int, Outcome]]:
        """The outcome for each mutant of one module, with its index, as they come; none begins after ``end``."""
        waiting, workers = selectors.DefaultSelector(), []
        for job in range(min(self.jobs, len(mutants))):
            readable, writable = os.pipe()
            own = {index: mutant for index, mutant in enumerate(mutants) if index % self.jobs == job}
            worker = Worker(self.folder / str(job), own, tests, measure, end, writable)
            workers.append(_fork(worker.work))
            os.close(writable)
            waiting.register(os.fdopen(readable), selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select():
                line = key.fileobj.readline()  # type: ignore[union-attr]
                if line:
                    index, outcome = json.loads(line)
                    yield index, Outcome(**outcome)
                else:
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
        for pid in workers:
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
                raise SystemExit("a job ended early: see above")


@dataclass
class Worker:
    """Runs the tests against some mutants of one module, one after another, and writes outcomes into a pipe."""

    folder: Path
    mutants: dict[int, Mutant]
    tests: Sequence[str]
    measure: bool
    end: float
    pipe: int
    measured: dict[str, Measured] = field(default_factory=dict)
    killers: dict[str, list[str]] = field(default_factory=dict)  # by function: the last test that noticed first

    def work(self) -> None:
        module = next(iter(self.mutants.values())).module
        self.path = self.folder / PACKAGE.name / f"{module}.py"
        self.before, self.said = self.path.read_text(), self.folder / "said.json"
        self.test = self.folder / "test.txt"
        if self.measure:
            self._in_session(self._measure)
            found = json.loads(self.said.read_text())
            if isinstance(found, str):
                raise SystemExit(f"the tests of {module} do not pass as it is: {found}")
            self.measured = {name: Measured(**what) for name, what in found.items()}
        self._in_session(self._swap_all)
        for index in json.loads(self.said.read_text()):
            if time.monotonic() < self.end:
                self._attack(index, partial(self._import, self.mutants[index]))
        self.path.write_text(self.before)

    def _in_session(self, body: Callable[[Session], None]) -> None:
        """Do something in a fork that has collected the tests, of the checker as it is."""
        self._write(self.before)
        self.said.unlink(missing_ok=True)

        def start() -> None:
            session = Session(body)
            code = session.start(self.folder, self.tests)
            if session.failed or not session.items:
                self.said.write_text(json.dumps(session.failed or f"pytest ended with {code}"))

        _wait(_fork(start), float("inf"))

    def _measure(self, session: Session) -> None:
        found = session.measure(str(self.path))
        self.said.write_text(json.dumps({name: asdict(what) for name, what in found.items()}))

    def _swap_all(self, session: Session) -> None:
        """Run the mutants whose function can be replaced; those that are left are written down."""
        there, left = swap.functions(str(self.path)), []
        for index, mutant in self.mutants.items():
            if time.monotonic() >= self.end:
                break
            function = swap.find_changed(self.before, mutant.source)
            if function is None or function[0] not in there:
                left.append(index)
                continue
            self._write(mutant.source)  # for processes that a test starts
            self._attack(index, partial(self._swap, session, mutant, function[1], there[function[0]]))
        self.said.write_text(json.dumps(left))

    def _swap(self, session: Session, mutant: Mutant, code: CodeType, old: list[FunctionType]) -> None:
        swap.put(code, old)
        self._finish(session.run(self._order(mutant, session.names), self._allowed_seconds()))

    def _import(self, mutant: Mutant) -> None:
        """Run the tests on a mutant that is imported, as the checker is."""
        self._write(mutant.source)
        whole = replace(mutant, statement=range(0))  # whoever imports the module runs it
        session = Session(lambda own: self._finish(own.run(self._order(whole, own.names), self._allowed_seconds())))
        allow_seconds(COLLECTED)
        code = session.start(self.folder, self.tests)
        if not session.failed:
            raise RuntimeError(f"pytest ended with {code}")
        self._finish(session.failed)

    def _order(self, mutant: Mutant, names: list[str]) -> list[str]:
        """The tests that reach a mutant: those that noticed one of the same function, and then the cheapest."""
        known = {name: self.measured.get(name, Measured(0.0, None)) for name in names}
        reach = sorted((n for n in names if known[n].reaches(mutant.statement)), key=lambda n: known[n].cpu)
        first = [name for name in self.killers.get(mutant.where, ()) if name in reach]
        return first + [name for name in reach if name not in first]

    def _allowed_seconds(self) -> dict[str, float]:
        return {name: 2 + 5 * what.cpu for name, what in self.measured.items()}

    def _attack(self, index: int, attack: Callable[[], None]) -> None:
        self.test.write_text("")
        outcome = _outcome(*_wait(_fork(attack, own_group=True), time.monotonic() + PATIENCE), self.test)
        if outcome.test:
            known = self.killers.setdefault(self.mutants[index].where, [])
            self.killers[self.mutants[index].where] = [
                outcome.test,
                *(name for name in known if name != outcome.test),
            ]
        os.write(self.pipe, f"{json.dumps([index, asdict(outcome)])}\n".encode())

    def _finish(self, failed: str) -> None:
        self.test.write_text(failed)
        os._exit(NOTICED if failed else 0)

    def _write(self, source: str) -> None:
        self.path.write_text(source)
        for stale in (self.path.parent / "__pycache__").glob(f"{self.path.stem}.*"):
            stale.unlink()


def _prepare() -> None:
    """Import what every fork needs, but nothing that imports the checker."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1", "CI": "1"}
    import argparse  # noqa: F401

    import hypothesis  # noqa: F401
    import numpy.testing  # noqa: F401

    import attacks.counterexamples
    import attacks.forgeries  # noqa: F401

    assert not any(name.split(".")[0] in ("onelayer", "onelayer_checker") for name in sys.modules)


def _fork(do: Callable[[], None], own_group: bool = False) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = BROKEN
    try:  # in the fork: nothing may return from here
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody is left behind
        if own_group:
            os.setpgid(0, 0)
        do()
        code = 0
    except SystemExit as end:
        print(end, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int, deadline: float) -> tuple[int, float]:
    """The exit code of a fork, and its CPU seconds; it is ended where it takes too long on the clock."""
    while True:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.002)


def _outcome(code: int, cpu: float, said: Path) -> Outcome:
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return Outcome("out of time", "", cpu)
    if code < 0:
        return Outcome("failed", f"died of signal {-code}", cpu)
    if code > NOTICED:
        raise RuntimeError(f"the tests could not be run: exit code {code}, {said.read_text()}")
    return Outcome("failed" if code else "passed", said.read_text(), cpu)
