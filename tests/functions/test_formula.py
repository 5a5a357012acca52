"""Formulas compiled line by line: what is proved holds, whatever the number of tokens."""

from __future__ import annotations

import numpy as np
import pytest

from onelayer import DataError, HypothesisError, approximate, load
from onelayer.compile.formula import LESS, finer
from onelayer.functions.smallest import smallest
from onelayer.model import Model
from onelayer.network.forward import forward
from onelayer.problems.targets import resolve

FORMULAS = [
    "x - mean(y)",
    "mean(y)",
    "mean((y - mean(y))**2)",
    "sum(exp(3*x*y)*y)/sum(exp(3*x*y))",
    "sqrt(mean(y))",
    "x*exp(-mean((x-y)**2))",
    "max(y) - min(y)",
    "abs(x - mean(y))",
    "sin(3*x)*mean(cos(2*y))",
    "mean((x-y)**3)",
    "log(mean(exp(y)))",
    "tanh(2*x - mean(y))",
    "mean(sin(2*(x - y)))",
    "mean(cos(y + mean(y)))",
    "max(x, mean(y), 0.3)",
    "1/(1 + mean(y*y))",
]


def compiled(text: str, n: int = 5, tolerance: float = 0.02, **options: object) -> Model:
    return approximate(text, n=n, tolerance=tolerance, construction="formula", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", FORMULAS)
def test_every_error_found_is_below_the_proved_bound(text: str) -> None:
    model = compiled(text)
    assert model.error_bound <= 0.02
    X = np.random.default_rng(1).uniform(0, 1, (3000, 5, 1)).astype(np.float32)
    X[:1000] = np.round(X[:1000])
    assert model.errors(X).max() <= model.error_bound


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_bound_holds_for_every_smaller_number_of_tokens(n: int) -> None:
    model = compiled("x*exp(-mean((x-y)**2))", n=9)
    X = np.random.default_rng(2).uniform(0, 1, (500, n, 1)).astype(np.float32)
    assert model.target.pooled is not None
    found = np.abs(model.predict(X).astype(np.float64) - model.target.pooled.evaluate(X))
    assert found.max() <= model.error_bound


@pytest.mark.parametrize("text", ["x - mean(y)", "sum(exp(3*x*y)*y)/sum(exp(3*x*y))"])
def test_one_head_is_exact_for_any_number_of_tokens(text: str) -> None:
    small, large = (compiled(text, n=n, tolerance=1e-4) for n in (8, 512))
    assert small.n_parameters == large.n_parameters <= 50
    assert large.certificate is not None
    real = [float.fromhex(claim["bound"]) for claim in large.certificate.claims if claim["arith"] == "real"]
    assert max(real) <= 1e-9
    assert large.error_bound <= 1e-4


def test_parameters_do_not_depend_on_the_number_of_tokens_and_grow_like_a_root() -> None:
    text = "mean(y**3) - mean(y)**3"
    counts = [compiled(text, n=4, tolerance=t, dtype="float64").n_parameters for t in (1e-3, 1e-4, 1e-5)]
    assert compiled(text, n=64, tolerance=1e-3, dtype="float64").n_parameters == counts[0]
    slopes = np.diff(np.log(counts)) / np.log(10)
    assert (slopes > 0.3).all()
    assert (slopes < 0.6).all()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mean(abs(y - mean(y)))", "another average and to y"),
        ("mean(tanh(40*x*y))", "x and y together"),
        ("max(x*y)", "pairs of tokens"),
        ("1/(mean(y) - 0.51)", "a divisor"),
        ("x1 + mean(y)", "by their place"),
    ],
)
def test_what_one_aggregation_cannot_do_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(HypothesisError, match=why):
        compiled(text)


def test_auto_takes_the_formula_first() -> None:
    model = approximate("mean(y)", n=8, tolerance=0.05)
    assert model.interface.construction == "formula"  # type: ignore[attr-defined]
    assert model.n_parameters <= 50


def test_a_compiled_formula_survives_a_round_trip(tmp_path: object) -> None:
    model = compiled("x*exp(-mean((x-y)**2))")
    again = load(model.save(f"{tmp_path}/model"))
    assert again == model
    assert "of 1 to 5 tokens" in again.explain()
    assert "x*exp(-mean((x - y)**2))" in again.explain()


@pytest.mark.parametrize(
    ("text", "d"),
    [
        ("mean(exp(-(x - y)**2))", 1),
        ("mean(exp(x*y))", 1),
        ("x*mean((y - x)/(1 + (y - x)**2)*y)", 1),
        ("mean(abs(x - y))", 1),
        ("mean(exp(-0.5*((x[0] - y[0])**2 + (x[1] - y[1])**2)))", 2),
    ],
)
def test_functions_of_pairs_are_sums_of_products_to_a_tolerance(text: str, d: int) -> None:
    model = approximate(text, n=6, d=d, tolerance=0.1, construction="formula")
    assert model.error_bound <= 0.1
    X = np.random.default_rng(0).random((2000, 6, d)).astype(np.float32)
    assert model.errors(X).max() <= model.error_bound


def test_one_wave_less_is_worth_a_larger_share_of_the_tolerance() -> None:
    """A fifth of 0.005 would take two waves and 677 numbers."""
    sizes = [
        approximate("mean(exp(-(x - y)**2))", n=8, tolerance=tolerance, construction="formula")
        for tolerance in (0.01, 0.005)
    ]
    assert [model.transformer.attention.heads for model in sizes] == [2, 2]
    assert sizes[1].n_parameters <= 1.5 * sizes[0].n_parameters


def test_functions_of_pairs_that_take_too_many_products_are_refused_with_the_reason() -> None:
    with pytest.raises(HypothesisError, match="24 waves miss it by more than"):
        approximate("mean(abs(x - y))", n=6, tolerance=0.001, construction="formula")
    with pytest.raises(HypothesisError, match="a function of two numbers"):
        approximate("mean(max(x - y, x*y))", n=6, tolerance=0.1, construction="formula")


def test_each_side_of_a_box_counts() -> None:
    model = approximate("x[0]*mean(y[1])", n=4, d=2, low=[0, -1], high=[2, 0.5], tolerance=0.05)
    assert model.error_bound <= 0.05
    X = model.interface.box.draw(np.random.default_rng(0), 4000)
    assert (X.min(axis=(0, 1)) == [0, -1]).all()
    assert (X.max(axis=(0, 1)) == [2, 0.5]).all()
    assert model.errors(X).max() <= model.error_bound
    with pytest.raises(DataError, match=r"within \[-1, 0\.5\].*component 1 is 1"):
        model.predict(np.ones((1, 4, 2)))
    with pytest.raises(HypothesisError, match="the same low and high for all components"):
        approximate("x[0]*x1[1]", n=1, d=2, low=[0, -1], high=[2, 0.5], tolerance=0.05)


def test_a_relative_tolerance_is_a_share_of_the_range_of_every_output() -> None:
    model = approximate("100*x**2, mean(y)", n=3, tolerance=0.02, relative=True)
    assert 0.019 <= model.interface.tolerance <= 0.02  # of the second output, whose range is [0, 1]
    model = approximate("100*x**2", n=3, tolerance=0.02, relative=True)
    assert 1.9 <= model.interface.tolerance <= 2.0
    assert model.error_bound <= model.interface.tolerance
    with pytest.raises(HypothesisError, match="varies"):
        approximate("0*x + 3", n=3, tolerance=0.02, relative=True)


@pytest.mark.parametrize(
    ("text", "most"),
    [("mean((x - y)**4)/(0.5 + mean((x - y)**2))", 3_600), ("sqrt(0.0001 + mean(y)**2 + mean(y*y))", 3_000)],
)
def test_costly_formulas_share_units_and_pass_sums_on(text: str, most: int) -> None:
    model = compiled(text, n=8, tolerance=0.01, dtype="float64")
    assert model.n_parameters <= most
    assert model.error_bound <= 0.01


def test_looser_shares_are_tried_before_a_tolerance_is_refused() -> None:
    """With even shares one line would take more units than a block may have: the root is vertical at 0."""
    target = resolve("sqrt(mean(cos(3*y))**2 + mean(sin(3*y))**2)", n=8, d=1)
    assert target.pooled is not None
    _, made = smallest(target.pooled, [(0.0, 1.0)], 8, 0.001, np.dtype("float64"))
    X = np.random.default_rng(6).uniform(0, 1, (500, 8, 1))
    assert np.abs(forward(made.transformer, X) - target.evaluate(X)[:, None]).max() <= 0.001
    with pytest.raises(HypothesisError, match=r"at most 4,000 units; one line would take"):
        smallest(target.pooled, [(0.0, 1.0)], 8, 0.0001, np.dtype("float64"))


def test_a_hypot_is_a_sum_of_absolute_values() -> None:
    """Its units grow as those of other functions do: squares and a root would take 2,000 numbers, and 27,000."""
    sizes = []
    for tolerance in (0.01, 0.001):
        target = resolve("hypot(mean(cos(3*y)), mean(sin(3*y)))", n=8, d=1)
        assert target.pooled is not None
        sizes.append(smallest(target.pooled, [(0.0, 1.0)], 8, tolerance, np.dtype("float64"))[1])
    few, many = (made.transformer.n_parameters for made in sizes)
    assert few < 340
    assert many < np.sqrt(10) * few
    model = compiled("hypot(mean(cos(3*y)), mean(sin(3*y)))", n=8, tolerance=0.01, dtype="float64")
    assert model.n_parameters == few
    assert model.error_bound <= 0.01


@pytest.mark.parametrize(
    ("text", "d", "sums"),
    [
        ("mean(hypot(y[0], y[1]))", 2, True),  # of a token
        ("hypot(x, mean(y))*2 - 1", 1, True),
        ("hypot(x, x*x)", 1, False),  # of one number
        ("hypot(hypot(x[0], x[1]), mean(y[0]))", 2, True),  # the inner one
        ("mean(x*y)", 1, False),
    ],
)
def test_where_a_hypot_is_replaced(text: str, d: int, sums: bool) -> None:
    target = resolve(text, n=3, d=d)
    assert target.pooled is not None
    compiler, made = smallest(target.pooled, [(-1.0, 1.0)] * d, 3, 0.05, np.dtype("float64"))
    plan = compiler.plan
    assert (plan.meant != plan.outputs) == sums
    X = np.random.default_rng(7).uniform(-1, 1, (500, 3, d))
    wanted = target.evaluate(X)
    wanted = wanted if target.per == "token" else wanted[:, None]
    assert np.abs(forward(made.transformer, X) - wanted).max() <= 0.05


def test_powers_count_from_the_middle_of_the_box_where_that_is_smaller() -> None:
    there, here = (compiled("mean((x - y)**3)", low=low, high=low + 1) for low in (0.0, -0.5))
    assert there.n_parameters <= 1.1 * here.n_parameters
    X = np.random.default_rng(5).uniform(0, 1, (1000, 5, 1)).astype(np.float32)
    assert there.errors(X).max() <= there.error_bound <= 0.02


@pytest.mark.parametrize("share", [0.99, 0.9, 0.3])
def test_a_repair_leaves_rounding_what_it_takes_and_no_more(share: float) -> None:
    left = LESS ** (finer(1, share) - 1)
    assert share * LESS < left <= share
    assert finer(1, np.nan) > 1, "nobody knows what would do: another try"
    assert finer(7, -0.5) == finer(7, 0.01) == 7, "no model would do"


def test_lines_use_what_rounding_in_float32_leaves() -> None:
    """Without repairs, rounding is over the tolerance here; with coarse ones, 0.85 of it would be used."""
    model = compiled("log(0.1 + mean(exp(2*y)))", n=8, low=-1, tolerance=0.002)
    assert 0.93 * 0.002 < model.error_bound <= 0.002


@pytest.mark.parametrize("construction", ["auto", "formula"])
def test_rounding_that_no_model_keeps_is_named_with_its_remedy(construction: str) -> None:
    with pytest.raises(HypothesisError, match=r"is rounding in float32 of 512 tokens.*Use float64"):
        approximate("(x - mean(y))/sqrt(0.1 + var(y))", n=512, tolerance=0.001, construction=construction)
