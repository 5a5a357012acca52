"""Every function of the core and of the search says what it rests on: a theorem that exists, a test, or neither."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tools import proved, rings

ROOT = Path(__file__).parents[2]
#: From a cell that is recognised to the verdict: here nothing may rest on neither.
PATH = ("core/balls", "core/exactness", "core/layers", "core/judge", "search/cells", "search/steps", "search/parts")
PATH += ("search/operations", "search/builder", "search/plan", "search/stack", "core/graph", "core/averages")
#: What is only an estimate of work, or a guess that is decided elsewhere.
ASIDE = {"effort", "widest", "work", "pivots"}


def test_theorems_that_are_named_exist() -> None:
    stated = proved.list_theorems()
    assert len(stated) > 100
    listed = proved.table()
    for part in proved.every_part():
        kind, what = proved.rests_on(part, listed)
        for theorem in part.theorems or (proved.parse_names(what) if kind == "proved" else ()):
            assert theorem in stated, f"{part.name} names {theorem}"
    for path in rings.CHECKER.rglob("*.py"):
        for theorem in proved.theorems_in(ast.get_docstring(ast.parse(path.read_text())) or ""):
            assert theorem in stated, f"{path.name} names {theorem}"


def test_theorems_that_the_specification_names_exist() -> None:
    """In `File.v` name, name of its paragraph on proofs; definitions among them."""
    text = (ROOT / "docs" / "certificate-v2.md").read_text()
    paragraph = " ".join(text.partition("**What is proved of it.**")[2].partition("\n\n")[0].split())
    assert paragraph
    for name, words in re.findall(r"`(\w+\.v)` ((?:\w+, )*\w+)[;)]", paragraph):
        source = (proved.PROOFS / name).read_text()
        for word in words.split(", "):
            assert re.search(rf"(Theorem|Lemma|Corollary|Definition|Inductive) {word}\b", source), f"{name} {word}"


def test_every_function_rests_on_something() -> None:
    listed = proved.table()
    for part in proved.every_part():
        kind, what = proved.rests_on(part, listed)
        assert kind in proved.KINDS, f"{part.name} names no theorem and is not in {proved.TABLE.name}"
        assert what, part.name
        if kind == "tested":
            assert (ROOT / what).is_file(), f"{part.name}: {what}"
            assert what.startswith("tests/"), f"{part.name}: {what}"
        if kind == "neither":
            aside = part.name.rpartition(".")[2] in ASIDE
            assert aside or part.name.split()[0] not in PATH, f"{part.name} rests on neither"


def test_the_table_lists_nothing_else() -> None:
    """No function that is gone, and none that names a theorem itself."""
    known = {part.name: part for part in proved.every_part()}
    for module, own in proved.table().items():
        assert module in known, module
        for function in own:
            if function not in ("outside", "every"):
                part = known.get(f"{module} {function}")
                assert part is not None, f"{module} has no {function}"
                assert not part.theorems, f"{part.name} is listed, and names a theorem"
        rest = [
            name for name in known if name.split()[0] == module and (name.partition(" ")[2] or "outside") not in own
        ]
        assert ("every" in own) == bool([name for name in rest if not known[name].theorems]), module


def test_the_readme_counts_what_rests_on_what() -> None:
    text = rings.README.read_text()
    assert text == proved.with_counts(text), "run: python tools/proved.py"
    for ring, lines in proved.count().items():
        assert sum(lines.values()) == rings.count()[ring]
        assert lines["proved"] > 100


def test_what_a_docstring_may_say() -> None:
    two = proved.theorems_in(
        "Why.\n\n    Theorem: proofs/Cells.v cell_on, cell_off; proofs/Steps.v\n    steps_decide."
    )
    assert two == (
        ("proofs/Cells.v", "cell_on"),
        ("proofs/Cells.v", "cell_off"),
        ("proofs/Steps.v", "steps_decide"),
    )
    assert proved.theorems_in("No theorem is named.") == ()
    for wrong in ("Theorem: cell_on.", "Theorem: proofs/Cells.v.", "Theorem: proofs/Cells.v cell_on and more"):
        with pytest.raises(ValueError, match="not understood"):
            proved.theorems_in(wrong)


def test_parts_are_functions_methods_and_the_rest(tmp_path) -> None:
    text = '"""M."""\nx = 1\nclass A:\n    y: int\n    def f(self):\n        """F."""\n        def g(): pass\n'
    text += "        return g\n"
    found = {part.name: part.lines for part in proved.parts("core/m", text)}
    assert found == {"core/m A.f": 3, "core/m": 3}
    (tmp_path / "A.v").write_text(
        "Theorem one : True.\n(* Theorem two *)\nLemma three x : x = x.\n  Corollary four.\n"
    )
    assert proved.list_theorems(tmp_path) == {("proofs/A.v", name) for name in ("one", "three", "four")}
