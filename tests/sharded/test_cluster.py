"""Many machines: a build and a verification on a real cluster, one of whose workers is killed."""

from __future__ import annotations

import os
import signal

import distributed
import numpy as np

from onelayer import memorize

rng = np.random.default_rng(5)
X, Y = rng.standard_normal((120, 4, 3), dtype=np.float32), rng.integers(0, 5, (120, 4))


def test_a_cluster_builds_and_verifies_whoever_is_killed(tmp_path) -> None:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        killed = []

        def kill(line: str) -> None:
            if line.startswith("making shards: 1") and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        address, options = cluster.scheduler_address, {"folder": tmp_path / "model", "shard_answers": 120}
        model = memorize(X, Y, cluster=address, on_step=kill, **options)
        assert killed
        assert model.count == 4
        assert np.array_equal(model.predict(X), Y)
        with distributed.Client(address) as client:
            assert model.verify((X, Y), cluster=client).result == "VERIFIED"
