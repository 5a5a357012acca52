"""Samples are shared among processes: the same verdicts, and nothing is lost without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import onelayer
from onelayer import save
from onelayer_checker import check
from onelayer_checker.core import processes
from onelayer_checker.core.processes import Lost, side_by_side

memorize = partial(onelayer.memorize, certify=False)


@pytest.fixture
def everything_in_processes(monkeypatch) -> None:
    monkeypatch.setattr(processes, "LEAST", 1)


@pytest.mark.usefixtures("everything_in_processes")
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_parts_come_back_in_their_order(jobs) -> None:
    parts = side_by_side(jobs, 17, 17, lambda a, b: list(range(a, b)), lambda _: None)
    assert len(parts) == jobs
    assert [k for part in parts for k in part] == list(range(17))


@pytest.mark.usefixtures("everything_in_processes")
def test_what_goes_wrong_in_a_process_goes_wrong_here() -> None:
    def fail(start: int, stop: int) -> int:
        if start:
            raise ValueError(f"at {stop}")
        return start

    with pytest.raises(ValueError, match="at 4"):
        side_by_side(2, 4, 4, fail, lambda _: None)

    def waited(*_) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, waited)
    signal.alarm(20)  # an answer that never comes is not waited for
    with pytest.raises(Lost, match="--jobs 1"):
        side_by_side(2, 4, 4, lambda start, _: os._exit(1) if start else 0, lambda _: None)
    signal.alarm(0)


@pytest.mark.usefixtures("everything_in_processes")
@pytest.mark.parametrize("wrong", [False, True])
def test_the_same_verdicts(tmp_path, wrong) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 4, 3)), rng.integers(0, 9, (30, 4))
    folder = save(tmp_path / "model", memorize(X, Y), data=(X, Y))
    if wrong:
        from attacks.bundle import read

        bundle = read(folder)
        bundle.data["answers"][-1] += 1
        folder = bundle.write(tmp_path / "wrong")
    one, two = (check(folder, jobs=jobs) for jobs in (1, 3))
    assert one.result == two.result == ("NOT VERIFIED" if wrong else "VERIFIED")
    assert [j.verdict for j in one.claims] == [j.verdict for j in two.claims]


def who(jobs: int, count: int, tokens: int) -> list[tuple[int, int, int]]:
    """Which process looked at which part."""
    return side_by_side(jobs, count, tokens, lambda a, b: (os.getpid(), a, b), lambda _: None)


def test_processes_are_started_where_there_are_tokens_enough() -> None:
    assert who(2, 10, 2**15 - 1) == who(1, 10, 2**15) == [(os.getpid(), 0, 10)]
    assert who(2, 1, 2**15) == [(os.getpid(), 0, 1)]
    for jobs, parts in (
        (2, [(0, 5), (5, 10)]),
        (3, [(0, 3), (3, 6), (6, 10)]),
        (99, [(k, k + 1) for k in range(10)]),
    ):
        found = who(jobs, 10, 2**15)
        assert [(a, b) for _, a, b in found] == parts
        assert len({pid for pid, *_ in found} | {os.getpid()}) == len(parts) + 1


def test_where_nothing_can_be_forked_one_process_does_it(monkeypatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert who(2, 10, 2**15) == [(os.getpid(), 0, 10)]


@pytest.mark.usefixtures("everything_in_processes")
def test_what_is_done_is_told() -> None:
    seen: list[int] = []
    side_by_side(3, 10, 10, lambda *_: None, seen.append)
    assert seen == [3, 6, 10]


@pytest.mark.usefixtures("everything_in_processes")
def test_no_process_is_left_behind() -> None:
    """In a process of its own: others may have children of other tests."""
    program = (
        "import os\n"
        "from onelayer_checker.core.processes import side_by_side\n"
        "side_by_side(2, 4, 1 << 30, lambda *_: None, lambda _: None)\n"
        "try: os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError: print('none')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "none\n"
