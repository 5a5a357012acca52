"""`python -m attacks.lines`: delete or alter each line of the checker, one at a time; list what no test noticed.

Exit code 1 if a mutant survives that is not argued away, or if an argument is about nothing. With --tests other
tests are run than those that are aimed at a module: what they notice is counted, and nothing is demanded of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attacks.lines import aims, argued
from attacks.lines.mutations import Mutant, mutants
from attacks.lines.workshop import PACKAGE, Workshop

COLUMNS = ("mutants", "failed", "out of time", *argued.EFFECTS, "survived", "not run")


@dataclass
class Tally:
    """What became of the mutants of some modules."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    survivors: list[Mutant] = field(default_factory=list)
    noticed: list[Mutant] = field(default_factory=list)  # though they were argued
    endless: list[Mutant] = field(default_factory=list)  # noticed, since a test took many times as long
    left: list[Mutant] = field(default_factory=list)  # for lack of time
    tests: Counter[str] = field(default_factory=Counter)

    def add(self, mutant: Mutant, result: str, argument: argued.Argument | None, test: str) -> None:
        count = self.counts.setdefault(mutant.module, Counter())
        count["mutants"] += 1
        if result == "passed":
            if argument is None:
                self.survivors.append(mutant)
            result = "survived" if argument is None else argument.effect
        elif result == "not run":
            self.left.append(mutant)
        elif result == "out of time":
            self.endless.append(mutant)
        elif argument is not None:
            self.noticed.append(mutant)
        count[result] += 1
        if test:
            self.tests[f"{mutant.module} {test}"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="attacks.lines", description=__doc__)
    parser.add_argument("--ring", choices=aims.RINGS, action="append", help="only modules of this ring")
    parser.add_argument("--module", action="append", help="only this module: exactness, or core/exactness")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no mutant later than this")
    parser.add_argument("--sample", type=int, help="only this many mutants, chosen by their hash")
    parser.add_argument("--unargued", action="store_true", help="only mutants that are not argued away")
    parser.add_argument("--matching", default="", help="only mutants whose old or new line contains this")
    parser.add_argument("--tests", action="append", metavar="PATH", help="these tests instead of the aimed ones")
    parser.add_argument("--again", type=Path, help="only survivors, and what was not run, in this file of --json")
    parser.add_argument("--no-baseline", action="store_true", help="the tests pass on the checker as it is")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    given = parser.parse_args()
    listed = [
        m for ring in given.ring or [None] for name in given.module or [None] for m in aims.modules(ring, name)
    ]
    made = {module: mutants(module, (PACKAGE / f"{module}.py").read_text()) for module in listed}
    every = [mutant for found in made.values() for mutant in found]
    chosen = [mutant for mutant in every if given.matching in mutant.old or given.matching in mutant.new]
    if given.again is not None:
        before = json.loads(given.again.read_text())
        again = {tuple(key) for key in before["survivors"] + before["left"]}
        chosen = [mutant for mutant in chosen if mutant.key in again]
    arguments = argued.read()
    if given.unargued:
        chosen = [mutant for mutant in chosen if mutant.key not in arguments]
    if given.sample is not None:
        chosen = sorted(chosen, key=_hash)[: given.sample]
    start = time.monotonic()
    tally = attack(chosen, arguments, given.jobs, start + given.seconds, given.no_baseline, given.tests)
    forgotten = argued.stale(arguments, every)
    if given.tests is not None:
        tally.noticed = []  # an argument says that no aimed test notices
    unaimed = [module for ring in given.ring or () if not given.module for module in aims.modules_without_aim(ring)]
    show = _json if given.json else _table
    show(tally, forgotten, unaimed, time.monotonic() - start)
    sys.exit(given.tests is None and bool(tally.survivors or tally.noticed or forgotten))


def attack(
    chosen: Sequence[Mutant],
    arguments: dict[tuple[str, str, str, str], argued.Argument],
    jobs: int = 1,
    end: float = float("inf"),
    no_baseline: bool = False,
    tests: Sequence[str] | None = None,
) -> Tally:
    """Run the tests aimed at each mutant's module, or these ``tests``, until one fails."""
    tally = Tally()
    with Workshop(jobs) as workshop:
        for module in dict.fromkeys(mutant.module for mutant in chosen):
            own = [mutant for mutant in chosen if mutant.module == module]
            left = dict(enumerate(own))
            for index, outcome in workshop.run(own, tests or aims.AIMS[module], not no_baseline, end):
                mutant = left.pop(index)
                tally.add(mutant, outcome.result, arguments.get(mutant.key), outcome.test)
            for mutant in left.values():
                tally.add(mutant, "not run", None, "")
    return tally


def _hash(mutant: Mutant) -> str:
    return hashlib.sha256(repr(mutant.key).encode()).hexdigest()


def _table(tally: Tally, forgotten: list[str], unaimed: list[str], seconds: float) -> None:
    width = max([len(module) for module in tally.counts] + [6])
    print("module".ljust(width), *COLUMNS, sep="  ")
    total: Counter[str] = Counter()
    for module, count in tally.counts.items():
        print(module.ljust(width), *(str(count[c]).rjust(len(c)) for c in COLUMNS), sep="  ")
        total += count
    print("all".ljust(width), *(str(total[c]).rjust(len(c)) for c in COLUMNS), sep="  ")
    print(f"{seconds:.0f} s; failed and out of time are noticed; {', '.join(argued.EFFECTS)} are argued away")
    for title, listed in (
        ("survived", tally.survivors),
        ("argued away, but noticed", tally.noticed),
        ("out of time", tally.endless),
    ):
        for mutant in listed:
            print(f"\n{title}: {mutant.diff}")
    for text in forgotten:
        print(f"\nargued away, but no mutant: {text}")
    if unaimed:
        print(f"\nno tests are aimed at: {', '.join(unaimed)}")


def _json(tally: Tally, forgotten: list[str], unaimed: list[str], seconds: float) -> None:
    found = {
        "modules": {module: dict(count) for module, count in tally.counts.items()},
        "survivors": [mutant.key for mutant in tally.survivors],
        "left": [mutant.key for mutant in tally.left],
        "noticed": [mutant.key for mutant in tally.noticed],
        "out of time": [mutant.key for mutant in tally.endless],
        "tests": dict(tally.tests.most_common()),
        "forgotten": forgotten,
        "unaimed": unaimed,
        "seconds": seconds,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
