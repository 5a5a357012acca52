"""Samples are independent: parts of them are looked at side by side, each in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

Found = TypeVar("Found")
#: Tokens for which it pays to start processes.
LEAST = 1 << 15


class Lost(OSError):
    """A process ended without an answer; nothing is known of its samples."""

    gate = "processes"


def side_by_side(
    jobs: int, count: int, tokens: int, run: Callable[[int, int], Found], done: Callable[[int], object]
) -> list[Found]:
    """``run(start, stop)`` for parts of range(count), in their order: in forked processes, or in this one.

    A forked process has everything that this one has, and sends back what it found, or what went wrong.
    """
    jobs = min(jobs, count) if tokens >= LEAST and hasattr(os, "fork") else 1
    if jobs == 1:
        return [run(0, count)]
    import multiprocessing  # not before: it takes as long to import as a small folder to check

    ends = [count * k // jobs for k in range(jobs + 1)]
    context, started = multiprocessing.get_context("fork"), []
    for start, stop in pairwise(ends):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(sender, run, start, stop), daemon=True)
        process.start()
        sender.close()
        started.append((process, receiver, stop))
    found: list[Found] = []
    for process, receiver, stop in started:
        try:
            outcome = receiver.recv()
        except EOFError:
            raise Lost("a process of the checker died; with --jobs 1 there is none") from None
        process.join()
        if isinstance(outcome, BaseException):
            raise outcome
        found.append(outcome)
        done(stop)
    return found


def _send(sender: Any, run: Callable[[int, int], Any], start: int, stop: int) -> None:
    try:
        sender.send(run(start, stop))
    except BaseException as error:
        sender.send(error)
