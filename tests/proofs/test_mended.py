"""Faults that were mended: with the mend taken out, the checks of this folder notice."""

from __future__ import annotations

import pytest

from attacks.counterexamples import bundle
from attacks.functions import COPY, SILENT, about, constant
from onelayer_checker.functions import cells as functions
from tests.checker import mutants
from tests.checker.asked import check
from tests.proofs import test_attention, test_cells, test_exact_sums, test_stacks
from tests.proofs.modules import NAMES, SOURCES, run
from tests.proofs.theorems import Q

FIT = "return bool(sums_fit((most + sum(r.most for r in self.rows)) * UP * UP, A))"
HEADS = 'return linear(aside, self.tensors["attention.W_O"].reshape(-1, h.m.shape[1]), h, A)'
ONE_BY_ONE = "from onelayer_checker.core.balls import add\n        return add(h, " + HEADS[7:-6] + "0.0, A), A)"
#: (the check that must notice, the module, what was wrong, the code, what it was)
MENDED = [
    (
        test_exact_sums.check_sizes,
        "exactness",
        "2^53 + 1 rounds to 2^53",
        "np.asarray(size) < A.whole",
        "size <= A.whole",
    ),
    (
        test_exact_sums.check_choices,
        "exactness",
        "rows of 2^53 + 1",
        "np.asarray(size) < A.whole",
        "size <= A.whole",
    ),
    (
        test_exact_sums.check_choices,
        "sums",
        "a product that is rounded to nearest",
        FIT,
        "return bool(most + sum(r.most for r in self.rows) <= A.whole)",
    ),
    (
        test_stacks.check_readouts,
        "wholes",
        "two families and a bias that add up to 2^53 + 1",
        "if sums_fit(most + least, A, np.asarray(most - least)) else",
        "if most + least <= A.whole else",
    ),
    (
        test_exact_sums.check_numbers,
        "exactness",
        "a subnormal weight and a large number",
        "np.minimum(size, 1.0) * smallest",
        "size * smallest",
    ),
    (
        test_exact_sums.check_maps,
        "exactness",
        "a subnormal weight in a layer",
        "np.minimum(size, 1.0) * smallest",
        "size * smallest",
    ),
    (
        test_exact_sums.check_numbers,
        "exactness",
        "a subnormal number and a large weight",
        "smallest = np.abs(W).min(where=used, initial=1.0)",
        "smallest = np.abs(W).min(where=used, initial=np.inf)",
    ),
    (test_exact_sums.check_numbers, "parts", "a subnormal weight that is carried", " & normal(W, A)", ""),
    (
        test_exact_sums.check_numbers,
        "parts",
        "a subnormal number that is carried",
        "normal(x.m, A)[:, :, None] & ",
        "",
    ),
    (test_attention.check_sums_around, "graph", "heads that are added one by one", HEADS, ONE_BY_ONE),
    (
        test_cells.check_cells,
        "cells",
        "an edge that underflows",
        "(slope == 0) | (b == 0) | ((edge > 2.0**-900) & (edge < 2.0**900))",
        "(edge < np.inf) | (slope == 0)",
    ),
]


@pytest.mark.parametrize(("check", "module", "name", "old", "new"), MENDED, ids=[entry[2] for entry in MENDED])
def test_without_the_mend_a_check_fails(monkeypatch, check, module, name, old, new) -> None:
    assert SOURCES[module].count(old) == 1, old
    mutant = mutants.installed(monkeypatch, SOURCES | {module: SOURCES[module].replace(old, new)}, name)
    rounds = (lambda m, arithmetic=arithmetic: run(check, m, arithmetic) for arithmetic in NAMES)
    mutants.assert_caught(rounds, mutant)


def poles_stay_open(folder) -> None:
    """sup_error of 1 / (x - pole) on [-1, 1], on cells around -3/4 and 3/4: only proved if the pole is outside."""
    seen = set()
    for k, pole in enumerate((0.0, 2.0**-20, -0.25, 0.4375, -1.0, 1.0, 1 + 2.0**-20, 5.0)):
        lines = [["x", 0, 0], ["const", pole.hex()], ["sub", 0, 1], ["const", (1.0).hex()], ["div", 3, 2]]
        target = constant(0) | {"lines": lines, "outputs": [4]}
        claim = about("sup_error", "real", target, bound=2.0**24, radius=0.125, low=-1, high=1, measure=0.75)
        made = bundle("float64", COPY | SILENT, [[[-0.75]], [[0.75]]], [0, 0], claim)
        verdict = check(made.write(folder / str(k)))["result"]
        assert verdict != "VERIFIED" or not -1 <= Q(pole) <= 1, pole
        seen.add(verdict)
    assert "VERIFIED" in seen


def test_a_target_with_a_pole_in_the_box_is_not_proved(tmp_path) -> None:
    poles_stay_open(tmp_path)


def test_without_the_mend_a_pole_is_not_seen(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(functions, "open_box", lambda *_: "")
    with pytest.raises(AssertionError, match="0"):
        poles_stay_open(tmp_path)
