"""Whose rows the page shows, of which code, how many seeds, and the commands that lead to them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from onelayer import lab
from onelayer.errors import FileError
from onelayer.lab import report, sections
from onelayer.lab.sections import Cost, report_command, run_command
from onelayer.lab.store import Piece, Store


def written(folder: Path, seeds: range, *, of_earlier_code: bool = False, skip: int | None = None) -> Store:
    """Rows of the toy that nobody has computed."""
    made = Store(folder, "toy", "quick")
    if of_earlier_code:
        made.code = lambda _case: "0" * 16  # type: ignore[method-assign]
    for case in lab.find("toy").cases("quick"):
        for seed in seeds:
            if case["start"] != skip:
                made.write(case, seed, [{"value": seed + case["start"] / 8}], 2.5)
    return made


@pytest.mark.usefixtures("toy")
def test_own_rows_of_earlier_code_are_shown_and_said_to_be_stale(tmp_path) -> None:
    written(tmp_path, range(5), of_earlier_code=True)
    (found,) = report.sections(tmp_path, "quick")
    assert (found.stale, found.missing, found.seeds) == (30, 0, 5)
    for said in (report.as_html([found]), report.as_markdown([found])):
        assert "stale: the code has changed since for 30 of 30 pieces of work" in said
        assert f"Your own rows in {tmp_path}, preset quick, computed " in said


@pytest.mark.usefixtures("toy")
def test_rows_of_the_code_as_it_is_come_before_stale_ones(tmp_path) -> None:
    written(tmp_path, range(2))
    written(tmp_path, range(5), of_earlier_code=True)  # written later, and yet older
    (found,) = report.sections(tmp_path, "quick")
    assert (found.stale, found.seeds, len(found.rows)) == (18, 5, 30)


@pytest.mark.usefixtures("toy")
def test_stale_rows_that_cannot_be_judged_do_not_stop_the_page(tmp_path, monkeypatch) -> None:
    written(tmp_path, range(5), of_earlier_code=True)
    monkeypatch.setattr(lab.find("toy"), "verdict", lambda rows: rows[0]["no such column"])
    (found,) = report.sections(tmp_path, "quick")
    assert found.verdict.answer == "open"
    assert "Rows of earlier code do not have what is compared now: run it again." in report.as_html([found])


@pytest.mark.usefixtures("toy")
def test_seeds_are_those_of_the_setting_with_the_fewest(tmp_path) -> None:
    written(tmp_path, range(5), skip=3)
    made = written(tmp_path, range(2), skip=3)
    made.write(lab.find("toy").cases("quick")[3], 0, [{"value": 0.0}], 0.0)
    (found,) = report.sections(tmp_path, "quick")
    assert (found.least, found.seeds, found.missing) == (1, 5, 4)
    assert "<td>1 to 5<td>" in report.as_html([found])


@pytest.mark.usefixtures("toy")
def test_rows_of_a_corpus_are_on_the_page_without_naming_it_and_after_it_was_moved(tmp_path, monkeypatch) -> None:
    corpus = tmp_path / "words.conll"
    corpus.write_text("a\tO\n")
    of_corpus = lambda cases, path: [{**case, "corpus": str(path)} for case in cases]  # noqa: E731
    monkeypatch.setattr(lab.find("toy"), "of_corpus", of_corpus, raising=False)
    lab.run("toy", seeds=1, results=tmp_path / "results", jobs=1, corpus=corpus)
    lab.run("toy", seeds=1, results=tmp_path / "results", jobs=1)
    both = report.sections(tmp_path / "results", "quick")
    assert sorted(found.corpus for found in both) == ["", str(corpus)]
    assert "(words.conll)</h2>" in report.as_html(both)
    (one,) = report.sections(tmp_path / "results", "quick", corpus)
    assert one.corpus == str(corpus)
    assert f"--corpus {corpus}" in one.command
    corpus.unlink()
    assert len(report.sections(tmp_path / "results", "quick")) == 2


def test_commands_lead_to_the_rows_they_are_about(tmp_path) -> None:
    folder = tmp_path / "my rows"
    said = run_command("depth", "full", 3, folder, "a b.conll", ["size=2000", "model=trained"])
    wanted = "onelayer lab run depth --full --seeds 3 --corpus|a b.conll|--only size=2000 --only model=trained"
    words = [word for i, part in enumerate(wanted.split("|")) for word in ([part] if i == 1 else part.split())]
    assert shlex.split(said) == [*words, "--results", str(folder)]
    assert run_command("depth", "quick", None, sections.RESULTS) == "onelayer lab run depth --quick"
    assert shlex.split(report_command("full", folder))[2:] == ["report", "--full", "--results", str(folder)]
    assert report_command("quick", sections.RESULTS) == "onelayer lab report"


def test_a_file_is_no_folder_of_results(tmp_path) -> None:
    (tmp_path / "rows").write_text("")
    with pytest.raises(FileError, match="rows is a file"):
        report.sections(tmp_path / "rows", "quick")


def test_costs_below_a_second_are_not_nothing() -> None:
    cost = Cost.of([Piece({"model": "control"}, seed, [], {"seconds": 0.123}) for seed in range(3)])
    assert str(cost) == "0.369 CPU seconds; median of a piece of work: control 0.123"
    assert Cost(123456.7, {}).in_all == "123,457 CPU seconds"


@pytest.mark.usefixtures("toy")
def test_the_page_says_what_was_expected_before_it_answers_and_what_answers_mean(tmp_path) -> None:
    written(tmp_path, range(5))
    page = report.as_html(report.sections(tmp_path, "quick"))
    assert page.index("Far &amp; further.") < page.index("<h3>Answer</h3>") < page.index("One finding")
    for word in ("yes", "no", "partly", "open"):
        assert f"<dt>{word}<dd>" in page
    assert "<div class=wide><img " in page
    assert "<div class=wide><table>" in page
    assert ".wide { overflow-x: auto;" in page
    narrow = page[page.index("@media (max-width: 40rem)") :]
    assert ".wide img { max-width: none; width: 48rem; }" in narrow  # scrolls: letters of a shrunk one are lost
