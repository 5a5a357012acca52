"""Workers: every piece is done once, by as many processes as asked for, whoever dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from onelayer.errors import DataError, OptionError
from onelayer.sharded.workers import Lost, _Process, _Slot, workers_of


def square(x: int) -> tuple[int, int]:
    print("noise that must not get between the results")
    return x * x, os.getpid()


def fail(x: int) -> int:
    if x == 2:
        raise DataError("data", "numbers other than 2", "it is 2", "Change it.")
    return x


def die_once(x: int, folder: str) -> int:
    """The piece 3 kills its process the first time."""
    mark = Path(folder) / "died"
    if x == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def die(_: int) -> None:
    os._exit(7)


def test_every_piece_is_done_once_and_processes_are_kept_for_more() -> None:
    with workers_of(2) as workers:
        first, second = dict(workers.run(square, range(6))), dict(workers.run(square, range(6)))
        assert {at: value for at, (value, _) in first.items()} == {at: at * at for at in range(6)}
        there, used = set(workers.ids), {process for found in (first, second) for _, process in found.values()}
        assert used <= there  # on a busy machine one of them may have done all
        assert os.getpid() not in there
        assert len(there) == 2
    assert all(_gone(process) for process in there)


def _gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_error_of_a_piece_is_raised_here() -> None:
    with workers_of(1) as workers, pytest.raises(DataError, match="numbers other than 2"):
        list(workers.run(fail, range(4)))


def test_a_process_that_dies_costs_its_piece_only(tmp_path) -> None:
    with workers_of(2) as workers:
        found = dict(workers.run(partial(die_once, folder=str(tmp_path)), range(8)))
    assert (tmp_path / "died").exists()
    assert found == {at: at for at in range(8)}


def test_a_piece_that_kills_everyone_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr("onelayer.sharded.workers.RETRIES", 1)
    with workers_of(1) as workers, pytest.raises(Lost, match="2 died with piece 0"):
        list(workers.run(die, [0]))


def test_work_that_nobody_waits_for_ends_with_the_block() -> None:
    start = time.monotonic()
    with workers_of(1) as workers:
        next(iter(workers.run(time.sleep, [0, 600])))
        process = workers.ids[0]
    assert _gone(process)
    assert time.monotonic() - start < 300


def test_what_is_no_cluster_is_refused() -> None:
    for wrong in (0, -1, True, 2.5, None, []):
        with pytest.raises(OptionError, match="process"), workers_of(wrong):
            pass


def test_a_program_without_a_guard_may_ask_for_workers(tmp_path) -> None:
    """A worker that imported the program of whoever asks would run it again."""
    program = tmp_path / "program.py"
    program.write_text(
        "from onelayer.sharded.workers import workers_of\n"
        "with workers_of(1) as workers: print(sorted(workers.run(abs, [-3, 4])))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, 3), (1, 4)]\n"


def test_a_process_that_is_closed_while_it_is_asked_ends_without_an_error() -> None:
    slot = _Slot()
    slot.process = _Process()
    asked = slot.process.ask

    def closed_first(task: Callable[[int], int], item: int) -> int:
        slot.close()
        return asked(task, item)

    slot.process.ask = closed_first
    assert isinstance(slot.ask(abs, -1, 0), Lost)
