"""`python -m onelayer_checker FOLDER`: judge a certificate; exit code 0 only for VERIFIED."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from onelayer_checker.core.meaning import Required
from onelayer_checker.front import check

USAGE = 64  # exit code of a command line that is not understood


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.format_usage()}{self.prog}: {message}\n")  # not argparse's 2, which is UNKNOWN


def main() -> None:
    parser = Parser(prog="onelayer_checker", description=__doc__)
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
    given = parser.parse_args()
    if given.jobs < 1 or not 64 <= given.bits <= 8192:
        parser.error("--jobs is at least 1, --bits from 64 to 8192")
    try:
        for text in given.require:
            Required.read(text)
    except ValueError as error:
        parser.error(str(error))
    report = check(
        given.folder,
        data=given.data,
        require=given.require,
        engine=given.engine,
        escalate=given.escalate,
        dense=given.dense,
        jobs=given.jobs,
        bits=given.bits,
        show=(lambda _: None) if given.json else print,
    )
    if given.json:
        print(json.dumps(report.to_json()))
    else:
        for note in report.notes:
            print(f"note: {note}")
        if report.why:
            print(report.why)
        print(report.result)
    sys.exit(report.exit_code)


if __name__ == "__main__":
    main()
