"""Runs that were cut by their budget of steps never say no."""

from __future__ import annotations

from onelayer.lab.endings import answer, of_settings, said

FLAT, CUT, RIGHT = {"ended_by": "plateau"}, {"ended_by": "budget"}, {"ended_by": "all right"}


def test_a_no_needs_runs_whose_loss_had_stopped_falling() -> None:
    assert answer([FLAT, FLAT], [False, False]) == ("no", "")
    assert answer([FLAT, CUT], [False, False])[0] == "open"
    assert answer([CUT, CUT], [True, True]) == ("yes", "")
    assert answer([FLAT, RIGHT], [False, True])[0] == "partly"
    assert answer([FLAT, CUT, RIGHT], [False, False, True])[0] == "partly"


def test_in_part_needs_a_run_that_came_to_its_end_without() -> None:
    found, reason = answer([CUT, RIGHT], [False, True])
    assert found == "open"
    assert reason == " Of the 1 that did not, 1 was still learning when their budget of steps ended."
    assert of_settings([([CUT], False), ([RIGHT], True)])[0] == "open"
    assert of_settings([([CUT, RIGHT], False), ([RIGHT], True)])[0] == "partly"  # it learned, and did not find it


def test_settings_are_judged_by_all_of_their_runs() -> None:
    assert of_settings([([FLAT, RIGHT], True), ([RIGHT, CUT], True)]) == ("yes", "")
    assert of_settings([([FLAT, FLAT], False), ([FLAT], False)]) == ("no", "")
    found, reason = of_settings([([FLAT, CUT], False), ([FLAT], False)])
    assert found == "open"
    assert reason == " In 1 of the 2 cases that do not, runs were still learning when their steps were spent."
    assert of_settings([([FLAT, CUT], False), ([FLAT], True)])[0] == "partly"
    assert of_settings([]) == ("open", "")


def test_how_runs_ended_is_counted_by_what_rows_say() -> None:
    found = said([FLAT, CUT, CUT, RIGHT, {}])
    assert found == (
        "What ended 5 runs of training: the budget of steps 2, a loss that had stopped falling 1, "
        "all answers right 1, what was not recorded 1."
    )
    assert said([]) == "There are no runs of training."
    assert "stopped" not in said([RIGHT, CUT])
