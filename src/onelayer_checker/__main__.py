"""`python -m onelayer_checker FOLDER`: judge a certificate; exit code 0 only for VERIFIED."""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from onelayer_checker import MANIFEST

UNFIT, USAGE, INTERRUPTED, BROKEN_PIPE = 4, 64, 130, 141  # exit codes; only the first is one of a verdict


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.format_usage()}{self.prog}: {message}\n")  # not argparse's 2, which is UNKNOWN


def say(line: object) -> None:
    """One line of ASCII, whatever is in it: a folder must not move the cursor, or begin a line of its own."""
    text = re.sub(r"\s*\n\s*", " ", str(line))
    print(re.sub(r"[^ -~]", lambda found: ascii(found[0])[1:-1], text), flush=True)


def run() -> int:
    plain = partial(argparse.HelpFormatter, width=100)  # whoever asks for the width imports much else
    parser = Parser(prog="onelayer_checker", description=__doc__, formatter_class=plain)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--data", type=Path, help="your own JSON lines, or text: demand that it is what is certified"
    )
    parser.add_argument("--require", action="append", default=[], help='a claim that must be, "memorizes float32"')
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--engine", choices=("numpy", "arb", "both"), default="numpy", help="for real arithmetic")
    parser.add_argument("--escalate", action="store_true", help="let Arb judge what the kernel leaves undecided")
    parser.add_argument("--dense", action="store_true", help="evaluate every layer, search for nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that share the samples")
    parser.add_argument("--bits", type=int, default=128, help="first precision of Arb, 64 to 8192")
    parser.add_argument("--budget", type=float, help="operations; by default 3e10 and 2000 for each byte")
    parser.add_argument("--memory", type=float, help="bytes; by default 4e9")
    given = parser.parse_args()
    if given.jobs < 1 or not 64 <= given.bits <= 8192:
        parser.error("--jobs is at least 1, --bits from 64 to 8192")
    fresh = "numpy" not in sys.modules
    if fresh:
        gc.disable()  # nothing that is imported is garbage, and looking for it takes longer than a small folder
    from onelayer_checker.core.meaning import Required  # not before: what is missing must not end in exit code 1
    from onelayer_checker.front import check

    if fresh:
        gc.freeze()
        gc.enable()

    try:
        for text in given.require:
            Required.read(text)
    except ValueError as error:
        parser.error(str(error))
    options = {name: value for name, value in vars(given).items() if name not in ("folder", "data", "json")}
    options["show"] = (lambda _: None) if given.json else say
    if (given.folder / MANIFEST).is_file():
        if given.data is not None:
            parser.error("--data goes with a folder of one model; `onelayer verify` parts data for shards")
        from onelayer_checker.shards import check_shards

        report = check_shards(given.folder, **options)
    else:
        report = check(given.folder, data=given.data, **options)
    if given.json:
        print(json.dumps(report.to_json()), flush=True)
    else:
        for note in report.notes:
            say(f"note: {note}")
        if report.why:
            say(report.why)
        say(report.result)
    return report.exit_code


def main() -> NoReturn:
    """Only a verdict ends with the exit code of one: an exception nobody foresaw would end with 1, NOT VERIFIED."""
    try:
        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # whoever reads the verdict has not seen all of it
        code = BROKEN_PIPE
    except Exception as error:
        sys.stderr.write(f"{ascii(error)[:200]}\nUNFIT\n")
        code = UNFIT
    if code in (UNFIT, BROKEN_PIPE):  # what could not be written would be tried again at exit, with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


if __name__ == "__main__":
    main()
