"""Programs in processes of their own that start fast: they are forked from one that has imported the library.

Starting Python and importing the command line takes most of a second; a fork of a process that has done so takes
hundredths. Nothing that reads the environment, or that some test hides, is imported before the fork.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

COMMAND_LINE = "from onelayer.cli import main; main()"
CHECKER = "from onelayer_checker.__main__ import main; main()"
#: As `env -i COLUMNS=200 PATH= onelayer ...`.
WIDE = {"COLUMNS": "200", "PATH": ""}
IMPORTED = (
    "typer",
    "rich.console",
    "rich.markdown",
    "rich.progress",
    "rich.table",
    "typer.rich_utils",
    "onelayer.compile.approximate",
    "onelayer.compile.memorize",
    "onelayer.compile.text",
    "onelayer.certificates.explain",
    "onelayer.export.bundle",
    "onelayer.measure.report",
    "onelayer.measure.price",
    "onelayer.measure.recall",
    "onelayer_checker.front",
)

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(IMPORTED))


def run_python(
    program: str,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit: Callable[[], None] | None = None,
    stdout: int | None = None,
    text: bool = True,
) -> subprocess.CompletedProcess[Any]:
    """As ``python -W error -c PROGRAM ARGUMENTS``: what it wrote and how it ended.

    It calls ``limit`` first, and writes to the file descriptor ``stdout`` if one is given.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        words = [str(argument) for argument in arguments]
        sinks = (out.fileno() if stdout is None else stdout, err.fileno())
        streams = [multiprocessing.reduction.DupFd(sink) for sink in sinks]
        process = _context.Process(target=_run, args=(program, words, streams, dict(env or os.environ), cwd, limit))
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        written = []
        for stream in (out, err):
            stream.seek(0)
            content = stream.read()
            written.append(content.decode() if text else content)
    return subprocess.CompletedProcess([program, *words], code, *written)


def run_command(*arguments: object, ok: int | None = 0, **options: Any) -> subprocess.CompletedProcess[Any]:
    """``onelayer ARGUMENTS`` on a wide screen; it must end with the code ``ok``, and never with a traceback."""
    done = run_python(COMMAND_LINE, *arguments, **{"env": WIDE} | options)
    assert ok is None or done.returncode == ok, (done.returncode, done.stderr, done.stdout)
    assert "Traceback" not in str(done.stderr)
    return done


def _run(
    program: str,
    words: list[str],
    streams: list[Any],
    env: dict[str, str],
    cwd: Path | None,
    limit: Callable[[], None] | None,
) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server of forks ignores it
    for number, stream in enumerate(streams, 1):
        os.dup2(stream.detach(), number)
    sys.stdout, sys.stderr = (io.TextIOWrapper(os.fdopen(i, "wb", closefd=False), "utf-8") for i in (1, 2))
    sys.stderr.reconfigure(errors="backslashreplace", line_buffering=True)
    os.environ.clear()
    os.environ.update(env)
    if cwd is not None:
        os.chdir(cwd)
    if limit is not None:
        limit()
    warnings.resetwarnings()
    warnings.simplefilter("error")
    sys.argv = ["-c", *words]
    exec(program, {"__name__": "__main__"})
    sys.exit()
