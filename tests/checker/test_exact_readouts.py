"""Readouts drawn around the edges of a format: an answer of radius 0 is what every machine computes."""

from __future__ import annotations

import pytest

from tests.checker.adversary_exact import BITS
from tests.checker.adversary_stacks import check_readouts


@pytest.mark.parametrize("name", BITS)
def test_an_exact_answer_is_one_number(name) -> None:
    seen = check_readouts(name, 400)
    assert min(seen["search"], seen["dense"]) >= 40, seen
