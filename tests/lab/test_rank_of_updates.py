"""What rows of low-rank updates say, and what they stand on."""

from __future__ import annotations

import json
import math
from typing import Any

from onelayer.lab import find, registry
from onelayer.lab.experiment import Row
from onelayer.lab.patterns import NAMES

RANKS: Any = find("rank-of-updates")


def row(seed: int, deciding: int = 2, **said: Any) -> Row:
    made: Row = {"part": "trained", "deciding": deciding, "rank": 20, "steps": 200, "seed": seed}
    made |= {"accuracy": 1.0, "hinge": 0.0, "learning_rate": 1.0, "taken": 60, "ended_by": "all right"}
    made |= {f"energy {name}": 0.999 for name in NAMES} | {f"directions {name}": deciding for name in NAMES}
    made |= {f"smallest {gone:g}": gone * (1 + 0.01 * seed) for gone in RANKS.SHARES}
    made |= {f"largest {gone:g}": 2 * gone for gone in RANKS.SHARES}
    return made | {"attended": 0.4} | said


def test_runs_that_the_budget_ended_do_not_say_no() -> None:
    many, dear = {"directions W_Q": 7}, {"smallest 0.4": 3.0}
    assert RANKS.verdict([row(s) for s in range(5)]).answer == "yes"
    assert RANKS.verdict([row(s, **many) for s in range(5)]).answer == "partly"
    assert RANKS.verdict([row(s, **many, **dear, ended_by="plateau") for s in range(5)]).answer == "no"
    cut = RANKS.verdict([row(s, **many, **dear, ended_by="budget") for s in range(5)])
    assert cut.answer == "open"
    assert "still learning" in cut.says


def test_twins_stand_beside_layers_of_full_rank_by_seed() -> None:
    rows = [row(s, accuracy=0.9 + 0.01 * s) for s in range(5)]
    rows += [row(s, part="twin", rank=1, accuracy=0.8 + 0.01 * s) for s in range(5)]
    (said,) = (text for text in RANKS.verdict(rows).findings if text.startswith("Rank 1 where 2"))
    assert "seed by seed: -0.1 ± 0." in said


def test_rows_stand_on_the_code_of_their_own_part() -> None:
    for part, compiled in (("trained", False), ("twin", False), ("digits", False), ("compiled", True)):
        found = registry.stands_on(RANKS.__name__, RANKS.computes({"part": part}).__name__)
        assert ("onelayer.compile.prune" in found) is compiled
        assert ("onelayer.lab.patterns" in found) is not compiled


def test_a_run_whose_weights_grow_without_bound_has_a_row() -> None:
    """At a rate of 3, the best after a share of the steps, weights of this setting are no numbers later."""
    (found,) = RANKS.run({"part": "twin", "deciding": 3, "rank": 1, "steps": 200}, 3)
    assert all(math.isfinite(value) for value in found.values() if isinstance(value, (int, float)))
    assert found["hinge"] < 1
    steps = [step for step, _, _ in json.loads(found["curve"])]
    assert (steps[0], steps[-1]) == (0, found["taken"])


def test_rates_at_an_end_of_those_tried_are_said() -> None:
    rows = [row(s, at_an_end=int(s < 2), learning_rate=10.0 if s < 2 else 3.0) for s in range(5)]
    said = RANKS.verdict(rows).findings[-1]
    assert said == "The best rate was an end of those tried in 2 of 5 trained runs (trained, rank 20, rate 10: 2)."


def test_weights_that_did_not_move_have_no_directions() -> None:
    still = {f"directions {name}": None for name in NAMES} | {f"energy {name}": None for name in NAMES}
    assert RANKS.verdict([row(s, **still, ended_by="plateau") for s in range(5)]).answer == "partly"
