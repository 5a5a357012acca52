"""A command in a process of its own: what it printed, how it ended, and what it took."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

#: A small process in between: a command begins with the memory of whoever started it, which is not to be counted.
BETWEEN = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = time.perf_counter() - start
print(json.dumps([done.returncode, done.stdout, used.ru_utime + used.ru_stime, seconds, used.ru_maxrss / 1e6]))
"""


class Measured(NamedTuple):
    code: int
    printed: str
    cpu: float  # seconds, of the command and its own processes
    seconds: float
    peak: float  # gigabytes


def measure(*command: str) -> Measured:
    between = [sys.executable, "-I", "-c", BETWEEN, *command]
    return Measured(*json.loads(subprocess.run(between, stdout=subprocess.PIPE, text=True, check=True).stdout))
