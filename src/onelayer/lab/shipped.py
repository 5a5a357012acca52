"""Rows that ship with the library, so that the page can be drawn without running anything.

One file for each experiment, preset and corpus. Runs of several days add up: `gather` puts the pieces of a results
folder beside those that are there, and the newer of two of the same case and seed stays. A full preset that gives
an answer takes the place of the quick one. A piece says when it was computed and by which code, so that the page
can say which are older than the code is now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onelayer.lab.experiment import FEWEST_SEEDS, Case, Preset, Row, choose_cases
from onelayer.lab.registry import find, names
from onelayer.lab.store import Piece, Store

FOLDER = Path(__file__).with_name("rows")
PRESETS: tuple[Preset, ...] = ("quick", "full")
DIGITS = 8


@dataclass(frozen=True)
class Shipped:
    """The pieces of one experiment at one preset, of ``cases`` that it has in all."""

    name: str
    preset: Preset
    corpus: str  # the name of a file of sentences, or nothing
    cases: list[Case]
    pieces: list[Piece]

    @property
    def file(self) -> str:
        return ".".join(filter(None, (self.name, self.preset, Path(self.corpus).stem, "json")))

    @property
    def seeds(self) -> int:
        """That the setting with the fewest has."""
        return min(sum(piece.case == case for piece in self.pieces) for case in self.cases)


def gather(results: Path, folder: Path = FOLDER) -> list[Path]:
    """Write what a results folder has beside what is there; the files that were written and still are."""
    written = []
    for name in names():
        for preset in PRESETS:
            for found in _of_store(Store(results, name, preset)):
                path = folder / found.file
                earlier = read(path).pieces if path.is_file() else []
                whole = replace(found, pieces=_newest(earlier + found.pieces, found.cases))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_as_json(whole), encoding="utf-8")
                written.append(path)
                if preset == "full" and whole.seeds >= FEWEST_SEEDS:
                    (folder / replace(whole, preset="quick").file).unlink(missing_ok=True)
    return [path for path in written if path.is_file()]


def read(path: Path) -> Shipped:
    held = json.loads(path.read_text(encoding="utf-8"))
    pieces = []
    for entry in held["pieces"]:
        case, about = held["cases"][entry["case"]], held["environments"][entry["environment"]]
        about = {**about, **{name: entry[name] for name in ("code", "written", "seconds")}}
        named = (dict(zip(entry["columns"], values, strict=True)) for values in entry["rows"])
        rows = [{**case, "seed": entry["seed"], **row} for row in named]
        pieces.append(Piece(case, entry["seed"], rows, about))
    return Shipped(held["experiment"], held["preset"], held["corpus"], held["cases"], pieces)


def read_all(folder: Path = FOLDER, name: str = "*") -> list[Shipped]:
    """Of every experiment that there still is, or of one."""
    found = [read(path) for path in sorted(folder.glob(f"{name}.*.json"))]
    return [shipped for shipped in found if shipped.name in names()]


def own(store: Store) -> Iterator[Shipped]:
    """What lies in a person's own folder, by corpus, those of the code as it is before those of an earlier one."""
    for corpus, pieces in _by_corpus(store).items():
        if not corpus or Path(corpus).is_file():
            cases = choose_cases(store.name, find(store.name), store.preset, Path(corpus) if corpus else None)
        else:  # it was moved, and its rows are still what they were
            cases = list({json.dumps(piece.case): piece.case for piece in pieces}.values())
        order = sorted(pieces, key=lambda piece: (store.is_current(piece), str(piece.about["written"])))
        if latest := _latest(order, cases):
            yield Shipped(store.name, store.preset, corpus, cases, latest)


def _by_corpus(store: Store) -> dict[str, list[Piece]]:
    found: dict[str, list[Piece]] = {}
    for piece in store.pieces():
        found.setdefault(piece.case.get("corpus") or "", []).append(piece)
    return found


def _of_store(store: Store) -> Iterator[Shipped]:
    """What lies in a store, whichever code computed it, by corpus; settings that are no more are left out."""
    for corpus, pieces in _by_corpus(store).items():
        if corpus and not Path(corpus).is_file():
            continue
        given = choose_cases(store.name, find(store.name), store.preset, Path(corpus) if corpus else None)
        cases = [_anywhere(case) for case in given]
        moved = [Piece(_anywhere(p.case), p.seed, [_anywhere(row) for row in p.rows], p.about) for p in pieces]
        if newest := _newest(moved, cases):
            yield Shipped(store.name, store.preset, Path(corpus).name, cases, newest)


def _anywhere(case: Case) -> Case:
    """A corpus by its name: where it lay is nobody's business, and its contents have a digest."""
    return {**case, "corpus": Path(case["corpus"]).name} if case.get("corpus") else case


def _newest(pieces: Iterable[Piece], cases: list[Case]) -> list[Piece]:
    """The newest piece for each case and seed, in order."""
    return _latest(sorted(pieces, key=lambda piece: str(piece.about["written"])), cases)


def _latest(pieces: Iterable[Piece], cases: list[Case]) -> list[Piece]:
    """The last piece that is given for each case and seed, in order."""
    found: dict[tuple[int, int], Piece] = {}
    for piece in pieces:
        if piece.case in cases:
            found[cases.index(piece.case), piece.seed] = piece
    return [found[key] for key in sorted(found)]


def _short(value: Any) -> Any:
    """To as many digits as anybody draws."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _as_json(shipped: Shipped) -> str:
    """One piece a line; what a row has of its case, and what its numbers are, is said once."""
    environments: list[Any] = []
    lines = []
    for piece in shipped.pieces:
        about = {name: piece.about[name] for name in ("versions", "machine")}
        if about not in environments:
            environments.append(about)
        own: Row = {"case": shipped.cases.index(piece.case), "seed": piece.seed}
        own |= {name: piece.about[name] for name in ("code", "written", "seconds")}
        told = {*piece.case, "seed"}
        own |= {"environment": environments.index(about)}
        columns = [name for name in piece.rows[0] if name not in told] if piece.rows else []
        own |= {"columns": columns, "rows": [[_short(row[name]) for name in columns] for row in piece.rows]}
        lines.append(json.dumps(own, separators=(",", ":")))
    head: Row = {"experiment": shipped.name, "preset": shipped.preset, "corpus": shipped.corpus}
    head |= {"cases": shipped.cases, "environments": environments}
    return json.dumps(head)[:-1] + ', "pieces": [\n' + ",\n".join(lines) + "\n]}\n"
