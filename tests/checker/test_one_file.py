"""The checker as one file: the same bytes every time, and the same verdicts as the package, with NumPy alone."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from attacks.hostile import honest
from tools import one_file, rings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checker(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checker")
    printed = subprocess.run(
        ["make", "--no-print-directory", "checker", f"PYTHON={sys.executable} -B"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    built = ROOT / "dist" / one_file.NAME
    path = Path(shutil.copy(built, folder))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert printed.splitlines()[1:] == [f"{path.stat().st_size:,} bytes", f"sha256 {digest}"]
    return path


@pytest.fixture(scope="module")
def numpy_only(tmp_path_factory) -> Path:
    """A Python that has NumPy and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (folder / "packages").mkdir()
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (folder / "packages" / part.name).symlink_to(part)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "numpy.pth").write_text(f"{folder / 'packages'}\n")
    return folder / "venv" / "bin" / "python"


def test_the_same_sources_give_the_same_bytes(checker, tmp_path) -> None:
    assert checker.read_bytes() == one_file.content()
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "src" / "onelayer_checker", copy / "src" / "onelayer_checker", copy_function=shutil.copy)
    shutil.copy(ROOT / "LICENSE", copy)
    for path in copy.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
        path.chmod(0o600)
    assert one_file.content(copy) == one_file.content()
    (copy / "src" / "onelayer_checker" / "front.py").write_text("")
    assert one_file.content(copy) != one_file.content()


def test_it_holds_the_sources_and_nothing_else(checker) -> None:
    with zipfile.ZipFile(checker) as archive:
        names = archive.namelist()
        sources = {
            f"onelayer_checker/{p.relative_to(rings.CHECKER).as_posix()}" for p in rings.CHECKER.rglob("*.py")
        }
        assert names == sorted(names)
        assert set(names) == sources | {"__main__.py", "LICENSE"}
        for name in sources:
            assert archive.read(name) == (rings.CHECKER.parent / name).read_bytes()


def test_it_says_the_same_as_the_package_with_numpy_alone(checker, numpy_only, tmp_path) -> None:
    forged, malformed = honest(), honest()
    forged.data["answers"] = np.ones((1, 1))
    malformed.model["backdoor"] = np.ones(1, np.float32)
    alone = [numpy_only, "-I", checker]
    for name, bundle, code in (("honest", honest(), 0), ("forged", forged, 1), ("malformed", malformed, 3)):
        folder = bundle.write(tmp_path / name)
        one, package = (
            subprocess.run([*command, folder], cwd=tmp_path, capture_output=True, text=True)
            for command in (alone, [sys.executable, "-I", "-m", "onelayer_checker"])
        )
        assert one.returncode == package.returncode == code
        said = [re.sub(r"\[[0-9.]+ s\]", "", done.stdout) for done in (one, package)]
        assert said[0] == said[1] != ""
        assert one.stderr == package.stderr == ""
    arb = subprocess.run([*alone, tmp_path / "honest", "--engine", "arb"], capture_output=True, text=True)
    assert (arb.returncode, arb.stdout.splitlines()[-1]) == (4, "UNFIT")
    hidden = subprocess.run([numpy_only, "-I", "-c", "import onelayer_checker"], capture_output=True)
    assert hidden.returncode == 1  # the package is not there


def test_without_numpy_it_is_unfit(checker, numpy_only) -> None:
    done = subprocess.run([numpy_only, "-I", "-S", checker, "folder"], capture_output=True, text=True)
    assert done.returncode == 4
    assert "numpy" in done.stderr
    assert done.stderr.splitlines()[-1] == "UNFIT"


def test_a_python_that_is_too_old_is_unfit() -> None:
    old = b"import sys; sys.version_info = (3, 10)\n" + one_file.MAIN
    done = subprocess.run([sys.executable, "-c", old.decode()], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (4, "the checker needs Python 3.11 or newer\nUNFIT\n")


def test_the_readme_counts_the_lines_of_each_ring() -> None:
    text = rings.README.read_text()
    assert text == rings.with_counts(text), "run: python tools/rings.py"
    assert min(rings.count().values()) > 50


def test_only_code_is_counted() -> None:
    text = '"""Words."""\n\n# more\nx = 1  # y\ndef f():\n    """Words\n    and words."""\n    return """a\nb"""\n'
    assert rings.lines_of_code(text) == 4


def test_the_readme_names_every_module_and_every_option() -> None:
    text = rings.README.read_text()
    for path in rings.CHECKER.glob("*/*.py"):
        name = path.relative_to(rings.CHECKER).as_posix()
        assert path.name == "__init__.py" or name.startswith("arb/") or f"`{name}`" in text, name
    options = subprocess.run(
        [sys.executable, "-m", "onelayer_checker", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for option in set(re.findall(r"--[a-z]+", options)) - {"--help"}:
        assert f"`{option}" in text, option


def test_both_packages_are_typed() -> None:
    for package in ("onelayer", "onelayer_checker"):
        assert (ROOT / "src" / package / "py.typed").is_file()
