"""Data that no memory holds: 10^8 answers in shards, by two processes of which one is killed on the way.

Only if it is named: at 10^8 answers it writes 20 GB and takes the better part of an hour on two cores. With
ONELAYER_SHARDS=1e7 the same is done with fewer answers.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onelayer import memorize
from onelayer.sharded.build import SHARD_ANSWERS
from onelayer.sharded.workers import WORKER

n = d = 16
CLASSES, WORKERS, SAMPLE = 256, 2, 1_000_000
#: Sequences of a file.
FILE = 1 << 18


def block(number: int, count: int) -> tuple[Any, Any]:
    """The same numbers for the same block, whenever it is asked for."""
    rng = np.random.default_rng([2026, number])
    X = rng.standard_normal((count, n, d), dtype=np.float32)
    return X, rng.integers(0, CLASSES, (count, n), dtype=np.int16)


def write(folder: Path, sequences: int) -> None:
    for number, start in enumerate(range(0, sequences, FILE)):
        X, Y = block(number, min(FILE, sequences - start))
        np.save(folder / f"{number:05d}-X.npy", X)
        np.save(folder / f"{number:05d}-Y.npy", Y)


def sampled(folder: Path, sequences: int) -> Iterator[tuple[Any, Any]]:
    """About a million answers, evenly spaced."""
    step = max(1, sequences * n // SAMPLE)
    for path in sorted(folder.glob("*-X.npy")):
        X, Y = (np.load(str(path).replace("-X.", f"-{name}."), mmap_mode="r")[::step] for name in "XY")
        yield np.array(X), np.array(Y)


class Memory(threading.Thread):
    """The largest resident size of this process and its children together, twice a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.running = 0, True

    def run(self) -> None:
        while self.running:
            self.most = max(self.most, _resident())
            time.sleep(0.5)


def _resident() -> int:
    """Of private pages: those of mapped files are the system's to drop."""
    total, mine = 0, {os.getpid()}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            said = dict(line.split(":", 1) for line in status.read_text().splitlines())
            if int(status.parent.name) in mine or int(said["PPid"]) in mine:
                total += 1024 * int(said["RssAnon"].split()[0])
        except (OSError, KeyError, ValueError):
            continue
    return total


@contextmanager
def measured(found: dict[str, Any], name: str) -> Iterator[None]:
    def cpu() -> float:
        return sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )

    memory, wall, before = Memory(), time.perf_counter(), cpu()
    memory.start()
    yield
    memory.running = False
    memory.join()
    found[f"{name}: wall s"] = time.perf_counter() - wall
    found[f"{name}: CPU s"] = cpu() - before
    found[f"{name}: GB of memory, all processes"] = memory.most / 1e9


def killer(killed: list[int], after: int) -> Callable[[str], None]:
    """Kills one of the processes when this many shards are made."""

    def step(line: str) -> None:
        print(time.strftime("%H:%M:%S"), line, flush=True)
        if not killed and line.startswith(f"making shards: {after} "):
            time.sleep(1.0)  # in the midst of the next
            victim = _children()[0]
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    return step


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, parent = (
                (path / "cmdline").read_bytes(),
                (path / "status").read_text().split("PPid:")[1].split()[0],
            )
        except (OSError, IndexError):
            continue
        if WORKER.encode() in command and int(parent) == os.getpid():
            found.append(int(path.name))
    return sorted(found)


def row(answers: int, root: Path) -> dict[str, Any]:
    sequences, data, size = answers // n, root / "data", min(SHARD_ANSWERS, answers // 8)
    data.mkdir()
    found: dict[str, Any] = {"answers": sequences * n, "classes": CLASSES, "n": n, "d": d, "workers": WORKERS}
    with measured(found, "data written"):
        write(data, sequences)
    found["GB of data"] = sum(path.stat().st_size for path in data.iterdir()) / 1e9
    killed: list[int] = []
    with measured(found, "build"):
        model = memorize(
            str(data / "*-X.npy"), str(data / "*-Y.npy"), cluster=WORKERS, folder=root / "model", certify=False,
            dtype="float32", shard_answers=size, on_step=killer(killed, max(1, answers // size // 2)),
        )  # fmt: skip
    found["processes killed"] = len(killed)
    found["shards"], found["parameters an answer"] = model.count, model.n_parameters / (sequences * n)
    found["bits a parameter"] = sequences * n * np.log2(CLASSES) / model.n_parameters
    right = asked = 0
    with measured(found, "sample asked"):
        parts = list(sampled(data, sequences))
        X, Y = (np.concatenate(some) for some in zip(*parts, strict=True))
        right, asked = int((model.predict(X) == Y).sum()), Y.size
    found["asked"], found["right"] = asked, right
    with measured(found, "verify"):
        report = model.verify(
            cluster=WORKERS, show=lambda shard: print(time.strftime("%H:%M:%S"), shard, flush=True)
        )
    found["verdict"], found["notes"] = report.result, "; ".join(report.notes)
    found["GB of the model"] = sum(p.stat().st_size for p in (root / "model").rglob("*.*") if p.is_file()) / 1e9
    found["GB of weights"] = sum(p.stat().st_size for p in (root / "model").rglob("model.safetensors")) / 1e9
    return found


def run() -> dict[str, list[dict[str, Any]]]:
    answers = int(float(os.environ.get("ONELAYER_SHARDS", "1e8")))
    root = Path(tempfile.mkdtemp(prefix="onelayer-shards-"))
    try:
        found = row(answers, root)
    finally:
        shutil.rmtree(root)
    return tables(found)


def tables(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    measured = [{"measured": name, "value": value} for name, value in found.items()]
    plan = [{"of 10^9 answers, in proportion": name, "value": value} for name, value in planned(found).items()]
    return {"Answers in shards": measured, "A plan for 10^9 answers": plan}


def planned(found: dict[str, Any], answers: float = 1e9) -> dict[str, Any]:
    """Work and disk grow with the answers, and memory with the shards that are made at once."""
    times = answers / found["answers"]
    cpu = [times * found[f"{name}: CPU s"] / 3600 for name in ("build", "verify")]
    return {
        "shards of the usual size": round(answers / SHARD_ANSWERS),
        "GB of data; as much for the spill, which goes at the end": times * found["GB of data"],
        "GB of the model, with the data its certificates are about": times * found["GB of the model"],
        "GB of weights": times * found["GB of weights"],
        "build: CPU hours": cpu[0],
        "verify: CPU hours": cpu[1],
        "workers to do both in an hour": int(np.ceil(sum(cpu))),
    }
