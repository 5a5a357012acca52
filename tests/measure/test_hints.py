"""A guess about float16: from tensors alone, right about as often as it says, and none where it was not fitted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from onelayer import load, memorize, plan
from onelayer.lab.drawn import draw_network, fit_ridge, standards, survives
from onelayer.measure import hints
from onelayer.measure.encoding import encode
from onelayer.measure.hints import Fit, Hint, foretell, read_fit, second_moments


def test_it_is_right_about_new_networks_more_often_than_the_usual_answer() -> None:
    rng, found = np.random.default_rng(77), []
    while len(found) < 40:
        if (made := draw_network(rng)) is not None and (hint := foretell(made[0].transformer)) is not None:
            found.append((hint.survives, survives(*made)))
    right = sum(said == seen for said, seen in found)
    usual = max(sum(seen == answer for _, seen in found) for answer in (True, False))
    assert right >= 34
    assert right >= usual


def test_a_guess_is_linear_in_the_second_moments() -> None:
    model = memorize([["a", "b"], ["b", "c"]], [["x", "y"], ["y", "z"]])
    tokens = encode(model)
    moments = second_moments(tokens)
    fit = Fit([0.0] * len(moments), [2.0] * len(moments), [0.0] * len(moments), 0.25, [], 0, 0.5, 1)
    assert fit.says(moments) == 0.25
    one = replace(fit, weights=[float(i == 3) for i in range(len(moments))])
    assert one.says(moments) == 0.25 + moments[3] / 2
    np.testing.assert_allclose(second_moments(tokens[::-1]), moments, rtol=1e-12)  # in no order


def test_other_networks_get_no_guess(monkeypatch) -> None:
    network = memorize([["a", "b"], ["b", "c"]], [["x", "y"], ["y", "z"]]).transformer
    fit = read_fit()
    assert foretell(network) is not None
    for other in (replace(fit, largest=network.n_parameters - 1), replace(fit, kinds=fit.kinds[:2])):
        monkeypatch.setattr(hints, "read_fit", lambda other=other: other)
        assert foretell(network) is None


def test_plan_guesses_before_anything_is_built(tmp_path) -> None:
    X = np.unique(np.random.default_rng(0).integers(0, 30, (60, 3)), axis=0)
    found = plan(X, X[:, :1].repeat(3, axis=1), positions=True)
    assert isinstance(found.float16, Hint)
    assert str(found).endswith(str(found.float16))
    assert f"{100 * read_fit().right:.0f}% of {read_fit().networks} networks" in str(found)
    assert json.loads(json.dumps(found.to_json()))["float16"]["right"] == read_fit().right
    model = memorize(X, X[:, :1].repeat(3, axis=1), positions=True)
    assert found.float16 == foretell(load(model.save(tmp_path / "model")).transformer)  # of the network it plans
    assert (
        plan(X[:, :2], X[:, :1].repeat(2, axis=1), positions=True, dtype="bfloat16", on_conflict="first").float16
        is None
    )


def test_a_feature_that_never_changes_gets_no_weight() -> None:
    rng = np.random.default_rng(0)
    A = np.concatenate([rng.normal(size=(30, 2)), np.full((30, 1), 7.0)], axis=1)
    mean, spread = standards(A)
    weights, offset = fit_ridge((A - mean) / spread, A[:, 0], 1e-6)
    assert weights[2] == 0
    np.testing.assert_allclose((A - mean) / spread @ weights + offset, A[:, 0], atol=1e-4)
