"""Runs that are killed go on where they stopped; rows are reproducible, never overwritten, and say where from."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from onelayer import lab
from onelayer.cli import lab as commands
from onelayer.errors import FileError, OptionError
from onelayer.lab import Verdict, report, store
from onelayer.lab.experiment import Earlier, judge
from onelayer.lab.harness import PieceError
from onelayer.lab.store import META, Store
from tests.processes import run_command

#: Runs the toy and is killed, as by a machine that goes down, at the piece of that number.
KILLED = """
import os, signal, sys
from pathlib import Path
from onelayer import lab
from onelayer.lab import experiments, store
folder, results, piece, where = sys.argv[1:]
experiments.__path__.append(folder)
toy, count = lab.find("toy"), 0
def killing(function):
    def counted(*arguments):
        global count
        count += 1
        if count == int(piece):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)
    return counted
if where == "compute":
    toy.run = killing(toy.run)
else:
    os.replace = killing(os.replace)
lab.run("toy", seeds=4, results=Path(results), jobs=1)
"""


def pieces(log: Path) -> list[str]:
    return log.read_text().split("\n")[:-1]


def test_a_killed_run_goes_on_where_it_stopped(toy, tmp_path) -> None:
    """Killed in the middle of its 8th piece, then in the middle of writing its 6th: the others are kept."""
    results, folder = tmp_path / "results", tmp_path / "results" / "toy" / "quick"
    for piece, where in ((8, "compute"), (6, "write")):
        arguments = [tmp_path / "experiments", results, str(piece), where]
        killed = subprocess.run([sys.executable, "-c", KILLED, *arguments])
        assert killed.returncode == -signal.SIGKILL
    files = list(folder.glob("*.parquet"))
    assert len(files) == 7 + 5
    assert all(pyarrow.parquet.read_table(path).num_rows == 2 for path in files)  # whole
    (unfinished,) = set(folder.iterdir()) - set(files)
    os.utime(unfinished, (0, 0))
    assert len(pieces(toy)) == 8 - 1 + 6  # the 8th did not come to note itself
    rows = lab.run("toy", seeds=4, results=results, jobs=1)
    assert len(pieces(toy)) == 13 + 24 - 12
    assert len(list(folder.iterdir())) == 24
    assert [(r["start"], r["seed"]) for r in rows[::2]] == [(i, s) for i in range(6) for s in range(4)]
    assert rows == lab.run("toy", seeds=4, results=tmp_path / "elsewhere", jobs=1)
    before = len(pieces(toy))
    assert lab.run("toy", seeds=4, results=results, jobs=1) == rows
    assert lab.run("toy", seeds=2, results=results, jobs=1) == [row for row in rows if row["seed"] < 2]
    assert len(pieces(toy)) == before


#: What the toy does with two of its pieces if it is told to.
REFUSING = """    from onelayer.errors import HypothesisError
    if (case["start"], seed) in ((1, 0), (4, 1)): raise HypothesisError("toy", "a", "b", "C.")
"""


@pytest.mark.usefixtures("toy")
def test_a_piece_that_cannot_be_computed_does_not_stop_the_others(tmp_path, monkeypatch, capsys) -> None:
    """It is named when they are done; the next experiments are run and answered as well."""
    source = tmp_path / "experiments" / "toy.py"
    whole = source.read_text()
    source.with_name("toy_two.py").write_text(whole)
    monkeypatch.setitem(sys.modules, "onelayer.lab.experiments.toy_two", None)  # gone after the test
    del sys.modules["onelayer.lab.experiments.toy_two"]
    source.write_text(whole.replace("    time.sleep", f"{REFUSING}    time.sleep"))
    with pytest.raises(PieceError, match="2 of 12 did not, the first with start=1, ") as refused:
        commands.run(["toy", "toy-two"], seeds=2, results=tmp_path / "results", jobs=1)
    assert "seed 0: [toy] needs a; b. C. The others are kept." in str(refused.value)
    for name, many in (("toy", 10), ("toy_two", 12)):
        assert len(list((tmp_path / "results" / name.replace("_", "-") / "quick").glob("*.parquet"))) == many
    assert capsys.readouterr().out.count("How far <do> we count?") == 1


def test_fresh_rows_put_the_old_aside(toy, tmp_path) -> None:
    for _ in range(3):
        lab.run("toy", seeds=1, results=tmp_path, jobs=1, fresh=True)
    found = sorted(path.name for path in (tmp_path / "toy").iterdir())
    assert len(found) == 3
    assert found[0] == "quick"
    assert all(re.fullmatch(r"quick\.\d{8}-\d{6}(-\d)?", name) for name in found[1:])
    assert all(len(list((tmp_path / "toy" / name).glob("*.parquet"))) == 6 for name in found)
    assert len(pieces(toy)) == 18


@pytest.mark.usefixtures("toy")
def test_files_say_where_their_rows_come_from(tmp_path) -> None:
    lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    case = lab.find("toy").cases("quick")[2]
    table = pyarrow.parquet.read_table(Store(tmp_path, "toy", "quick").path(case, 0))
    about = json.loads(table.schema.metadata[META])
    assert (about["case"], about["seed"]) == (case, 0)
    assert about["seconds"] > 0
    assert {"numpy", "pyarrow", "joblib"} <= about["versions"].keys()
    assert about["machine"].keys() == {"python", "system", "cores"}
    assert table.column_names == ["start", "log", "pause", "seed", "value", "square", "word"]


def test_other_code_leaves_old_rows_alone(tmp_path, toy, monkeypatch) -> None:
    lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    monkeypatch.setattr(store, "fingerprint", lambda *_: "other code")
    rows = lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    assert len(pieces(toy)) == 12
    assert len(rows) == 12
    assert len(list(Store(tmp_path, "toy", "quick").folder.iterdir())) == 12


@pytest.mark.usefixtures("toy")
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch) -> None:
    store = Store(tmp_path, "toy", "quick")

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pyarrow.parquet, "write_table", broken)
    with pytest.raises(KeyboardInterrupt):
        store.write({"a": 1}, 0, [{"b": 2}], 0.0)
    assert list(store.folder.iterdir()) == []


@pytest.mark.usefixtures("toy")
def test_the_page_is_self_contained_and_has_every_verdict(tmp_path) -> None:
    lab.run("toy", seeds=2, results=tmp_path, jobs=1)
    found = report.sections(tmp_path, "quick")
    assert [s.name for s in found] == ["toy"]
    page, text = report.as_html(found), report.as_markdown(found)
    assert "pre { overflow-x: auto; }" in page  # versions of packages are longer than a narrow window
    for said in ("Open.", "2 seeds are too few for an answer, which takes 5. They say: To 5.125.", "Another."):
        assert said in page
        assert said in text
    assert "How far &lt;do&gt; we count?" in page
    assert "<b>" not in page
    assert not re.search(r"https?:|<script|@import|//", re.sub(r"base64,[A-Za-z0-9+/=]+", "", page))
    assert re.search(r"src='data:image/png;base64,iVBOR", page)
    assert "onelayer lab run toy --quick --seeds 2" in page
    assert "missing" not in re.sub(r"<dl>.*</dl>", "", page)


def answered(rows: list[dict]) -> Verdict:
    return judge(lab.find("toy"), rows)


@pytest.mark.usefixtures("toy")
def test_fewer_than_five_seeds_have_numbers_and_no_answer(tmp_path) -> None:
    rows = lab.run("toy", seeds=5, results=tmp_path, jobs=1)
    assert answered(rows).answer == "yes"
    fewer = answered([row for row in rows if row["seed"] < 4])
    assert fewer.answer == "open"
    assert fewer.says.startswith("4 seeds are too few for an answer, which takes 5. They say: To 5.")
    assert fewer.findings == answered(rows).findings
    assert answered([row for row in rows if row["seed"] == 2]).says.startswith("One seed is too few")


@pytest.mark.usefixtures("toy")
def test_every_setting_has_five_seeds_of_its_own(tmp_path) -> None:
    """A setting with one seed does not borrow those of the others."""
    rows = lab.run("toy", seeds=6, results=tmp_path, jobs=1)
    few = [row for row in rows if row["start"] > 1 or row["seed"] < 1 + 3 * row["start"]]
    found = answered(few)
    assert found.answer == "open"
    assert found.says.startswith("2 of 6 settings have fewer than 5 seeds (the fewest 1), too few for an answer. ")
    assert answered([row for row in rows if row["start"] or row["seed"] < 5]).answer == "yes"


def test_an_earlier_answer_stands_beside_the_new_one(toy, tmp_path, monkeypatch) -> None:
    lab.run("toy", seeds=5, results=tmp_path, jobs=1)
    monkeypatch.setattr(lab.find("toy"), "EARLIER", Earlier("no", "To <4>.", "We count on."), raising=False)
    found = report.sections(tmp_path, "quick")
    page, text = report.as_html(found), report.as_markdown(found)
    assert "Earlier answer: no. To &lt;4&gt;. What changed: We count on." in page
    assert "Earlier answer: no. To <4>." in text
    assert toy.exists()


def test_a_part_of_the_settings_is_run_and_parts_add_up(toy, tmp_path) -> None:
    cases = lab.find("toy").cases("quick")
    name, value = next(iter(cases[0].items()))
    part = [case for case in cases if case[name] == value]
    assert 0 < len(part) < len(cases)
    rows = lab.run("toy", seeds=2, results=tmp_path, jobs=1, only=[f"{name}={value}"])
    assert {row[name] for row in rows} == {value}
    before = len(pieces(toy))
    lab.run("toy", seeds=2, results=tmp_path, jobs=1)
    assert len(pieces(toy)) - before == 2 * (len(cases) - len(part))
    for wrong, said in ((f"{name}=none of them", f"{name} is"), ("nothing=1", f"there are {name}")):
        with pytest.raises(OptionError, match=said):
            lab.run("toy", seeds=2, results=tmp_path, jobs=1, only=[wrong])


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("seeds", "says"), [(1, "settings have no answer."), (2, "settings have no answer. They say: ")]
)
def test_a_part_of_the_settings_has_rows_and_no_answer(tmp_path, capsys, seeds: int, says: str) -> None:
    """The toy cannot judge fewer than four rows."""
    commands.run(["toy"], seeds=seeds, results=tmp_path, jobs=1, only=["start=1"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"Open. {2 * seeds} rows of a part of the {says}" in said


def test_a_corpus_goes_to_those_who_read_one(toy, tmp_path, monkeypatch) -> None:
    corpus = tmp_path / "corpus"
    corpus = corpus.with_suffix(".conll")
    corpus.write_text("7\tO\n")
    with pytest.raises(OptionError, match="toy makes its own data"):
        lab.run("toy", seeds=1, results=tmp_path, jobs=1, corpus=corpus)
    reads = lambda cases, path: [{**case, "corpus": path.name} for case in cases]  # noqa: E731
    monkeypatch.setattr(lab.find("toy"), "of_corpus", reads, raising=False)
    rows = lab.run("toy", seeds=1, results=tmp_path, jobs=1, corpus=corpus)
    assert {row["corpus"] for row in rows} == {corpus.name}
    assert len(pieces(toy)) == 6


@pytest.mark.usefixtures("toy")
def test_an_interrupted_run_has_a_page_too(tmp_path) -> None:
    lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    for path in sorted((tmp_path / "toy" / "quick").iterdir())[1:]:
        path.unlink()
    page = report.as_html(report.sections(tmp_path, "quick"))
    assert "Open." in page
    assert "5 pieces of work are missing: run it again to go on." in page
    lab.run("toy", seeds=5, results=tmp_path, jobs=1)
    sorted((tmp_path / "toy" / "quick").iterdir())[0].unlink()
    page = report.as_html(report.sections(tmp_path, "quick"))
    assert "1 piece of work is missing, and with them an answer. So far: To 5" in page
    assert "Yes." not in page


def test_what_cannot_be_is_said(tmp_path) -> None:  # of no rows at all: test_shipped
    with pytest.raises(OptionError, match=r"\[lab\].*'nothing' is not one of them.*softmax-and-boltzmann"):
        lab.run("nothing", results=tmp_path)
    with pytest.raises(OptionError, match="at least one seed"):
        lab.run("softmax-and-boltzmann", seeds=0, results=tmp_path)
    assert "[lab] needs" in run_command("lab", "run", "nothing", ok=64, cwd=tmp_path).stderr
    assert list(tmp_path.iterdir()) == []


def without_torch() -> list[str]:
    return [name for name in lab.names() if "torch" not in lab.find(name).EXTRAS]


@pytest.mark.parametrize("name", without_torch())
def test_same_rows_for_the_same_seed(name: str, tmp_path) -> None:
    """Of each part of an experiment the first case, at the size of the quick setting."""
    experiment = lab.find(name)
    assert experiment.QUESTION.endswith("?")
    assert experiment.HYPOTHESES
    for preset in ("quick", "full"):
        cases = experiment.cases(preset)
        assert len({json.dumps(case, sort_keys=True) for case in cases}) == len(cases)
    first = {case.get("part", case.get("axis")): case for case in reversed(experiment.cases("quick"))}
    for case in first.values():
        rows = experiment.run(case, 1)
        assert rows
        assert rows == experiment.run(case, 1)
        Store(tmp_path, name, "quick").write(case, 1, rows, 0.0)
    seen = Store(tmp_path, name, "quick").rows(list(first.values()), 2)
    assert all(row["seed"] == 1 for row in seen)


@pytest.mark.usefixtures("toy")
def test_no_process_and_damaged_rows_are_refused_by_name(tmp_path) -> None:
    with pytest.raises(OptionError, match="at least one process"):
        lab.run("toy", seeds=1, results=tmp_path, jobs=0)
    lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    damaged = next((tmp_path / "toy" / "quick").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(FileError, match=f"{damaged.name} is damaged.*Delete it"):
        lab.run("toy", seeds=1, results=tmp_path, jobs=1)
