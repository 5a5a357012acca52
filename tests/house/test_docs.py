"""The documentation site: every page is in it, every cell runs, every statement of the papers is walked through."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import onelayer
import onelayer_checker.front  # noqa: F401 - it registers the claims of all rings
from onelayer import memorize
from onelayer.statements import CATALOGUE
from onelayer_checker.core.claims import KINDS, RINGS
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


#: Lines of the guide that are not run: they install, need a cluster or training, or never end.
NOT_RUN = re.compile(r"^make |--serve|onelayer race")
#: Commands whose answer may be no.
MAY_SAY_NO = ("onelayer cast", "onelayer bound")


def bash_blocks(page: Path) -> list[list[str]]:
    """Commands of each block, one with all that it reads from its own text."""
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = [re.findall(r"^.*<<END\n(?:.*\n)*?END\n|^.+\n", block, re.MULTILINE) for block in blocks]
    return [[command for command in block if not NOT_RUN.search(command)] for block in commands]


def write_what_the_guide_takes_for_granted(folder: Path) -> None:
    rng = np.random.default_rng(0)
    facts = [{"tokens": [a, b], "answers": [a + b, b + a]} for a in "abc" for b in "def"]
    (folder / "facts.jsonl").write_text("".join(f"{json.dumps(fact)}\n" for fact in facts))
    changed = facts[0] | {"answers": [facts[1]["answers"][0], facts[0]["answers"][1]]}
    (folder / "changes.jsonl").write_text(json.dumps(changed))
    (folder / "private.jsonl").write_text(json.dumps(facts[2]))
    tokens, answers = zip(*((fact["tokens"], fact["answers"]) for fact in facts), strict=True)
    memorize(list(tokens), list(answers), default="?").save(folder / "model")
    text = (DOCS / "guide.md").read_text(encoding="utf-8")
    (folder / "book.txt").write_text(text)
    (folder / "passage.txt").write_text(text[1000:1200])
    (folder / "parts").mkdir()
    X, Y = rng.standard_normal((60, 3, 2)).astype(np.float32), rng.integers(0, 5, (60, 3))
    for name, array in (("parts/X.npy", X), ("parts/Y.npy", Y), ("X.npy", X), ("Y.npy", Y)):
        np.save(folder / name, array)
    np.savez(folder / "sequences.npz", X=rng.standard_normal((200, 4, 2)))
    np.savetxt(
        folder / "examples.csv", rng.uniform(-1, 1, (9, 6)), delimiter=",", header="a,b,c,d,e,y", comments=""
    )
    np.savetxt(folder / "queries.csv", rng.uniform(-1, 1, (2, 5)), delimiter=",", header="a,b,c,d,e", comments="")


@pytest.mark.parametrize("block", range(1, len(bash_blocks(DOCS / "guide.md"))))
def test_commands_of_the_guide_run(block: int, tmp_path: Path) -> None:
    write_what_the_guide_takes_for_granted(tmp_path)
    commands = bash_blocks(DOCS / "guide.md")[block]
    assert commands
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        if " --out model" in command:
            shutil.rmtree(tmp_path / "model")
        if "network.onnx" in command:
            onnx_of_a_linear_map(tmp_path / "network.onnx")
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        assert done.returncode in ((0, 1) if command.startswith(MAY_SAY_NO) else (0,)), (command, done.stderr)
        assert not re.search("Traceback|Warning", done.stderr), command


def onnx_of_a_linear_map(path: Path) -> None:
    """Tokens [N, 2, 1], each less the mean of both."""
    from onnx import TensorProto, helper, numpy_helper, save

    weight = numpy_helper.from_array(np.array([[0.5, -0.5], [-0.5, 0.5]], np.float32), "weight")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2, 1]) for name in ("x", "y")]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["weight", "x"], ["y"])], "g", ends[:1], ends[1:], [weight]
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_every_page_is_in_the_site_once() -> None:
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    listed = [
        re.sub(r".*<(.*)>", r"\1", line) for tree in trees for line in tree.splitlines() if line[:1] not in ":"
    ]
    listed = [line for line in listed if line]
    here = [str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if page.name != "index.md"]
    assert sorted(entry for entry in listed if not entry.startswith("../")) == sorted(here)
    assert all((DOCS / f"{entry}.md").exists() for entry in listed)


def test_every_claim_is_said_in_words() -> None:
    words = (DOCS / "certificate.md").read_text()
    assert [name for name in (*KINDS, *RINGS) if f"`{name}`" not in words] == []
    assert len({*KINDS, *RINGS}) > 10


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
