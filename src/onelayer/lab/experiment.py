"""What an experiment is: one question, one module, rows computed from a case and a seed, a picture, and an answer.

A module of `onelayer.lab.experiments` has
    QUESTION     one sentence that ends with a question mark
    HYPOTHESES   what the theory, or we, expect
    EXTRAS       extras that it needs beside `lab`, for example ("torch",)
    cases(preset)        the settings to look at, each a flat dict; preset is "quick" or "full"
    run(case, seed)      rows, flat dicts of numbers, words and None; the same rows for the same case and seed
    plot(rows)           a matplotlib figure
    verdict(rows)        the answer, with numbers computed from the rows
and may have
    EARLIER      what an earlier version of the experiment answered, and why that changed
    computes(case)           the function of a case and a seed that `run` calls for this setting, where they differ;
                             then code that only other settings need does not make its rows those of other code
    of_corpus(cases, path)   the same settings on a person's own corpus, for `lab run --corpus FILE`

`judge` asks a module for its verdict: where a setting has fewer than five seeds, rows have numbers and no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from onelayer.errors import OptionError

Case = dict[str, Any]
Row = dict[str, Any]
Preset = Literal["quick", "full"]
#: Fewer seeds than this give numbers, and no answer.
FEWEST_SEEDS = 5


@dataclass(frozen=True)
class Verdict:
    """A plain answer, and the findings behind it, each a sentence with numbers from the rows."""

    answer: Literal["yes", "no", "partly", "open"]
    says: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Earlier:
    """An answer that did not last, and what was wrong with the ruler."""

    answer: str
    says: str
    why: str


class Experiment(Protocol):
    """The names above, as a module has them."""

    __name__: str
    QUESTION: str
    HYPOTHESES: tuple[str, ...]
    EXTRAS: tuple[str, ...]

    def cases(self, preset: Preset) -> list[Case]: ...

    def run(self, case: Case, seed: int) -> list[Row]: ...

    def plot(self, rows: list[Row]) -> Any: ...

    def verdict(self, rows: list[Row]) -> Verdict: ...


def judge(experiment: Experiment, rows: list[Row]) -> Verdict:
    """The experiment's verdict, which is "open" where a setting has fewer than `FEWEST_SEEDS` seeds."""
    found, counts = experiment.verdict(rows), seeds_by_setting(experiment, rows)
    few = [count for count in counts if count < FEWEST_SEEDS]
    if not few or found.answer == "open":
        return found
    if len(few) < len(counts) or len(set(few)) > 1:
        says = (
            f"{len(few)} of {len(counts)} settings have fewer than {FEWEST_SEEDS} seeds (the fewest {min(few)}), "
            f"too few for an answer. They say: {found.says}"
        )
        return replace(found, answer="open", says=says)
    seeds = "one seed is" if few[0] == 1 else f"{few[0]} seeds are"
    says = f"{seeds.capitalize()} too few for an answer, which takes {FEWEST_SEEDS}. They say: {found.says}"
    return replace(found, answer="open", says=says)


def count_seeds(rows: list[Row]) -> int:
    """Different seeds among the rows."""
    return len({row["seed"] for row in rows})


def seeds_by_setting(experiment: Experiment, rows: list[Row]) -> list[int]:
    """How many seeds each setting has; what a setting is, the experiment's cases say."""
    names = experiment.cases("quick")[0]
    seeds: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows:
        seeds.setdefault(tuple(row.get(name) for name in names), set()).add(row["seed"])
    return [len(each) for each in seeds.values()]


def narrow_cases(cases: list[Case], only: Sequence[str]) -> list[Case]:
    """Those settings that have all of these values, each given as "name=value"."""
    for given in only:
        name, _, value = given.partition("=")
        known = sorted({str(case[name]) for case in cases if name in case})
        if value not in known:
            listed = f"{name} is {', '.join(known)}" if known else f"there are {', '.join(cases[0])}"
            needs, remedy = "a setting that the experiment has", "Give name=value with one of these."
            raise OptionError("lab", needs, f"only={given!r:.60}; {listed}", remedy)
        cases = [case for case in cases if str(case.get(name)) == value]
    return cases


def choose_cases(name: str, experiment: Experiment, preset: Preset, corpus: Path | None = None) -> list[Case]:
    """The settings of a preset, on a corpus if the experiment takes one."""
    cases = experiment.cases(preset)
    if corpus is None:
        return cases
    of_corpus = getattr(experiment, "of_corpus", None)
    if of_corpus is None:
        found = f"{name} makes its own data"
        raise OptionError("lab", "an experiment that reads a corpus", found, "Leave out --corpus, or name another.")
    made: list[Case] = of_corpus(cases, corpus)
    return made
