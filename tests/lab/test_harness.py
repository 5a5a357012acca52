"""Runs that are killed go on where they stopped; rows are reproducible, never overwritten, and say where from."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest

from onelayer import lab
from onelayer.cli import lab as commands
from onelayer.errors import FileError, OptionError
from onelayer.lab import Verdict, experiments, registry, report, store
from onelayer.lab.experiment import Earlier, judge
from onelayer.lab.harness import PieceError
from onelayer.lab.store import META, Store
from tests.processes import run_command

TOY = '''
"""Counts, slowly."""
import time
from onelayer.lab.experiment import Verdict
from onelayer.lab.pictures import figure
QUESTION, HYPOTHESES, EXTRAS = "How far <do> we count?", ("Far & further.",), ()
def cases(preset): return [{"start": i, "log": LOG, "pause": PAUSE} for i in range(6)]
def run(case, seed):
    with open(case["log"], "a") as log: log.write(f"{case['start']} {seed}\\n")
    time.sleep(case["pause"])
    return [{"value": value, "square": None if seed else 1, "word": "one"} for value in count(case["start"], seed)]
def count(start, seed): return [start + seed / PARTS] * 2
PARTS = 8
def plot(rows):
    made, (axes,) = figure()
    axes.plot(values(rows))
    return made
def values(rows): return [row["value"] for row in rows]
def verdict(rows):
    if len(rows) < 4: raise ValueError("too few rows")
    return Verdict("yes", f"To {max(row['value'] for row in rows)}.", ("One finding <b>.", "Another."))
'''
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


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Path:
    """A quick experiment beside the others; gives the file in which it notes every piece that it computes."""
    folder, log = tmp_path / "experiments", tmp_path / "log"
    folder.mkdir()
    (folder / "toy.py").write_text(TOY.replace("LOG", repr(str(log))).replace("PAUSE", "0.01"))
    log.touch()
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "onelayer.lab.experiments.toy", raising=False)
    yield log
    sys.modules.pop("onelayer.lab.experiments.toy", None)


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
    assert not seen & registry.TELLING


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
    assert "pieces of work" not in page


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
    corpus.write_text("7")
    with pytest.raises(OptionError, match="toy makes its own data"):
        lab.run("toy", seeds=1, results=tmp_path, jobs=1, corpus=corpus)
    reads = lambda cases, path: [{**case, "corpus": path.read_text()} for case in cases]  # noqa: E731
    monkeypatch.setattr(lab.find("toy"), "of_corpus", reads, raising=False)
    rows = lab.run("toy", seeds=1, results=tmp_path, jobs=1, corpus=corpus)
    assert {row["corpus"] for row in rows} == {"7"}
    assert len(report.sections(tmp_path, "quick", corpus)[0].rows) == 12
    assert len(pieces(toy)) == 6


@pytest.mark.usefixtures("toy")
def test_an_interrupted_run_has_a_page_too(tmp_path) -> None:
    lab.run("toy", seeds=1, results=tmp_path, jobs=1)
    for path in sorted((tmp_path / "toy" / "quick").iterdir())[1:]:
        path.unlink()
    page = report.as_html(report.sections(tmp_path, "quick"))
    assert "Open." in page
    assert "5 pieces of work are missing" in page
    lab.run("toy", seeds=5, results=tmp_path, jobs=1)
    sorted((tmp_path / "toy" / "quick").iterdir())[0].unlink()
    page = report.as_html(report.sections(tmp_path, "quick"))
    assert "1 pieces of work are missing, and with them an answer. So far: To 5" in page
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
