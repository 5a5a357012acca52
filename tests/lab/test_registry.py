"""Rows belong to the code that computes their own setting; to find it is quick and imports nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from onelayer import lab
from onelayer.lab import registry
from tests.lab.toy import TOY


@pytest.fixture
def fingerprint_with(toy, tmp_path, monkeypatch):
    """The fingerprint of a setting of the toy with some words changed, and with a module that it imports."""
    folder = tmp_path / "experiments"
    monkeypatch.setattr(registry, "LIBRARY", {*registry.LIBRARY, "counting"})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "counting").mkdir()
    (tmp_path / "counting" / "__init__.py").touch()
    (tmp_path / "counting" / "further.py").write_text('"""Deep."""\nSTEP = 1\n')

    def changed(old: str = "", new: str = "", further: str = "STEP = 1", start: int = 0) -> str:
        assert old in TOY
        rows = 'return [{"value": value'  # of `run`
        source = TOY.replace(old, new).replace(rows, f"from counting.slowly import add; {rows}")
        (folder / "toy.py").write_text(source.replace("LOG", repr(str(toy))).replace("PAUSE", "0"))
        (tmp_path / "counting" / "slowly.py").write_text("from counting import further\ndef add(): pass\n")
        (tmp_path / "counting" / "further.py").write_text(f'"""Deep."""\n{further}\n')
        registry.forget()
        sys.modules.pop("onelayer.lab.experiments.toy", None)
        return registry.fingerprint("toy", {"start": start})

    yield changed
    registry.forget()
    for name in [name for name in sys.modules if name.partition(".")[0] == "counting"]:
        del sys.modules[name]


def test_rows_of_other_code_are_computed_anew_and_rewording_keeps_them(fingerprint_with, monkeypatch) -> None:
    as_it_is = fingerprint_with()
    assert fingerprint_with("Far & further.", "Not far.") == as_it_is
    assert fingerprint_with("To {max", "Up to {max") == as_it_is
    assert fingerprint_with("time.sleep", "# why\n    time.sleep") == as_it_is
    assert fingerprint_with("return [row[", "return [2 * row[") == as_it_is  # only what is drawn
    assert fingerprint_with("seed / PARTS", "seed * PARTS") != as_it_is  # of what `run` calls
    assert fingerprint_with("PARTS = 8", "PARTS = 4") != as_it_is  # of what that names
    assert fingerprint_with("range(6)", "range(7)") == as_it_is  # a row is of its own case
    assert fingerprint_with('"one"', '"two"') != as_it_is
    monkeypatch.setattr(registry, "version", lambda _: "another")
    assert fingerprint_with() != as_it_is


def test_rows_belong_to_the_sources_that_an_experiment_imports(fingerprint_with, tmp_path) -> None:
    """Two imports away, inside a function; a comment or a docstring there changes nothing."""
    as_it_is = fingerprint_with()
    assert fingerprint_with(further="STEP = 2") != as_it_is
    assert fingerprint_with(further="# two\nSTEP = 1") == as_it_is
    drawn = "def plot(rows):", "def plot(rows):\n    import counting.drawn"
    (tmp_path / "counting" / "drawn.py").touch()
    assert fingerprint_with(*drawn) == as_it_is  # what only draws imports nothing that computes


#: The toy counts from 3 on by other code, which imports a module of its own.
SEVERAL = """
def computes(case): return run_far if case["start"] > 2 else run_near
def run(case, seed): return computes(case)(case, seed)
def run_far(case, seed):
    from counting import further
    return [{"value": far(seed)}]
def run_near(case, seed):
    return [{"value": count(case["start"], seed)[0]}]
def far(seed): return seed * 1000
def count("""


def test_a_row_is_of_the_code_that_computes_its_own_setting(fingerprint_with) -> None:
    """Code that only another setting uses keeps it, and imports likewise; what both use keeps neither."""

    def both(old: str, new: str, further: str = "STEP = 1") -> tuple[str, str]:
        several = SEVERAL.replace(old, new).lstrip()
        near, far = (fingerprint_with("def count(", several, further, start) for start in (0, 5))
        return near, far

    near, far = both("", "")
    assert near != far
    assert both("1000", "2000")[0] == near
    assert both("1000", "2000")[1] != far
    assert both("seed)[0]", "seed)[1]")[0] != near
    assert both("seed)[0]", "seed)[1]")[1] == far
    assert both("", "", further="STEP = 2") == (near, both("", "", further="STEP = 2")[1])
    assert both("", "", further="STEP = 2")[1] != far
    assert both("> 2", "> 3") == (near, far)  # which of them computes a setting computes no row
    assert both("", "", further="STEP = 1")[0] == near


def test_each_module_is_looked_up_and_read_once_for_all_settings(monkeypatch) -> None:
    looked_up, read = Counter(), Counter()

    def counted(function, counter):
        def called(name, *arguments, **options):
            counter[name] += 1
            return function(name, *arguments, **options)

        return called

    name = "memorisation-capacity"
    registry.fingerprint(name, lab.find(name).cases("full")[0])  # the import system looks for modules, too
    monkeypatch.setattr(registry.PathFinder, "find_spec", counted(registry.PathFinder.find_spec, looked_up))
    monkeypatch.setattr(registry.ast, "unparse", counted(registry.ast.unparse, read))
    registry.forget()
    codes = {registry.fingerprint(name, case) for case in lab.find(name).cases("full")}
    assert len(codes) == 2  # of constructed and of trained
    assert {"onelayer.compile.memorize", "onelayer.lab.trained"} <= looked_up.keys()
    assert set(looked_up.values()) == {1}
    assert set(read.values()) == {1}  # every statement, whose trees are objects of their own


def test_looking_for_sources_imports_nothing(tmp_path) -> None:
    """`find_spec` of a name in a module imports that module, and torch with it."""
    code = "import sys; from onelayer import lab; from onelayer.lab import registry\n"
    code += "found = registry.stands_on('onelayer.lab.experiments.depth')\n"
    code += "print('onelayer.problems.targets.networks.torch_modules' in found, 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == "True False\n"


def stands_on(name: str) -> set[str]:
    return registry.stands_on(f"onelayer.lab.experiments.{name}")


def test_what_an_experiment_stands_on_is_found_and_what_only_draws_is_not() -> None:
    seen = stands_on("depth")
    assert {"onelayer.compile.memorize", "onelayer.lab.trained", "onelayer.readouts.plateaus"} <= seen
    assert not seen & (registry.TELLING | registry.WORKERS)
    assert not any(name.startswith(registry.WORDS) for name in seen)


def test_a_verdict_in_rows_stands_on_all_of_the_checker() -> None:
    """The checker finds its rings by itself, so none of them is named in an import."""
    assert {"onelayer_checker.front", "onelayer_checker.functions.cells"} <= stands_on("depth")


def test_formulas_are_none_of_what_stores_answers() -> None:
    """A model can draw itself, formulas included; that computes no rows."""
    assert "onelayer.functions.tilts" in stands_on("depth")
    assert "onelayer.functions.tilts" not in stands_on("memorisation_capacity")


def test_what_a_package_brings_along_is_not_what_an_experiment_stands_on() -> None:
    """`from onelayer.lab import prompts` names a module of the package, which imports the harness beside it."""
    assert stands_on("rank_rate") == {
        "onelayer.lab.experiments.rank_rate",
        "onelayer.errors",
        *(f"onelayer.lab.{name}" for name in ("networks", "plateaus", "prompts")),
    }
