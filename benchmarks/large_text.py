"""A hundred megabytes of text by heart: built, asked, recited for a million bytes and to its end, with its memory.

The text is what this Python holds: its library and what is installed, files of the kinds below in the order of
their paths, each content once, cut after this many bytes, and a last line with its digest: an end that occurs
elsewhere, too, is none. The digest of it all says what was read; nothing is kept here.
"""

from __future__ import annotations

import hashlib
import resource
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np

from onelayer import Model, memorize_text
from onelayer.problems.tokens import BYTES
from onelayer.problems.windows import read_windows

SIZE, CONTEXT, RECITED, ASKED = 100_000_000, 128, 1_000_000, 1_000_000
LAST_LINE, TAIL = 65, 4_000  # bytes
KINDS = (".py", ".pyi", ".rst", ".md", ".txt")


def text_of_this_python(size: int) -> tuple[bytes, int]:
    """At most this many bytes, and of how many files."""
    library, installed = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    found, seen, files = bytearray(), set(), 0
    for path in (path for folder in (library, installed) for path in sorted(folder.rglob("*"))):
        twice = installed.name in path.relative_to(library).parts if path.is_relative_to(library) else False
        if twice or path.suffix not in KINDS or not path.is_file():
            continue
        content = path.read_bytes()
        digest = hashlib.sha256(content).digest()
        if content and digest not in seen:
            seen.add(digest)
            found += content
            files += 1
        if len(found) >= size:
            break
    text = bytes(found[: size - LAST_LINE])
    return text + b"\n" + hashlib.sha256(text).hexdigest().encode(), files


def write_text(path: Path, size: int) -> tuple[str, int]:
    """Its digest, and of how many files it is. Nobody holds it while it is built: that memory would be counted."""
    text, files = text_of_this_python(size)
    path.write_bytes(text)
    return hashlib.sha256(text).hexdigest(), files


def run(size: int = SIZE) -> dict[str, list[dict[str, object]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.txt"
        digest, files = write_text(path, size)
        start = time.process_time()
        model = memorize_text(
            path, certify=False, on_step=lambda line: print(time.strftime("%H:%M:%S"), line, flush=True)
        )
        built = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes
        text = path.read_bytes()
    first = {
        "bytes": len(text),
        "files": files,
        "SHA-256": digest[:16],
        "distinct windows": model.ledger["distinct"],
        "ambiguous": model.ledger["ambiguous_windows"],
        "distributions": model.ledger["distributions"],
        "parameters": model.n_parameters,
        "bits / parameter": model.ledger["stored_bits"] / model.n_parameters,
        "build CPU s": built,
        "peak GB": peak,
    }
    print(first, flush=True)
    return {
        f"the text of this Python, windows of {CONTEXT} bytes": [first],
        "asked and recited": [asked(model, text)],
    }


def asked(model: Model, text: bytes) -> dict[str, object]:
    """Windows asked in one stretch, a passage recited, and the end."""
    windows, size = model.windows, min(ASKED, len(text) - CONTEXT)
    at = (len(text) - CONTEXT - size) // 2
    stretch = np.frombuffer(text[at : at + CONTEXT + size], np.uint8)
    right = certain = 0
    for rows, classes in windows.classes(stretch):
        given, wanted = windows.distributions[classes], stretch[CONTEXT:][rows]
        sure = given.max(axis=1) == 1
        certain += int(sure.sum())
        right += int((given[sure].argmax(axis=1) == wanted[sure]).sum())
    place, alone, last = certain_passages(text)
    start = time.process_time()
    length, prompts = recite(model, text, place, min(RECITED, len(text) - place))
    seconds = time.process_time() - start
    tail = model.generate(text[last - CONTEXT : last], 10_000)
    return {
        "windows asked": size,
        "with one continuation": certain,
        "right": right,
        "longest passage whose windows have one continuation each": alone,
        "bytes recited exactly": length,
        "of these given, where several go on": prompts,
        "CPU us a byte": 1e6 * seconds / length,
        "bytes to the end, and end noticed": f"{len(text) - last:,}, {'yes' if tail == text[last:] else 'no'}",
        "peak GB with all of this": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def certain_passages(text: bytes) -> tuple[int, int, int]:
    """Where the longest passage begins that is recited without help, how long it is, and where the last begins, of
    some thousand bytes at most."""
    windows = read_windows(np.frombuffer(text, np.uint8), CONTEXT, BYTES)
    several = np.flatnonzero(np.concatenate([[True], windows.which >= BYTES, [True]])) - 1
    longest = int(np.diff(several).argmax())
    place = max(CONTEXT, int(several[longest]) + 1)
    return place, int(several[longest + 1]) - place, max(CONTEXT, int(several[-2]) + 1, len(text) - TAIL)


def recite(model: Model, text: bytes, place: int, length: int) -> tuple[int, int]:
    """How many bytes of a passage are recited as they are in the text. Where several go on, the likeliest may not
    be the text's own: that one is given then, if the model has it among the others, and counted."""
    done = prompts = 0
    while done < length:
        at = place + done
        for token, wanted in zip(model.stream(text[at - CONTEXT : at], length - done), text[at:], strict=False):
            if token[0] != wanted:
                break
            done += 1
        if done == length:
            break
        at = place + done
        if not 0 < model.next_distribution(text[at - CONTEXT : at])[text[at]] < 1:
            break
        done, prompts = done + 1, prompts + 1
    return done, prompts


if __name__ == "__main__":
    print(run(int(float(sys.argv[1]))))
