"""What rows of low-rank updates say, and what they stand on."""

from __future__ import annotations

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
