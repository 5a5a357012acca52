"""Many machines: a sweep on a real cluster, one of whose workers is killed, gives the rows of a local run."""

from __future__ import annotations

import gc
import os
import signal

import distributed
import pytest

from onelayer import lab
from onelayer.errors import OptionError
from onelayer.lab.experiments import softmax_and_boltzmann
from onelayer.lab.store import Store

NAME = "softmax-and-boltzmann"
CASES = [
    {"part": "window", "levels": levels, "n": n, "spacing": "random", "draws": 8}
    for levels in (6, 7, 8, 9)
    for n in (2, 3, 4)
]


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as started:
        yield started


def test_a_sweep_survives_a_killed_worker(cluster, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(softmax_and_boltzmann, "cases", lambda _: CASES)
    reported, killed = [], []

    def progress(done: int, total: int) -> None:
        reported.append((done, total))
        if done == 3:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    address = cluster.scheduler_address
    rows = lab.run(NAME, seeds=2, results=tmp_path / "cluster", cluster=address, progress=progress)
    assert killed
    assert reported == [(done, 24) for done in range(25)]  # every piece once, the lost ones too
    assert rows == lab.run(NAME, seeds=2, results=tmp_path / "local", jobs=1)
    assert len(list(Store(tmp_path / "cluster", NAME, "quick").folder.iterdir())) == 24


def test_a_single_worker_does_the_work_itself(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(softmax_and_boltzmann, "cases", lambda _: CASES[:2])
    monkeypatch.setattr(softmax_and_boltzmann, "computes", None)  # here, not at the worker
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as one:
        rows = lab.run(NAME, seeds=1, results=tmp_path, cluster=one.scheduler_address)
    assert {row["levels"] for row in rows} == {6}


def test_addresses_that_do_not_answer_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("onelayer.sharded.workers.PATIENCE", 1.0)
    gc.collect()
    for address in ("tcp://127.0.0.1:9", "nonsense", ""):
        before = _clients()
        with pytest.raises(OptionError, match="a Dask scheduler that answers"):
            lab.run(NAME, results=tmp_path, cluster=address)
        assert _clients() == before  # one that closes itself while another starts waits forever


def _clients() -> int:
    return sum(type(each) is distributed.Client for each in gc.get_objects())


def test_a_scheduler_without_workers_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("onelayer.sharded.workers.PATIENCE", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as empty,
        pytest.raises(OptionError, match=r"has none.*dask worker tcp://"),
    ):
        lab.run(NAME, results=tmp_path, cluster=empty.scheduler_address)
