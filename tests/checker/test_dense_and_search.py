"""The core alone decides what the search decides: every claim about generated models of every route."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer_checker import check

KINDS = ("reals", "ids", "ragged")
SCOPES = ("token", "sequence")
SIZES = (3, 8, 16, 24, 32)
#: What is asked for, and which answers it takes.
ROUTES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    f"{mapping} {readout}": ({"mapping": mapping, "readout": readout}, answers)
    for mapping, readout, answers in (
        ("temperature", "plateaus", ("classes", "numbers")),
        ("temperature", "boxes", ("classes", "numbers")),
        ("temperature", "table", ("classes", "numbers")),
        ("temperature", "bits", ("classes",)),
        ("lattice", "table", ("classes", "numbers")),
        ("lattice", "retrieval", ("classes",)),
    )
}
ROUTES |= {
    f"{m} default": ({"mapping": m, "default": True}, ("classes", "numbers")) for m in ("temperature", "lattice")
}
ROUTES["float64"] = {"dtype": "float64"}, ("classes", "numbers")
ROUTES["float64 default"] = {"dtype": "float64", "default": True}, ("classes", "numbers")


@dataclass(frozen=True)
class Case:
    model: Any
    certificate: Any


def generated(route: str, draw: int = 0) -> list[Case]:
    """Models of a route, on data of every kind; another draw gives others."""
    options, answers = ROUTES[route]
    cases = []
    for i, (kind, scope, form, positions) in enumerate(product(KINDS, SCOPES, answers, (False, True))):
        rng = np.random.default_rng([i, len(route), *([draw] if draw else [])])
        N, n, d = int(rng.choice(SIZES)), int(rng.integers(2, 6)), int(rng.integers(1, 4))
        X = rng.standard_normal((N, n, d)).astype(np.float32)
        if kind == "ids":
            X = np.stack([rng.choice(2000, n, replace=False) for _ in range(N)])
        lengths = rng.integers(1, n + 1, N) if kind == "ragged" else None
        shape = (N, n) if scope == "token" else (N,)
        Y = rng.integers(0, 9, shape) if form == "classes" else rng.standard_normal((*shape, 2)).astype(np.float32)
        chosen = options | {"positions": positions, "scope": scope, "lengths": lengths}
        if "default" in chosen:
            chosen["default"] = -1 if form == "classes" else [0.0, 0.0]
        model = onelayer.memorize(X, Y, certify=False, **chosen)
        cases.append(Case(model, onelayer.certify(model, X, Y, lengths)))
    return cases


def texts() -> list[Case]:
    line = b"she sells sea shells by the sea shore; " * 2
    made = (
        (size, onelayer.memorize_text(line[:size], n, certify=False))
        for size in (8, 20, 39, 60, 78)
        for n in (2, 5, 12)
    )
    return [Case(model, onelayer.certify(model, line[:size])) for size, model in made]


def outcomes(folder, dense: bool) -> list[tuple[str, str]]:
    return [(str(found.claim), found.verdict.outcome) for found in check(folder, dense=dense).claims]


def compared(folder, case: Case) -> int:
    """How many claims there are; all are proved, and with one wrong answer those about answers are refuted."""
    onelayer.save(folder / "right", case.model, certificate=case.certificate)
    found = outcomes(folder / "right", dense=False)
    assert outcomes(folder / "right", dense=True) == found
    assert {outcome for _, outcome in found} == {"proved"}
    data = case.certificate.data
    row = data["which"][-1] if "which" in data else -1
    data["answers"][row] += np.where(data["answers"][row] >= 1, -1.0, 1.0)  # another class, or another number
    onelayer.save(folder / "wrong", case.model, certificate=case.certificate)
    found = outcomes(folder / "wrong", dense=False)
    assert outcomes(folder / "wrong", dense=True) == found
    assert "refuted" in {outcome for _, outcome in found}
    return len(found)


@pytest.mark.parametrize("route", [*ROUTES, "texts"])
def test_dense_and_search_agree(tmp_path, route) -> None:
    cases = texts() if route == "texts" else generated(route)
    claims = [compared(tmp_path / str(i), case) for i, case in enumerate(cases)]
    assert len(claims) >= 10
    assert min(claims) >= 2


def test_there_are_enough_models() -> None:
    assert sum(len(KINDS) * len(SCOPES) * 2 * len(answers) for _, answers in ROUTES.values()) >= 200
