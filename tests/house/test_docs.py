"""The documentation site: every page is in it, every cell runs, every statement of the papers is walked through."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

import onelayer
from onelayer.statements import CATALOGUE
from tests.processes import run_python
from tools.links import follow_links

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOTEBOOKS = [page for page in PAGES if CELL.search(page.read_text(encoding="utf-8"))]
PAPERS = {"kajitsuka2024": "paper-one.md", "gumaan2025": "paper-two.md"}

#: Runs cells as a notebook does. A command that fails is an error, which `!` alone would not be; a cell that is
#: marked so must fail.
RUN_CELLS = """
import re, subprocess, sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell

def call(command):
    subprocess.run(command, shell=True, check=True)

shell = InteractiveShell.instance()
shell.system = call
for cell in re.findall(sys.argv[2], Path(sys.argv[1]).read_text(), re.MULTILINE | re.DOTALL):
    options, _, source = cell.rpartition("]\\n\\n") if cell.startswith(":tags:") else ("", "", cell)
    done = shell.run_cell(source)
    if done.success == ("raises-exception" in options):
        sys.exit(f"{'no' if done.success else 'an'} error in this cell:\\n{source}")
"""


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_every_cell_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "IPYTHONDIR": str(tmp_path / ".ipython"), "COLUMNS": "110"}
    done = run_python(RUN_CELLS, page, CELL.pattern, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_every_page_is_in_the_site_once() -> None:
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    listed = [
        re.sub(r".*<(.*)>", r"\1", line) for tree in trees for line in tree.splitlines() if line[:1] not in ":"
    ]
    listed = [line for line in listed if line]
    here = [str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if page.name != "index.md"]
    assert sorted(entry for entry in listed if not entry.startswith("../")) == sorted(here)
    assert all((DOCS / f"{entry}.md").exists() for entry in listed)


@pytest.mark.parametrize("source", PAPERS)
def test_every_statement_of_a_paper_is_walked_through(source: str) -> None:
    text = (DOCS / PAPERS[source]).read_text()
    keys = [key for key, statement in CATALOGUE.items() if statement.source == source]
    assert keys
    assert [key for key in keys if f"Statement `{key}`" not in text] == []


def test_a_release_has_one_version_and_is_told_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    released = re.findall(r"^## (\d\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = [re.findall(rf"^{key}: (.*)$", citation, re.MULTILINE) for key in ("version", "date-released")]
    assert [[field] for field in released[0]] == cited
    assert onelayer.__version__ == project["version"] == released[0][0]


def test_requirements_agree_with_each_other() -> None:
    """All of them may be installed into one environment, one after the other."""
    pinned: dict[str, str] = {}
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        for name, version in re.findall(r"^([\w.-]+)==(\S+)$", file.read_text(), re.MULTILINE):
            key = re.sub(r"[-_.]+", "-", name).lower()
            assert pinned.setdefault(key, version) == version, f"{file.name}: {name}"


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.html").write_text('<p id=here><a href="in/b.html#there">b</a> <a href="https://x.org/">x</a>')
    (tmp_path / "in" / "b.html").write_text('<p id=there><a href="../a.html#here">a</a> <img src="data:,">')
    assert follow_links(tmp_path) == ([], {"https://x.org/": "a.html"}, 2)
    (tmp_path / "in" / "b.html").write_text('<p><a href="../a.html#gone">a</a> <a href="c.html">c</a>')
    assert follow_links(tmp_path)[0] == [
        "a.html: in/b.html#there",
        "in/b.html: ../a.html#gone",
        "in/b.html: c.html",
    ]
