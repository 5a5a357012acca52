"""Rows that ship with the library: days add up, newer ones replace older ones, stale ones are said to be stale."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from onelayer.errors import FileError
from onelayer.lab import report, sections, shipped
from onelayer.lab.registry import find, fingerprint, names
from onelayer.lab.shipped import FOLDER, Shipped, gather, read, read_all
from onelayer.lab.store import Piece, Store
from tests.processes import run_command

NAME = "fine-tuning"
CASES = find(NAME).cases("quick")


def store(folder: Path, seeds: range, value: float = 0.5, preset: str = "quick") -> Store:
    """Rows that nobody has computed, which is enough to carry them about."""
    made = Store(folder, NAME, preset)  # type: ignore[arg-type]
    for case in find(NAME).cases(preset):  # type: ignore[arg-type]
        for seed in seeds:
            made.write(case, seed, [{"value": value, "word": "one", "none": None}, {"value": 0.1}], 2.5)
    return made


def values(found: Shipped) -> dict[int, float]:
    return {piece.seed: piece.rows[0]["value"] for piece in found.pieces if piece.case == CASES[0]}


def test_what_was_stored_is_read_back(tmp_path) -> None:
    given = store(tmp_path / "results", range(2))
    (path,) = gather(tmp_path / "results", tmp_path / "rows")
    assert path.name == f"{NAME}.quick.json"
    found = read(path)
    assert (found.name, found.preset, found.corpus, found.cases) == (NAME, "quick", "", CASES)
    wanted = given.pieces_of(CASES, 2)
    assert [(p.case, p.seed) for p in found.pieces] == [(p.case, p.seed) for p in wanted]
    for mine, theirs in zip(found.pieces, wanted, strict=True):
        own = [{k: v for k, v in row.items() if v is not None} for row in mine.rows]
        assert own == [{k: v for k, v in row.items() if v is not None} for row in theirs.rows]
        assert mine.about.items() <= theirs.about.items()
        assert {"code", "written", "seconds", "versions", "machine"} <= set(mine.about)
    assert gather(tmp_path / "results", tmp_path / "rows") == [path]
    assert read(path) == found


def test_days_add_up_and_newer_rows_replace_older_ones(tmp_path, monkeypatch) -> None:
    days = iter(["2026-01-02", "2026-01-01", "2026-01-03"])
    for seeds, value in ((range(2, 4), 2.0), (range(3), 1.0), (range(1), 3.0)):
        day = next(days)
        monkeypatch.setattr(
            "onelayer.lab.store.environment", lambda day=day: {"versions": {}, "machine": {}, "written": day}
        )
        store(tmp_path / day, seeds, value=value)
        gather(tmp_path / day, tmp_path / "rows")
    (found,) = read_all(tmp_path / "rows")
    assert values(found) == {0: 3.0, 1: 1.0, 2: 2.0, 3: 2.0}


def test_settings_that_are_no_more_are_left_out(tmp_path) -> None:
    given = store(tmp_path / "results", range(1))
    given.write({"no": "such case"}, 0, [{"value": 1.0}], 0.0)
    (path,) = gather(tmp_path / "results", tmp_path / "rows")
    assert len(read(path).pieces) == len(CASES)


def test_a_full_preset_that_gives_an_answer_takes_the_place_of_the_quick_one(tmp_path) -> None:
    store(tmp_path / "first", range(5))
    quick, full = (tmp_path / "rows" / f"{NAME}.{preset}.json" for preset in ("quick", "full"))
    assert gather(tmp_path / "first", tmp_path / "rows") == [quick]
    store(tmp_path / "second", range(4), preset="full")  # too few seeds for an answer
    assert gather(tmp_path / "second", tmp_path / "rows") == [full]
    assert quick.is_file()
    store(tmp_path / "first", range(4, 5), preset="full")
    assert gather(tmp_path / "first", tmp_path / "rows") == [full]
    assert not quick.exists()
    assert {found.preset: found.seeds for found in read_all(tmp_path / "rows")} == {"full": 5}


def test_a_corpus_is_shipped_by_its_name_and_digest_not_by_its_place(tmp_path) -> None:
    corpus = tmp_path / "secret" / "words.conll.txt"
    corpus.parent.mkdir()
    corpus.write_text("a\tO\n\nb\tO\n")
    experiment = find("named-entities")
    cases = experiment.of_corpus(experiment.cases("quick"), corpus)  # type: ignore[attr-defined]
    made = Store(tmp_path / "results", "named-entities", "quick")
    made.write(cases[0], 0, [{"accuracy": 1.0}], 1.0)
    made.write(experiment.cases("quick")[0], 0, [{"accuracy": 0.5}], 1.0)
    paths = gather(tmp_path / "results", tmp_path / "rows")
    assert {path.name for path in paths} == {"named-entities.quick.json", "named-entities.quick.words.conll.json"}
    assert not any("secret" in path.read_text() for path in paths)
    (of_corpus,) = [found for found in map(read, paths) if found.corpus]
    assert of_corpus.corpus == "words.conll.txt"
    assert [len(found.pieces) for found in map(read, paths)] == [1, 1]
    assert of_corpus.pieces[0].rows[0]["contents"] == cases[0]["contents"]


def page_of(tmp_path: Path, given: Shipped, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setattr(sections, "read_all", lambda: [given])
    found = report.sections(tmp_path / "nothing", "quick")
    return report.as_html(found), report.as_markdown(found)


def real() -> Shipped:
    """The first of the files that ship."""
    return read_all()[0]


def with_code(given: Shipped, code: str) -> Shipped:
    pieces = [Piece(p.case, p.seed, p.rows, {**p.about, "code": code}) for p in given.pieces]
    return replace(given, pieces=pieces)


def test_whoever_has_no_rows_sees_shipped_ones_with_their_day_and_code(tmp_path, monkeypatch) -> None:
    given = real()
    now = fingerprint(given.name, given.cases[0])  # one code for all settings
    page, text = page_of(tmp_path, with_code(given, now), monkeypatch)
    day = str(given.pieces[0].about["written"])[:10]
    for said in (page, text):
        assert f"preset {given.preset}, computed {day}" in said
        assert now in said
        assert "stale" not in said


def test_stale_rows_are_shown_and_said_to_be_stale(tmp_path, monkeypatch) -> None:
    given = with_code(real(), "0" * 16)
    for said in page_of(tmp_path, given, monkeypatch):
        assert f"stale: the code has changed since for {len(given.pieces)} of {len(given.pieces)} pieces" in said
        assert find(given.name).QUESTION in said or "&" in said


def test_own_rows_come_first(tmp_path, monkeypatch) -> None:
    given = real()
    made = Store(tmp_path, given.name, given.preset)
    for piece in given.pieces:
        made.write(
            piece.case, piece.seed, [{k: v for k, v in r.items() if k not in piece.case} for r in piece.rows], 0.0
        )
    monkeypatch.setattr(shipped, "choose_cases", lambda *_: given.cases)
    (found,) = report.sections(tmp_path, given.preset)
    assert found.results == tmp_path
    assert found.source.startswith("Your own rows in ")


def test_nothing_shipped_and_nothing_computed_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sections, "read_all", lambda: [])
    with pytest.raises(FileError, match="results of preset full"):
        report.sections(tmp_path, "full")
    said = run_command("lab", "ship", "--results", str(tmp_path), ok=66, cwd=tmp_path).stderr
    assert "[lab] needs rows" in said
    assert f"Run: onelayer lab run NAME --quick --results {tmp_path}" in " ".join(said.split())


def test_files_that_ship_are_small_whole_and_of_experiments_that_there_are() -> None:
    paths = sorted(FOLDER.glob("*.json"))
    assert paths
    assert sum(path.stat().st_size for path in paths) < 3_000_000
    for path in paths:
        found = read(path)
        assert found.file == path.name
        assert found.name in names()
        assert found.pieces
        assert all("/" not in str(row.get("corpus", "")) for piece in found.pieces for row in piece.rows)
        json.dumps([piece.rows for piece in found.pieces], allow_nan=True)
    assert shipped.FOLDER == FOLDER


def test_page_says_cpu_seconds_of_constructed_and_of_trained() -> None:
    found = next(s for s in report.sections(Path("none"), "quick") if s.corpus and s.name == "named-entities")
    assert set(found.cost.by_model) == {"constructed", "trained"}
    assert found.cost.seconds > max(found.cost.by_model.values()) > 0
    for page in (report.as_html([found]), report.as_markdown([found])):
        assert str(found.cost) in page
        assert "CPU seconds; median of a piece of work: " in page
