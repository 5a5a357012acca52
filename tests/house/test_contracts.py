"""The import contracts are kept, and a copy of the tree in which one line breaks them is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ONE_WAY, CIRCLES = "Data flows one way", "No folder goes in circles"
OPTIONAL, DOOR = "The core imports no optional dependency", "The library knocks at the checker's front door"
NOBODY = "The checker knows nobody"
RINGS = "The checker is made of rings: the core stands alone, and a search only makes it fast"
#: (contract, file, line to add to it)
SEEDS = {
    "a layer below imports one above": (ONE_WAY, "onelayer/errors.py", "import onelayer.ledger"),
    "two layers import each other": (
        ONE_WAY,
        "onelayer/readouts/plateaus.py",
        "from onelayer.contexts import stream",
    ),
    "measures import a compiler": (ONE_WAY, "onelayer/measure/recall.py", "import onelayer.compile.memorize"),
    "hidden in a function": (ONE_WAY, "onelayer/gadgets/line.py", "def later():\n    import onelayer.model"),
    "siblings that must not meet": (ONE_WAY, "onelayer/functions/grid.py", "import onelayer.interfaces.plan"),
    "a module in no layer": (ONE_WAY, "onelayer/elsewhere.py", ""),
    "a folder in no layer": (ONE_WAY, "onelayer/beside/__init__.py", ""),
    "a cycle inside a folder": (CIRCLES, "onelayer/problems/blocks.py", "import onelayer.problems.sequences"),
    "a cycle of subfolders": (CIRCLES, "onelayer/problems/files/arrays.py", "import onelayer.problems.tables"),
    "an extra beside its own file": (OPTIONAL, "onelayer/cli/pictures.py", "import matplotlib"),
    "behind the checker's door": (DOOR, "onelayer/model.py", "from onelayer_checker.core import balls"),
    "the checker meets the library": (NOBODY, "onelayer_checker/core/balls.py", "import onelayer.errors"),
    "the core searches": (RINGS, "onelayer_checker/core/judge.py", "import onelayer_checker.search.plan"),
    "a module in no ring": (RINGS, "onelayer_checker/elsewhere.py", ""),
}


def linted(folder: Path) -> tuple[int, str]:
    """What import-linter says of the packages in a folder."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    done = subprocess.run(
        [sys.executable, "-c", command, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"COLUMNS": "300", "PATH": ""},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources."""
    shutil.copytree(ROOT / "src", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_every_contract_is_kept(tree: Path) -> None:
    code, said = linted(tree)
    assert code == 0, said
    for contract in CONTRACTS:
        assert f"{contract['name']} KEPT" in said


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seeded_line_breaks_its_contract(tree: Path, seed: str) -> None:
    contract, file, line = SEEDS[seed]
    path = tree / file
    assert path.exists() == bool(line), f"{file} is not what this test takes it for"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as source:
        source.write(f"\n{line}\n")
    code, said = linted(tree)
    assert code == 1, said
    assert f"{contract} BROKEN" in said, said


def test_no_optional_dependency_may_be_imported_by_the_core(tree: Path) -> None:
    forbidden = next(contract for contract in CONTRACTS if contract["name"] == OPTIONAL)["forbidden_modules"]
    assert {"pyarrow", "matplotlib", "sklearn", "joblib", "flint", "torch", "onnx", "tokenizers"} <= set(forbidden)
    with (tree / "onelayer/problems/sequences.py").open("a") as source:
        source.write("\n" + "".join(f"import {name}\n" for name in forbidden))
    code, said = linted(tree)
    assert code == 1
    for name in forbidden:
        assert f"onelayer is not allowed to import {name}:" in said


def test_every_extra_is_forbidden_by_name() -> None:
    """What an extra installs, by the name under which it is imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    imported = {"scikit-learn": "sklearn", "python-flint": "flint", "transformer-lens": "transformer_lens"}
    own = ("test", "lint", "docs", "all", "train")
    wanted = {
        name.partition(">")[0]
        for extra, names in project["optional-dependencies"].items()
        if extra not in own
        for name in names
        if not name.startswith("onelayer[")
    }
    forbidden = next(contract for contract in CONTRACTS if contract["name"] == OPTIONAL)["forbidden_modules"]
    assert {imported.get(name, name) for name in wanted} <= set(forbidden)
