"""Samples are shared among processes: the same verdicts, and nothing is lost without a word."""

from __future__ import annotations

import os

import numpy as np
import pytest

from onelayer import memorize, save
from onelayer_checker import check
from onelayer_checker.core import processes
from onelayer_checker.core.processes import Lost, side_by_side


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
    with pytest.raises(Lost, match="--jobs 1"):
        side_by_side(2, 4, 4, lambda *_: os._exit(1), lambda _: None)


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
