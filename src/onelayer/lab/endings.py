"""What may be said of training that found nothing: only runs whose loss had stopped falling tell that it does not.

Rows say in `ended_by` what ended a run. Rows that do not say it count as those that the budget ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from onelayer.lab.experiment import Row
from onelayer.lab.statistics import tally

Answer = Literal["yes", "no", "partly", "open"]
#: What ended a run, in words.
ENDS = {
    "plateau": "a loss that had stopped falling",
    "all right": "all answers right",
    "budget": "the budget of steps",
}


def learning(row: Row) -> bool:
    """Whether a run may have been still learning when it ended."""
    return bool(row.get("ended_by", "budget") == "budget")


def still_learning(trained: Iterable[Row]) -> str:
    """What is to be said beside an answer of runs that were still learning, if there are any."""
    cut = [learning(row) for row in trained]
    says = (
        f" In {sum(cut)} of {len(cut)} trained runs the loss still fell when steps were spent: more may do better."
    )
    return says if any(cut) else ""


def said(rows: Sequence[Row]) -> str:
    """How the runs ended, as a finding: by what their rows say, and by nothing that they do not say."""
    counted = tally(ENDS.get(str(row.get("ended_by")), "what was not recorded") for row in rows)
    return f"What ended {len(rows)} runs of training: {counted}." if rows else "There are no runs of training."


def answer(rows: Sequence[Row], good: Sequence[bool]) -> tuple[Answer, str]:
    """Whether training found it, from runs and whether each did; and the reason if that stays open.

    It is found in part only if a run that did not find it had come to its end: of others nobody knows.
    """
    if good and all(good):
        return "yes", ""
    reason = _reason(rows, good)
    if any(good):
        at_end = any(not fine and not learning(row) for row, fine in zip(rows, good, strict=True))
        return ("partly" if at_end else "open"), reason
    return ("open" if reason else "no"), reason


def of_settings(settings: Sequence[tuple[Sequence[Row], bool]]) -> tuple[Answer, str]:
    """The same of settings, each with its runs and whether they did; "open" if there are none.

    Of a setting that did not, its runs are those that tell why: it is counted as ended if any of them is.
    """
    failed = [rows for rows, good in settings if not good]
    cut = sum(any(learning(row) for row in rows) for rows in failed)
    reason = (
        f" In {cut} of the {len(failed)} cases that do not, runs were still learning when their steps were spent."
        if cut
        else ""
    )
    if len(failed) == len(settings):
        return ("open" if cut or not settings else "no"), reason
    at_end = any(not learning(row) for rows in failed for row in rows)
    return ("yes" if not failed else "partly" if at_end else "open"), reason


def _reason(rows: Sequence[Row], good: Sequence[bool]) -> str:
    failed = [row for row, fine in zip(rows, good, strict=True) if not fine]
    many = sum(learning(row) for row in failed)
    if not many:
        return ""
    learnt = "was" if many == 1 else "were"
    return f" Of the {len(failed)} that did not, {many} {learnt} still learning when their budget of steps ended."
