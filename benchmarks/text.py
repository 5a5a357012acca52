"""A text by heart: Python's language reference, asked for every window, recited, left, and proved."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from onelayer import certify, memorize_text, save
from onelayer.compile.text import python_reference
from onelayer.measure.recall import recall_text

CONTEXT, PASSAGE, CHAPTER, FALSE_HITS = 128, 2000, 20_000, 1e-3


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
    checked = [
        prove_text(text[:CHAPTER], None),
        prove_text(text[:CHAPTER], FALSE_HITS),
        prove_text(text, FALSE_HITS),
    ]
    return {
        "Python's language reference, windows of 128 bytes": [row],
        "what is not stored": [leave_text(text)],
        "the checker": checked,
    }


def leave_text(text: bytes) -> dict[str, object]:
    """The same with fingerprints: where the text ends, and where it is left."""
    model = memorize_text(text, context=CONTEXT, false_hits=FALSE_HITS, certify=False)
    return {
        "parameters": model.n_parameters,
        "recited to the end": model.generate(text[-1000:-500], 2000) == text[-500:],
        "false hits, 1 over fingerprints": model.ledger["false_hits"],
        "measured, at most (95%)": model.ledger["false_hits_measured"],
        "of": model.ledger.meaning("false_hits_measured").split(": ")[1],
    }


def prove_text(text: bytes, false_hits: float | None) -> dict[str, object]:
    """A model of this text alone, certified, then decided again by the checker alone."""
    model = memorize_text(text, context=CONTEXT, false_hits=false_hits, certify=False)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        path = save(Path(folder) / "model", model, certificate=certify(model, text))
        certified = time.perf_counter() - start
        start = time.perf_counter()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            sys.executable,
            "-I",
            "-m",
            "onelayer_checker",
            str(path),
            "--budget",
            "1e13",
            "--memory",
            "2e10",
        ]
        said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "bytes": len(text),
        "false hits": "any" if false_hits is None else false_hits,
        "certify s": certified,
        "verdict": said[-1],
        "claims proved": sum(line.startswith("proved") for line in said),
        "check s": time.perf_counter() - start,
        "check CPU us a byte": 1e6 * used / len(text),
    }
