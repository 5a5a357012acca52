"""The house in numbers: what one call touches, lines of source, the price of an import, reading words once."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from onelayer import approximate, memorize, memorize_text

SOURCE = Path(__file__).parents[1] / "src"
#: What the same walks touched when three compilers had three kinds of result: functions, modules.
FORMER = {"memorize": (72, 15), "predict": (37, 8), "approximate": (206, 36), "memorize_text": (54, 15)}
SEQUENCES, ROUNDS = 50_000, 5


def count_touched(call: Callable[[], Any]) -> tuple[int, int]:
    """Functions and modules of the library that run, by their names; comprehensions and dunders not counted."""
    functions: set[tuple[str, str]] = set()

    def see(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        ours = f"{SOURCE / 'onelayer'}/" in code.co_filename
        if event == "call" and ours and not code.co_name.startswith(("<", "__")):
            functions.add((code.co_filename, code.co_qualname))

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len({name for name, _ in functions})


def walks() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 4, 3)), rng.integers(0, 5, (20, 4))
    model = memorize(X, Y, certify=False)
    calls = {
        "memorize": lambda: memorize(X, Y, certify=False),
        "predict": lambda: model.predict(X),
        "predict, once more": lambda: model.predict(X),
        "approximate": lambda: approximate("x - mean(y)", n=2, tolerance=0.2),
        "memorize_text": lambda: memorize_text("to be, or not to be, that is the question", 6, certify=False),
    }
    rows = []
    for name, call in calls.items():
        functions, modules = count_touched(call)
        former_functions, former_modules = FORMER.get(name, ("", ""))
        before = {"functions before": former_functions, "modules before": former_modules}
        rows.append({"call": name, "functions": functions, "modules": modules, **before})
    return rows


def lines() -> list[dict[str, Any]]:
    rows = []
    for package in ("onelayer", "onelayer_checker"):
        files = sorted((SOURCE / package).rglob("*.py"))
        rows.append({"package": package, "files": len(files), "lines": sum(_lines(path) for path in files)})
    return rows


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def imports() -> list[dict[str, Any]]:
    """CPU seconds of an interpreter that imports it, less those of one that imports nothing; the best of some."""

    def cpu(statement: str) -> float:
        program = f"import time\n{statement}\nprint(time.process_time())"
        ran = (
            subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
            for _ in range(ROUNDS)
        )
        return min(map(float, ran))

    nothing = cpu("pass")
    numpy = cpu("import numpy") - nothing
    rows = []
    for statement in ("import onelayer", "from onelayer import load", "from onelayer import memorize"):
        seconds = cpu(statement) - nothing
        rows.append({"statement": statement, "CPU s": seconds, "over import numpy": seconds / numpy})
    return rows


def measure_reading() -> list[dict[str, Any]]:
    """`onelayer memorize` on sequences of words, and how much of it is reading them."""
    from onelayer.problems.tables import read_table

    rng = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(5_000)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.csv"
        ids = rng.integers(0, len(words), (SEQUENCES, 4))
        rows = "".join(
            f"{i},{words[w]},{rng.integers(0, 9)}\n" for i, sequence in enumerate(ids.tolist()) for w in sequence
        )
        path.write_text("sequence,token,answer\n" + rows)
        table, seconds = None, []
        for _ in range(3):
            start = time.process_time()
            table = read_table(path)
            seconds.append(time.process_time() - start)
        assert table is not None
        start = time.process_time()
        memorize(table.X, table.Y, lengths=table.lengths, positions=True, certify=False)
        return [
            {
                "sequences": SEQUENCES,
                "reading the file, CPU s": min(seconds),
                "compiling what was read, CPU s": time.process_time() - start,
            }
        ]


def run() -> dict[str, list[dict[str, Any]]]:
    return {
        "What a call touches": walks(),
        "Lines of source": lines(),
        "Importing": imports(),
        "Reading words once": measure_reading(),
    }
