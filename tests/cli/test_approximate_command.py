"""`onelayer approximate` and `targets`: what they print for people and machines, what they write and draw."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from onelayer import approximate, load
from onelayer.certificates.words import at_most
from onelayer.compile.refinement import refinements
from onelayer.measure.formula_pictures import compiled, nodes
from onelayer.measure.function_pictures import figure_of, size, slope
from onelayer.problems.targets import names
from tests.cli.test_cli import run
from tests.processes import run_command

MEDIAN = ("median", "--n", "2", "--tolerance", "0.1", "--construction", "quantise")
PRODUCT = ("x1*x2 + sin(x1)", "--n", "2", "--tolerance", "0.05", "--construction", "positional")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A folder with a bundle of cells, one of hats, and what was printed."""
    folder = tmp_path_factory.mktemp("functions")
    printed = {
        "median": run("approximate", *MEDIAN, "--out", folder / "median").stdout,
        "product": run("approximate", *PRODUCT, "--out", folder / "product").stdout,
    }
    return folder, printed


def test_what_a_person_sees(bundles) -> None:
    folder, printed = bundles
    said = printed["median"]
    assert "median of 2 tokens in [0, 1]" in said
    assert "proved in real numbers and in float32 in any order of summation" in said
    assert "ramps between cells" in said
    assert "Where the error may come from" in said
    assert f"onelayer verify {folder / 'median'}" in said
    assert "3 claims certified" in said
    assert "nothing" in next(line for line in printed["product"].splitlines() if "left out" in line)


def test_the_bundle_is_verified_and_answers(bundles) -> None:
    folder, _ = bundles
    for name in ("median", "product"):
        assert run("verify", folder / name).stdout.splitlines()[-1] == "VERIFIED"
    checker = [sys.executable, "-I", "-m", "onelayer_checker", str(folder / "median")]
    assert subprocess.run(checker, capture_output=True).returncode == 0
    assert abs(load(folder / "median").predict([[[0.2], [0.6]]])[0, 0] - 0.4) < 0.1
    assert "The readout is positional" in run("inspect", folder / "product").stdout
    assert "Gaps between" in run("inspect", folder / "median").stdout
    for name in ("median", "product"):
        assert "picture written to" in run("inspect", folder / name, "--picture", folder / f"{name}.png").stderr
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_one_object() -> None:
    said = json.loads(run("approximate", *MEDIAN, "--json", "--samples", "1000", "--seed", "3").stdout)
    assert said["model"] is None
    assert said["proved"] is True
    assert said["measured_error"] <= said["error_bound"] <= said["tolerance"] == 0.1
    assert said["samples"] == 1000
    assert abs(sum(line["value"] for line in said["budget"]) - said["error_bound"]) < 1e-12
    assert said["assumes"] == ""
    assert 0 < said["left_out"] < 0.01


def test_the_other_constructions_are_said() -> None:
    asked = ("approximate", "sort", "--n", "2", "--tolerance", "0.1", "--dtype", "float64")
    said = run(*asked).stdout
    for words in ("Expected of each construction", "built", "quantise", "positional", "Nothing was written"):
        assert words in said
    compared = {plan["construction"] for plan in json.loads(run(*asked, "--json").stdout)["compared"]}
    assert compared >= {"quantise", "positional"}


def test_an_assumption_is_said(tmp_path) -> None:
    asked = ("median", "--n", "8", "--tolerance", "0.6", "--construction", "quantise", "--out", tmp_path / "m")
    assert "the target is 1-Lipschitz and invariant" in run("approximate", *asked).stdout
    said = run("explain", tmp_path / "m").stdout
    assert "The target is a function known only by its stored values" in said
    assert "the target is 1-Lipschitz from the largest component" in said
    assert run("verify", tmp_path / "m").stdout.splitlines()[-1] == "VERIFIED"


def test_claims_about_functions_are_said_in_words(bundles) -> None:
    folder, _ = bundles
    cells, hats = (run("explain", folder / name).stdout for name in ("median", "product"))
    assert "whose components lie within" in cells
    assert "the mean of |answer - target|^2" in cells
    assert "lies in no stored cell, beyond the mean that lp_error bounds" in cells
    assert "The target is the function (min(x1, x2) + max(x1, x2))/2 of the tokens x1 and x2." in cells
    assert "for every input with components in [0, 1]: none is left out" in hats
    assert "The target is the function x1*x2 + sin(x1) of" in hats
    assert "neither stored" not in hats
    run("report", folder / "product", "--out", folder / "page.html")
    page = (folder / "page.html").read_text()
    assert "x1*x2 + sin(x1)" in page
    assert "which knows nothing of the compiler" in page


@pytest.mark.parametrize(
    ("target", "n", "d", "tolerance", "construction"),
    [
        ("sin(3*x)", 1, 1, 0.1, "quantise"),
        ("sin(3*x)", 1, 1, 0.0002, "positional"),  # more cells than can be shown
        ("median", 2, 1, 0.1, "published"),
        ("x - mean(y)", 2, 1, 0.02, "quantise"),
        ("x[0]*x[1]", 1, 2, 0.2, "positional"),
        ("random", 3, 1, 0.2, "quantise"),
        ("sort", 3, 1, 0.2, "positional"),  # exact: one cell will do
        (lambda X: np.sin(X).mean(axis=1), 2, 1, 0.2, "quantise"),  # not proved
    ],
)
def test_pictures_are_drawn(tmp_path, target, n, d, tolerance, construction) -> None:
    kind = "invariant" if callable(target) else None
    options = {"construction": construction, "kind": kind, "allow_unproved": callable(target)}
    model = approximate(target, n=n, d=d, tolerance=tolerance, **options)
    figure_of(model, lambda: refinements(model, 1.0, lambda _: None)).savefig(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_is_drawn_beside_json(tmp_path) -> None:
    done = run("approximate", *PRODUCT, "--plot", tmp_path / "p.svg", "--json")
    json.loads(done.stdout)
    assert "picture written to" in done.stderr
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_finer_models_of_the_same_target_are_nearer() -> None:
    model = approximate("random", n=3, tolerance=0.2, construction="quantise")
    found = refinements(model, float("inf"), lambda _: None)
    assert len(found) >= 3
    assert [size(m) for m in found] == sorted({size(m) for m in found})
    assert [m.error_bound for m in found] == sorted((m.error_bound for m in found), reverse=True)
    assert slope(model) == -1 / 3


def test_targets_are_listed() -> None:
    said = run("targets").stdout
    assert all(name in said for name in names())
    assert "A formula will do as well" in said
    listed = json.loads(run("targets", "--json").stdout)["targets"]
    assert {entry["name"] for entry in listed} == set(names())
    assert {entry["kind"] for entry in listed} == {"equivariant", "invariant", "ordered"}


WELL = ("--n", "2", "--tolerance", "0.1")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("medain", *WELL), 64, "Did you mean 'median'?"),
        (("x - meen(y)", *WELL), 64, "functions that it knows"),
        (("sort", "--n", "9", "--tolerance", "1e-3"), 1, "a tolerance that this machine can reach"),
        (("sort", *WELL, "--low", "1", "--high", "0"), 64, "a box with low < high"),
        (("sort", "--n", "2", "--tolerance", "0"), 64, "a tolerance above 0"),
        (("sort", *WELL, "--plot", "p.pdf"), 64, "a picture name ending in .png or .svg"),
        (("sort", *WELL, "--plot", "nowhere/p.png"), 66, "a folder that exists"),
        (("sort", *WELL, "--out", "."), 66, "exists"),
        (("sort", "--n", "0", "--tolerance", "0.1"), 64, "--n"),
        (("sort", "--n", "2"), 64, "--tolerance"),
        (("sort", *WELL, "--construction", "magic"), 64, "'quantise', 'published'"),
        (("sort", *WELL, "--dtype", "float16"), 64, "float16"),
        (("reversal", *WELL, "--construction", "continuous"), 1, "order"),
    ],
)
def test_mistakes_are_answered_in_a_line(tmp_path, arguments, code, words) -> None:
    done = run_command("approximate", *arguments, ok=code, cwd=tmp_path)
    assert words in done.stderr
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_a_bundle_is_not_overwritten_by_accident(bundles) -> None:
    folder, _ = bundles
    assert "exists already" in run("approximate", *MEDIAN, "--out", folder / "median", ok=66).stderr
    run("approximate", *MEDIAN, "--out", folder / "median", "--overwrite")


@pytest.mark.parametrize("bound", [0.0, 0.123449, 0.12341, 9.9999e-7, 0.05, 2.0**-30, 31415.9])
def test_bounds_are_said_rounded_up(bound) -> None:
    assert bound <= float(at_most(bound)) <= bound * 1.001


@pytest.mark.parametrize(
    ("text", "d"), [("(x - mean(y))/sqrt(0.1 + var(y))", 1), ("mean(exp(-(x - y)**2))", 1), ("max(y), x", 2)]
)
def test_the_program_of_a_formula_is_drawn_with_its_error(tmp_path, text, d) -> None:
    model = approximate(text, n=3, d=d, tolerance=0.1)
    figure = model.plot()
    figure.savefig(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    shown = nodes(compiled(model)[0], model.transformer.dtype)
    assert {node.column for node in shown} >= {0, 2}
    assert sum(node.error for node in shown) == pytest.approx(0.1, rel=0.3)
    written = [part.get_text() for axis in figure.axes for part in axis.texts]
    assert any(part.startswith("mean(") or part.startswith("max(") for part in written)


def test_names_and_arrows_of_a_program_are_right() -> None:
    """A softmax average reads its logits too; names have the parentheses that they need; marks do not overlap."""
    model = approximate("softmax(dot(x, y), y)", n=3, d=2, tolerance=0.1)
    pools = [node for node in nodes(compiled(model)[0], model.transformer.dtype) if node.column == 2]
    assert [len(node.reads) for node in pools] == [2, 2]
    assert pools[0].name.startswith("average(x[0]*y[0] + x[1]*y[1],")
    model = approximate("sqrt(mean(cos(3*y))**2 + mean(sin(3*y))**2)", n=3, tolerance=0.1)
    figure = model.plot()
    named = {node.name: node for node in nodes(compiled(model)[0], model.transformer.dtype)}
    assert named["cos(3*x)"].units == named["sin(3*x)"].units
    assert named["cos(3*x)"].shared == named["sin(3*x)"].shared == ", shared with 1"
    assert {"mean(cos(3*y))", "mean(sin(3*y))", "mean(cos(3*y))**2", "mean(sin(3*y))**2"} <= named.keys()
    figure.canvas.draw()
    for axis in figure.axes[1:]:
        boxes = [label.get_window_extent() for label in axis.get_xticklabels(which="both") if label.get_text()]
        boxes.sort(key=lambda box: box.x0)
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
