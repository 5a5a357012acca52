"""Who does the work: processes of this machine, or the workers of a Dask cluster. One that dies costs its piece."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from onelayer.errors import MissingExtraError, OnelayerError, OptionError

Task = Callable[[Any], Any]
#: How often a piece whose worker died is tried again; and seconds to wait for a scheduler's answer.
RETRIES, PATIENCE = 3, 10.0
WORKER = "from onelayer.sharded.workers import serve; serve()"


class Client(Protocol):
    """As Dask's."""

    def submit(self, task: Any, /, *given: Any, **options: Any) -> Any: ...


Cluster = int | str | Client


class Workers(Protocol):
    def run(self, task: Task, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """``task(item)`` for each, somewhere, with its place among the items, in any order."""


class Lost(OnelayerError):
    """A piece of work whose workers died, again and again."""


@contextmanager
def workers_of(cluster: Any, subject: str = "memorize") -> Iterator[Workers]:
    """A number of processes, the address of a Dask scheduler, or a Dask client, which stays open."""
    if isinstance(cluster, bool) or (isinstance(cluster, int) and cluster < 1):
        raise OptionError(subject, "at least one process", f"cluster={cluster!r}", "Give 1 or more.")
    if isinstance(cluster, int):
        processes = Processes(cluster)
        try:
            yield processes
        finally:
            processes.close()
    elif isinstance(cluster, str):
        client = client_of(cluster, subject)
        try:
            yield Dask(client)
        finally:
            client.close()
    elif hasattr(cluster, "submit"):
        yield Dask(cluster)
    else:
        needs = "a number of processes, the address of a Dask scheduler, or a Dask client"
        raise OptionError(subject, needs, f"cluster={cluster!r:.60}", "Give one of these.")


class Processes:
    """Processes of this machine, started when there is work for them, and kept for more."""

    def __init__(self, count: int) -> None:
        self.slots = [_Slot() for _ in range(count)]

    @property
    def ids(self) -> list[int]:
        """Of the processes that run now."""
        return [slot.process.popen.pid for slot in self.slots if slot.process is not None]

    def run(self, task: Task, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        for at in range(len(items)):
            todo.put(at)

        def work(slot: _Slot) -> None:
            with contextlib.suppress(queue.Empty):
                while True:
                    at = todo.get_nowait()
                    done.put((at, slot.ask(task, items[at], at)))

        for slot in self.slots[: len(items)]:
            threading.Thread(target=work, args=(slot,), daemon=True).start()
        for _ in items:
            at, found = done.get()
            if isinstance(found, BaseException):
                raise found
            yield at, found

    def close(self) -> None:
        for slot in self.slots:
            slot.close()


class _Slot:
    """One process after another, each with one piece of work at a time."""

    def __init__(self) -> None:
        self.process: _Process | None = None
        self.closed = False

    def ask(self, task: Task, item: Any, at: int) -> Any:
        for _ in range(1 + RETRIES):
            if self.closed:
                break
            self.process = self.process or _Process()
            try:
                return self.process.ask(task, item)
            except (EOFError, OSError):  # it died, and another gets its piece
                self.process.end()
                self.process = None
        found, remedy = f"{1 + RETRIES} died with piece {at}", "Give them more memory, or ask for smaller shards."
        return Lost("memorize", "workers that live to the end of a piece of work", found, remedy)

    def close(self) -> None:
        self.closed = True
        if self.process is not None:
            self.process.end()


class _Process:
    """A Python of its own, which reads pickled work and writes pickled results."""

    def __init__(self) -> None:
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.popen = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**one, **os.environ}
        )

    def ask(self, task: Task, item: Any) -> Any:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        try:
            pickle.dump((task, item), self.popen.stdin)
            self.popen.stdin.flush()
            return pickle.load(self.popen.stdout)
        except pickle.UnpicklingError:  # it died while it wrote
            raise EOFError from None
        except ValueError:
            if not self.popen.stdout.closed:
                raise
            raise EOFError from None  # it was ended meanwhile, and its pipes closed

    def end(self) -> None:
        """At once: what it was at is not waited for."""
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()


def serve() -> None:
    """What a process does until nobody is left who asks: errors are results, too."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed must not get between the results
    questions = sys.stdin.buffer
    while True:
        try:
            task, item = pickle.load(questions)
        except (EOFError, KeyboardInterrupt):
            return
        try:
            found = task(item)
        except KeyboardInterrupt:
            return
        except BaseException as error:
            found = error
        pickle.dump(found, answers)
        answers.flush()


class Dask:
    """The workers of a cluster; folders that their work names all must see. Dask gives pieces of one that died to
    others."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, task: Task, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        from distributed import as_completed

        futures = {self.client.submit(task, item, pure=False): at for at, item in enumerate(items)}
        try:
            for future in as_completed(list(futures)):  # type: ignore[no-untyped-call]
                yield futures[future], future.result()
        finally:
            self.client.cancel(list(futures))


def client_of(address: str, subject: str) -> Any:
    """A connection to a scheduler that has workers."""
    try:
        from distributed import Client
        from distributed.comm.addressing import parse_address, parse_host_port
    except ImportError:
        raise MissingExtraError("A cluster", "distributed", "cluster") from None
    try:
        # First whether anybody is there: a client that cannot connect is left to the garbage collector, by which it
        # may close itself in the middle of another's start, and both wait forever.
        socket.create_connection(parse_host_port(parse_address(address)[1], 8786), PATIENCE).close()
        client: Any = Client(address, timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        needs, remedy = "a Dask scheduler that answers", "Start one with: dask scheduler."
        raise OptionError(subject, needs, f"{address!r} does not ({error})", remedy) from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except OSError:
        client.close()
        remedy = f"Start one on each machine with: dask worker {address}"
        raise OptionError(subject, "a Dask worker at least", f"{address!r} has none", remedy) from None
    return client
