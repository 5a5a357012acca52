"""The house keeps its promises: statements, documents, imports, and the words it uses."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onelayer
from onelayer.statements import CATALOGUE
from onelayer.statements.document import as_markdown

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(onelayer.__path__, "onelayer.")
    if module.name not in {"onelayer.statements.document"}
)


def test_the_page_of_statements_is_up_to_date() -> None:
    assert (ROOT / "docs" / "statements.md").read_text() == as_markdown()


def test_sources_are_in_the_bibliography() -> None:
    keys = set(re.findall(r"@\w+\{(\w+),", (SOURCE / "onelayer/statements/references.bib").read_text()))
    assert {s.source for s in CATALOGUE.values()} - {""} <= keys


def test_statements_rest_on_statements() -> None:
    for statement in CATALOGUE.values():
        assert set(statement.rests_on) <= set(CATALOGUE)
        assert (statement.source == "") <= (statement.standing == "ours")


@pytest.mark.parametrize("name", [m for m in MODULES if m.startswith("onelayer.constructions.")])
def test_statement_modules_say_five_things(name: str) -> None:
    module = importlib.import_module(name)
    if not hasattr(module, "STATEMENT"):
        return
    heads = [
        line.split()[0]
        for line in module.__doc__.splitlines()
        if re.match(r"(Statement|Gives|Rests|Why|Differs)\s", line)
    ]
    assert heads == ["Statement", "Gives", "Rests", "Why", "Differs"]


def test_errors_name_statements_of_the_catalogue() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "HypothesisError":
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    assert first.value in CATALOGUE, f"{path}: {first.value}"


def test_the_core_needs_no_extra() -> None:
    """Importing the library and its command line must not import what only an extra installs."""
    heavy = ["sklearn", "scipy", "matplotlib", "pyarrow", "flint", "torch", "onnx", "pandas"]
    program = (
        "import sys\n"
        f"for name in {heavy}: sys.modules[name] = None\n"
        "import onelayer, onelayer.cli\n"
        "model = onelayer.memorize([['a', 'b'], ['b', 'c']], [[1, 2], [3, 4]])\n"
        "assert model.predict([['b', 'a']]).tolist() == [[2, 1]]\n"
        "try: onelayer.OneLayerMemorizer\n"
        "except ImportError as error: assert 'onelayer[sklearn]' in str(error)\n"
        "else: raise AssertionError('no error')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_readme_examples_print_what_they_say() -> None:
    text = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert len(examples) == text.count("```python") == 2
    for program, printed in examples:
        assert len(program.strip().splitlines()) <= 12
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        assert ran.stdout == printed


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
