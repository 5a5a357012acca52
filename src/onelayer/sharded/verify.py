"""Every shard before the checker, by processes or by a cluster; the verdict on all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from onelayer.sharded.workers import Cluster, workers_of
from onelayer_checker import Report, Shard, check_shard, conclude, read_manifest

#: Parts of a person's own data, by the shard in which each is looked for.
Parts = dict[int, tuple[Any, Any]]


def verify_shards(
    folder: str | os.PathLike[str],
    parts: Parts | None = None,
    require: Iterable[str] = (),
    *,
    cluster: Cluster = 1,
    show: Callable[[Shard], object] = lambda _: None,
    **options: Any,
) -> Report:
    """What `onelayer_checker.check_shards` says, with each shard judged by any worker. Whoever is not sure of them
    asks the checker alone."""
    report = conclude(folder, [])
    if report.result == "MALFORMED":
        return report
    count, found = len(read_manifest(folder).shards), []
    task = partial(judged, folder=os.path.abspath(folder), options=options | {"require": list(require)})
    with workers_of(cluster, "verify") as workers:
        for _, shard in workers.run(task, [(k, None if parts is None else parts.get(k)) for k in range(count)]):
            show(shard)
            found.append(shard)
    report = conclude(folder, found)
    if parts is None or report.result != "VERIFIED":
        return report
    said = f"all {sum(len(X) for X, _ in parts.values()):,} sequences are certified with these answers"
    return replace(report, notes=(*report.notes, f"the data given: {said}, each in its shard"))


def judged(item: tuple[int, Any], folder: str, options: dict[str, Any]) -> Shard:
    """One shard, by the checker, in a process of a worker."""
    number, data = item
    shard = check_shard(folder, number, data=data, **options)
    return replace(shard, report=replace(shard.report, judge_with=None))
