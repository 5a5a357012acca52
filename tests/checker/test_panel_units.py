"""Panels of judges, part by part: what is compared, what belongs together, and what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from safetensors.numpy import load

import onelayer
from onelayer.export import bundle
from onelayer_checker.core.files import CERTIFICATE, MODEL, Malformed
from onelayer_checker.looped.algorithms import Algorithm, Values, read_algorithm
from onelayer_checker.looped.network import Network, build
from onelayer_checker.looped.panels import flags, identities, mean_of, missing, unlike
from onelayer_checker.looped.polynomials import Ring, is_zero


@pytest.fixture(scope="module")
def parts() -> tuple[Network, dict[str, Any], float]:
    model = onelayer.learner("selection", d=2, steps=2, penalties=(0.1, 1.0), delta=2.0**-4)
    files = bundle.files(model)
    certificate = json.loads(files[CERTIFICATE])
    claim = next(c for c in certificate["claims"] if c["type"] == "selects")
    return build(load(files[MODEL]), certificate["graph"]), claim["target"], float.fromhex(claim["reach"])


def read(target: dict[str, Any], **changes: Any) -> Algorithm:
    return read_algorithm(target | changes, "here")


def extended(program: dict[str, Any], lines: list[str], *outputs: int) -> dict[str, Any]:
    """With further lines, numbered on from its last; outputs from -1 down are the last of them."""
    start, whole = len(program["lines"]), list(program["lines"])
    whole += [line.replace("#", str(start)) for line in lines]
    return {"lines": whole, "outputs": [k if k >= 0 else len(whole) + k for k in outputs]}


def letters(a: Algorithm) -> Values:
    ring = Ring()
    return Values(**{group: list(ring.variables(group, count)) for group, count in Values.sizes(a).items()})


def failing(network: Network, a: Algorithm) -> set[str]:
    return {rule for rule, found in identities(network, a, letters(a)) if not all(map(is_zero, found))}


def test_what_is_proved_of_selection_holds_part_by_part(parts: Any) -> None:
    network, target, reach = parts
    a = read(target)
    assert failing(network, a) == set()
    assert unlike(network, a) == ""
    assert missing(a, 2.0**-4, reach) == ""
    assert [(name, judge) for name, _, judge in flags(network, a, letters(a))] == [
        ("example", False), ("query", False), ("judge", True),
    ]  # fmt: skip


def test_each_identity_notices(parts: Any) -> None:
    network, target, _ = parts
    held = target["judged"]["outputs"]
    squared = extended(target["judged"], ["v 0", "mul # #"], *held[:5], -1, *held[6:])
    assert "affine" in failing(network, read(target, judged=squared))
    doubled = extended(target["weigh"], ["add 0 0"], *target["weigh"]["outputs"][:1], -1)
    assert failing(network, read(target, weigh=doubled)) == {"panel"}
    other = extended(target["answer"], ["v 0"], -1)
    assert failing(network, read(target, answer=other)) == {"answer"}


def test_panels_and_networks_that_do_not_belong_together(parts: Any) -> None:
    network, target, _ = parts
    a = read(target)
    for one, other in ((replace(network, panel=None), a), (network, replace(a, panel=None))):
        assert "one side only" in unlike(one, other)
        assert list(flags(one, other, letters(a))) == []
    assert unlike(replace(network, panel=None), replace(a, panel=None)) == ""
    assert network.panel is not None
    causal = replace(network, loop=replace(network.loop, causal=True))
    summed = replace(network, panel=replace(network.panel, mean=False))
    for one, other in (
        (causal, a), (summed, a), (network, replace(a, query=None)), (network, replace(a, gather="solve")),
    ):  # fmt: skip
        assert "neither causal nor solves" in unlike(one, other)
    assert unlike(network, replace(a, gather="sum")) == ""


def test_what_is_missing_for_a_choice_between_two(parts: Any) -> None:
    network, target, reach = parts
    a = read(target)
    weigh, answer, either = (target[name] for name in ("weigh", "answer", "either"))
    assert network.panel is not None
    for delta in (0.0, 0.1, 3.0, -0.5):
        assert "a power of two" in missing(a, delta, reach)
    for other in (
        replace(a, panel=None), replace(a, y=2), read(target, answer=extended(answer, [], *answer["outputs"] * 2)),
        read(target, weigh=extended(weigh, [], *weigh["outputs"], 0)),
    ):  # fmt: skip
        assert "only two learners" in missing(other, 2.0**-4, reach)
    p, q = weigh["outputs"]
    for outputs in ((q, p), (p, p), (q, q)):
        assert "do not weigh" in missing(read(target, weigh=extended(weigh, [], *outputs)), 2.0**-4, reach)
    turned = extended(either, [], *reversed(either["outputs"]))
    assert missing(read(target, either=turned), 2.0**-4, reach)
    assert "not that of a gate" in missing(a, 2.0**-5, reach)
    assert "not that of a gate" in missing(a, 2.0**-4, 2 * reach)
    with pytest.raises(Malformed, match="two answers"):
        read(target, either=extended(either, [], either["outputs"][0]))


def test_the_mean_of_judges(parts: Any) -> None:
    _, target, _ = parts
    a = read(target)
    assert a.panel is not None
    s, x = [Fraction(0)] * 4, [Fraction(1), Fraction(1)]
    assert mean_of(a.panel, s, [(x, [Fraction(1)]), (x, [Fraction(3)])]) == [5, 5]
    assert mean_of(a.panel, s, [(x, [Fraction(2)])]) == [4, 4]
