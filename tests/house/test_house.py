"""The house keeps its promises: statements, documents, imports, and the words it uses."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onelayer
from benchmarks import readme
from onelayer import approximate
from onelayer.compile.construction import CONSTRUCTIONS
from onelayer.contexts.mapping import MAPPINGS
from onelayer.gadgets.registry import GADGETS
from onelayer.readouts.method import READOUTS
from onelayer.statements import CATALOGUE
from onelayer.statements.document import as_markdown

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(onelayer.__path__, "onelayer.")
    if module.name not in {"onelayer.statements.document"}
)


def states_something(module: str) -> bool:
    """Whether its source binds STATEMENT: importing every module would import every extra."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return re.search(r"^STATEMENT\b", Path(spec.origin).read_text(encoding="utf-8"), re.MULTILINE) is not None


#: Folders whose modules are statements.
THEOREMS = [m for m in MODULES if re.match(r"onelayer\.(contexts|readouts|functions|impossible|learners)\.", m)]
#: Their modules that state nothing of their own, and what they are for.
PARTS = {
    "contexts.agreement": "asks what every negative result asks: do two sequences get the same ids?",
    "contexts.head": "draws the softmax head that temperature and shared_query share",
    "contexts.hashed": "hashes of tokens and places that lattice adds up, and the sink of lengths",
    "contexts.mapping": "what every mapping is, and where it is registered",
    "contexts.cuts": "pieces of a line of numbers, which number_line codes",
    "contexts.number_line": "codes of tokens of one component, which lattice hashes",
    "contexts.places": "codes of positions, for texts",
    "contexts.quantiser": "turns real tokens into the features that lattice and averages sum",
    "contexts.units": "powers of two that tokens are multiplied by, which every stream of reals is in",
    "contexts.raw_codes": "whole-number codes of tokens, which lattice hashes or adds up",
    "contexts.spare_channels": "lets heads write beside the token, for sink and temperature_heads",
    "contexts.sums": "adds up the codes of tokens, for lattice",
    "contexts.stream": "the residual stream that every mapping reads",
    "readouts.cells": "cuts coordinates into cells, for table, retrieval and bits",
    "readouts.false_hits": "bounds how many unknown inputs a readout takes for stored ones",
    "contexts.small_codes": "codes of tokens that 16 bits hold, for tallies",
    "readouts.fit": "chooses among the readouts, or names the samples in their way",
    "readouts.method": "what every readout is, and where it is registered",
    "readouts.packed_blocks": "packed, of keys that come in blocks",
    "readouts.packed_sizes": "sizes of packed readouts, before one is built",
    "readouts.peeling": "solves the system that retrieval and bits state",
    "readouts.readout": "what every readout's construction returns",
    "readouts.ridges": "fits the ReLU units of the continuous construction",
    "readouts.refill": "puts other answers into packed and retrieval cells that were built",
    "readouts.rows": "divides keys into the rows of a table",
    "functions.expansion": "writes lines as sums of products, for rewriting",
    "functions.carrying": "which numbers of a formula are passed on as sums",
    "functions.layout": "the numbers and blocks of a formula, level by level",
    "functions.writing": "writes them as layers",
    "functions.lines": "lines of a formula, for rewriting and layout",
    "functions.pairs": "functions of pairs of tokens as sums of products",
    "functions.pieces": "piecewise linear blocks of functions of one number",
    "functions.rewriting": "expands a formula to one aggregation",
    "functions.heads": "writes averages as heads of one attention layer",
    "functions.smallest": "chooses among the ways to compile a formula",
    "functions.waves": "fits sums of few waves to functions of one number, for pairs",
    "functions.grid": "cells of a box, for quantise and positional",
    "learners.bounds": "the formulas that ridge and nesterov claim of their steps",
    "learners.averaged": "the softmax head of kernel and kernel_head",
    "learners.carried": "tokens that carry weights, for ridge, lasso and logistic",
    "learners.shrunken": "the compact block of ridge and nesterov",
    "learners.built": "what every learner is made of, and the checks they share",
    "learners.registry": "names of learners, for the compiler and the command line",
    "impossible.collision": "what a pair that is not told apart costs every model",
}


def test_the_page_of_statements_is_up_to_date() -> None:
    assert (ROOT / "docs" / "statements.md").read_text() == as_markdown()


def test_sources_are_in_the_bibliography() -> None:
    keys = set(re.findall(r"@\w+\{(\w+),", (SOURCE / "onelayer/statements/references.bib").read_text()))
    assert {s.source for s in CATALOGUE.values()} - {""} <= keys


def test_statements_rest_on_statements() -> None:
    for statement in CATALOGUE.values():
        assert set(statement.rests_on) <= set(CATALOGUE)
        assert (statement.source == "") <= (statement.standing == "ours")


def test_every_module_of_a_theorem_folder_has_a_statement_or_is_a_named_part() -> None:
    """The table of parts is complete, and holds nothing that is gone or has a statement of its own."""
    without = {name for name in THEOREMS if not hasattr(importlib.import_module(name), "STATEMENT")}
    assert without == {f"onelayer.{part}" for part in PARTS}
    assert all(len(reason.split()) > 3 for reason in PARTS.values())


@pytest.mark.parametrize("name", [m for m in MODULES if states_something(m)])
def test_statement_modules_say_five_things(name: str) -> None:
    module = importlib.import_module(name)
    assert module.STATEMENT in CATALOGUE.values()
    heads = [
        line.split()[0]
        for line in module.__doc__.splitlines()
        if re.match(r"(Statement|Gives|Rests|Why|Differs)\s", line)
    ]
    assert heads == ["Statement", "Gives", "Rests", "Why", "Differs"]
    if name.startswith("onelayer.impossible."):
        assert callable(module.witness)


def test_what_is_registered_is_stated_and_documented() -> None:
    """Every mapping, readout and construction has a statement, and its name is where the options are explained."""
    for registry, explains in (
        (MAPPINGS, onelayer.memorize),
        (READOUTS, onelayer.memorize),
        (CONSTRUCTIONS, approximate),
    ):
        for name, cls in registry.items():
            module = cls.__module__.replace(".compile.", ".functions.")
            assert importlib.import_module(module).STATEMENT in CATALOGUE.values(), name
            assert f'"{name}"' in (explains.__doc__ or ""), f"{explains.__name__} does not say what {name} is"
            assert f"`{name}`" in (ROOT / "docs" / "statements.md").read_text() or name == "published"


def test_no_name_hides_a_module() -> None:
    """A package that binds the name of a module to something else hides it from `import package.module as m`."""
    for name in MODULES:
        importlib.import_module(name)
    for name in MODULES:
        package, _, own = name.rpartition(".")
        bound = getattr(importlib.import_module(package), own)
        assert bound is sys.modules[name], f"{package} binds {own} to {bound!r}"


def test_errors_name_statements_of_the_catalogue() -> None:
    """A refusal by a theorem names it; what people give and ask for has errors of its own."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"HypothesisError", "PrecisionError"}:
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    assert first.value in CATALOGUE, f"{path}: {first.value}"
                    assert first.value != "data", f"{path}: data is no theorem"


def test_no_control_flow_reads_what_an_error_says() -> None:
    """The class of an error decides what happens next: no condition asks for its words."""
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
        for node in ast.walk(tree):
            if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
                for part in ast.walk(node.test):
                    words = isinstance(part, ast.Attribute) and part.attr in {"statement", "subject", "needs"}
                    words |= isinstance(part, ast.Call) and ast.unparse(part) in {f"str({name})" for name in caught}
                    assert not words, f"{path}, line {part.lineno}: {ast.unparse(node.test)}"


def through_the_front_door(text: str) -> list[str]:
    """Public names that a program imports from `onelayer` itself."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    named = [name.name for node in imports if node.module == "onelayer" and not node.level for name in node.names]
    return [name for name in named if name in onelayer.__all__ and name != "__version__"]


def recognisers(source: str) -> list[str]:
    """Functions that take layers, a network or a model and give a gadget: they guess back what was built."""
    tree = ast.parse(source)
    imported = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onelayer.gadgets")
        for name in node.names
    }
    gadgets = imported & ({"Gadget"} | {kind.__name__ for kind in GADGETS})
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = " ".join(ast.unparse(a.annotation) for a in node.args.args if a.annotation is not None)
            made = "" if node.returns is None else ast.unparse(node.returns)
            words = re.findall(r"\w+", given), re.findall(r"\w+", made)
            guessed = {"Layer", "Linear", "Grouped", "Transformer", "Model"} & set(words[0])
            if node.name.startswith("recogni") or (guessed and gadgets & set(words[1])):
                found.append(node.name)
    return found


def test_gadgets_alone_recognise_layers() -> None:
    """The rule finds one that somebody writes elsewhere, and there is none."""
    seeded = "from onelayer.gadgets.steps import Steps\ndef guess(layers: tuple[Layer, ...]) -> Steps | None: ..."
    assert recognisers(seeded) == ["guess"]
    package = SOURCE / "onelayer"
    outside = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "gadgets"]
    assert len(outside) > 200
    assert {path.name: found for path in outside if (found := recognisers(path.read_text(encoding="utf-8")))} == {}
    assert all("parse" in vars(kind) and kind.__module__.startswith("onelayer.gadgets.") for kind in GADGETS)


def test_nothing_inside_imports_through_the_front_door() -> None:
    """Public names are imported late, which would hide a cycle from the contracts."""
    assert through_the_front_door("def later():\n    from onelayer import memorize") == ["memorize"]
    for path in (SOURCE / "onelayer").rglob("*.py"):
        assert not through_the_front_door(path.read_text()), path


def test_every_public_name_is_found_and_importing_the_library_imports_no_numbers() -> None:
    for name in onelayer.__all__:
        assert getattr(onelayer, name) is not None
    assert {"OneLayerMemorizer", "to_onnx", "to_torch"} < set(onelayer.__all__) < set(dir(onelayer))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        onelayer.nothing  # noqa: B018
    program = "import sys, onelayer; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_core_needs_no_extra() -> None:
    """Importing the library and its command line must not import what only an extra installs."""
    heavy = ["sklearn", "scipy", "matplotlib", "pyarrow", "flint", "torch", "onnx", "pandas"]
    program = (
        "import sys\n"
        f"for name in {heavy}: sys.modules[name] = None\n"
        "import onelayer, onelayer.cli\n"
        "from onelayer import *\n"
        "model = onelayer.memorize([['a', 'b'], ['b', 'c']], [[1, 2], [3, 4]])\n"
        "assert model.predict([['b', 'a']]).tolist() == [[2, 1]]\n"
        "try: onelayer.OneLayerMemorizer\n"
        "except ImportError as error: assert '[sklearn]' in str(error)\n"
        "else: raise AssertionError('no error')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


PAGES = {"README.md": 1, "docs/guide.md": 3}
PAGE = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_print_what_they_say(page: str) -> None:
    text = (ROOT / page).read_text()
    examples = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(examples) == text.count("```python") == PAGES[page]
    for program, printed in examples:
        assert len(program.strip().splitlines()) <= 12
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        assert ran.stdout == printed


def test_the_quick_start_prints_in_an_empty_folder_what_the_readme_shows(tmp_path: Path) -> None:
    """Every command of the README's console, one after the other; only times may differ."""

    def timeless(text: str) -> str:
        return re.sub(r"\[[\d.]+ s\]", "[s]", text)

    (console,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, more, printed in re.findall(r"^\$ (.*\n)((?:> .*\n)*)((?:[^$].*\n)*)", console, re.MULTILINE):
        script = command + re.sub(r"^> ", "", more, flags=re.MULTILINE)
        environment = os.environ | {"PATH": path}
        ran = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert timeless(ran.stdout) == timeless(printed), command


def test_the_picture_of_the_readme_is_what_the_demo_draws() -> None:
    picture = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1].splitlines()
    drawn = subprocess.run(
        [sys.executable, "-m", "onelayer", "demo"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(picture) > 4
    assert set(picture) <= {line.rstrip() for line in drawn}
    sequences, words, weights = re.search(r"for (\d+) sequences of (\d+) words in ([\d,]+) weights", PAGE).groups()
    said = " ".join(" ".join(drawn).split())
    assert f"{sequences} sequences of {words} tokens" in said
    assert f"{weights} parameters" in said


@pytest.mark.parametrize("page", readme.PAGES, ids=lambda path: path.name)
def test_the_figures_of_a_page_are_those_that_the_benchmarks_recorded(page: Path) -> None:
    assert readme.updated(page) == page.read_text()


@pytest.mark.parametrize(("sequences", "classes"), [(200, 2), (2000, 65_536)])
def test_a_packed_readout_has_as_many_layers_as_the_readme_says(sequences: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(2000)[:16] for _ in range(sequences)])
    transformer = onelayer.memorize(X, rng.integers(0, classes, X.shape), certify=False).transformer
    layers = transformer.feedforward + transformer.last_readout
    assert (transformer.attention.heads, len(layers)) == (1, readme.PACKED_LAYERS)


def test_the_first_result_is_on_the_first_screen() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert lines.index("prints") < 30
    assert next(i for i, line in enumerate(lines) if "pip install" in line) < 12


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *SOURCE.rglob("*.md"), ROOT / "proofs/README.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_tests_mirror_the_tree() -> None:
    """The tests of a package are in the folder of its name; the others are about more than one package."""
    packages = {path.parent.name for path in (SOURCE / "onelayer").glob("*/__init__.py")}
    modules = {path.stem for path in (SOURCE / "onelayer").glob("*.py")}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - packages - modules == {"checker", "hands", "house", "proofs"}  # hands: hf and lens
    assert {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")} <= modules


def test_the_forward_pass_fits_on_a_screen() -> None:
    lines = (SOURCE / "onelayer/network/forward.py").read_text().splitlines()
    assert len(lines) <= 110


def test_files_and_functions_stay_small() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        lines = len(text.splitlines())
        assert lines <= 300, f"{path} has {lines} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"


def test_the_product_speaks_of_itself_only() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in listed:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".cff", ".yaml", ".jsonl"} and path.is_file():
            assert not re.search(r"(^|[^\w.])/(home|root|work)/", path.read_text()), name


def test_what_make_fast_leaves_out_exists() -> None:
    """A test that was renamed or deleted is not listed any more."""
    for line in (ROOT / "tests" / "seconds.txt").read_text(encoding="utf-8").split():
        module, _, name = line.partition("::")
        source = (ROOT / Path(*module.split("."))).with_suffix(".py")
        assert source.exists(), line
        assert f"def {name}(" in source.read_text(encoding="utf-8"), line
