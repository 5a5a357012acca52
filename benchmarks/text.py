"""A text by heart: Python's language reference, asked for every window and recited; and a chapter of it, proved.

The checker encloses every token of every window: minutes for a chapter, hours for the book.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from onelayer import certify, memorize_text, save
from onelayer.compile.text import python_reference
from onelayer.measure.recall import recall_text

CONTEXT, PASSAGE, CHAPTER = 128, 2000, 20_000


def run() -> dict[str, list[dict[str, object]]]:
    text = python_reference().encode()
    start = time.perf_counter()
    model = memorize_text(text, context=CONTEXT, certify=False)
    built = time.perf_counter() - start
    measured = recall_text(model, text)
    at = len(text) // 3
    start = time.perf_counter()
    recited = model.generate(text[at : at + CONTEXT], PASSAGE)
    seconds = time.perf_counter() - start
    row = {
        "bytes": len(text),
        "deterministic windows": measured.certain,
        "right": measured.certain_right,
        "ambiguous windows": measured.ambiguous,
        "distributions right": measured.ambiguous_right,
        "build s": built,
        "passage exact": recited == text[at + CONTEXT : at + CONTEXT + PASSAGE],
        "bytes/s recited": PASSAGE / seconds,
        "parameters": model.n_parameters,
    }
    return {"Python's language reference, windows of 128 bytes": [row], "the checker": [prove_text(text[:CHAPTER])]}


def prove_text(text: bytes) -> dict[str, object]:
    """A model of this text alone, certified, then decided anew by the checker alone."""
    model = memorize_text(text, context=CONTEXT, certify=False)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        path = save(Path(folder) / "model", model, certificate=certify(model, text))
        certified = time.perf_counter() - start
        start = time.perf_counter()
        command = [sys.executable, "-I", "-m", "onelayer_checker", str(path)]
        said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return {
        "bytes": len(text),
        "certify s": certified,
        "verdict": said[-1],
        "claims proved": sum(line.startswith("proved") for line in said),
        "check s": time.perf_counter() - start,
    }
