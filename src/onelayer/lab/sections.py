"""What the page says of each experiment: whose rows there are, the answer that they give, and what they cost."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from onelayer.errors import FileError
from onelayer.lab.experiment import Experiment, Preset, Row, Verdict, judge
from onelayer.lab.registry import find, fingerprint, names
from onelayer.lab.shipped import Shipped, own, read_all
from onelayer.lab.store import Piece, Store

#: Where rows are kept unless told otherwise.
RESULTS = Path("lab-results")


def seconds_of(seconds: float) -> str:
    """CPU seconds to three digits, none of which says nothing."""
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


@dataclass(frozen=True)
class Cost:
    """CPU seconds that rows took to compute, whenever that was."""

    seconds: float
    by_model: dict[str, float]  # the median of a piece of work; nothing where settings name no model

    @classmethod
    def of(cls, pieces: list[Piece]) -> Cost:
        grouped: dict[str, list[float]] = {}
        for piece in pieces:  # by its case: a piece has one time, whatever its rows tell apart
            if model := piece.case.get("model") or piece.case.get("how"):
                grouped.setdefault(str(model), []).append(float(piece.about["seconds"]))
        total = sum(float(piece.about["seconds"]) for piece in pieces)
        return cls(total, {model: median(each) for model, each in grouped.items()})

    @property
    def in_all(self) -> str:
        return f"{seconds_of(self.seconds)} CPU seconds"

    def __str__(self) -> str:
        listed = ", ".join(f"{model} {seconds_of(seconds)}" for model, seconds in self.by_model.items())
        return self.in_all + (f"; median of a piece of work: {listed}" if listed else "")


@dataclass(frozen=True)
class Section:
    """What the page says of one experiment."""

    name: str
    preset: Preset
    experiment: Experiment
    rows: list[Row]
    seeds: int  # that were asked for, as far as rows tell
    least: int  # that the setting with the fewest has
    missing: int  # pieces of work that have no rows
    stale: int  # pieces of work of an earlier code
    verdict: Verdict
    picture: bytes  # PNG
    cost: Cost
    about: dict[str, Any]
    corpus: str  # the name of a file of sentences, or nothing
    results: Path | None  # the folder that rows are from; nothing for those that ship
    source: str  # whose rows they are, when they were computed, and whether the code has changed

    @property
    def title(self) -> str:
        return self.experiment.QUESTION + (f" ({Path(self.corpus).name})" if self.corpus else "")

    @property
    def anchor(self) -> str:
        preset = self.preset if self.results is None else ""
        return "-".join(filter(None, (self.name, preset, Path(self.corpus).stem)))

    @property
    def command(self) -> str:
        return run_command(self.name, self.preset, self.seeds, self.results, self.corpus)


def run_command(
    name: str, preset: Preset, seeds: int | None, results: Path | None, corpus: str = "", only: Sequence[str] = ()
) -> str:
    """What to type to run an experiment, or several, again or on; what is so by default is left out."""
    words = ["onelayer", "lab", "run", *name.split(), f"--{preset}", *(["--seeds", str(seeds)] if seeds else [])]
    words += ["--corpus", corpus] if corpus else []
    words += [word for given in only for word in ("--only", given)]
    words += ["--results", str(results)] if results not in (None, RESULTS) else []
    return shlex.join(words)


def report_command(preset: Preset, results: Path) -> str:
    """What to type for a page that these rows are on."""
    words = ["onelayer", "lab", "report", *(["--full"] if preset == "full" else [])]
    return shlex.join(words + (["--results", str(results)] if results != RESULTS else []))


def sections(results: Path, preset: Preset, corpus: Path | None = None) -> list[Section]:
    """Every experiment that has rows, of each corpus, or of the one that is given.

    Whoever has no rows sees those that ship with the library, of whichever preset.
    """
    if results.exists() and not results.is_dir():
        raise FileError("lab", "a folder of results", f"{results} is a file", "Name the folder that it is in.")
    stores = (Store(results, name, preset) for name in names())
    mine = [one for store in stores for one in own(store) if _is_asked_for(one, corpus)]
    found = [_as_section(one, results) for one in mine] or [_as_section(one) for one in read_all()]
    if not found:
        remedy = f"Run: {run_command('NAME', preset, None, results)}"
        raise FileError("lab", f"results of preset {preset} in {results}", "there are none", remedy)
    return found


def _is_asked_for(one: Shipped, corpus: Path | None) -> bool:
    """Of those that read a corpus, the rows of the one that is given."""
    if corpus is None or not hasattr(find(one.name), "of_corpus"):
        return True
    return bool(one.corpus) and Path(one.corpus).resolve() == corpus.resolve()


def _as_section(given: Shipped, results: Path | None = None) -> Section:
    experiment, rows = find(given.name), [row for piece in given.pieces for row in piece.rows]
    seeds = 1 + max(piece.seed for piece in given.pieces)
    missing = len(given.cases) * seeds - len(given.pieces)
    stale = sum(piece.about["code"] != fingerprint(given.name, piece.case) for piece in given.pieces)
    verdict, picture = _judge_rows(experiment, rows, missing, stale)
    return Section(
        name=given.name,
        preset=given.preset,
        experiment=experiment,
        rows=rows,
        seeds=seeds,
        least=given.seeds,
        missing=missing,
        stale=stale,
        verdict=verdict,
        picture=picture,
        cost=Cost.of(given.pieces),
        about=given.pieces[-1].about,
        corpus=given.corpus,
        results=results,
        source=_source(given, stale, results),
    )


def _source(given: Shipped, stale: int, results: Path | None) -> str:
    """Whose rows they are, when they were computed, and how many of them by other code than there is now."""
    days = sorted({str(piece.about["written"])[:10] for piece in given.pieces})
    codes = sorted({str(piece.about["code"]) for piece in given.pieces})
    old = f"; stale: the code has changed since for {stale} of {pieces_of_work(len(given.pieces))}" if stale else ""
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    whose = "Rows that ship with onelayer" if results is None else f"Your own rows in {results}"
    return f"{whose}, preset {given.preset}, computed {when}, code {', '.join(codes)}{old}."


def pieces_of_work(many: int) -> str:
    return f"{many:,} {'piece' if many == 1 else 'pieces'} of work"


def are_missing(many: int) -> str:
    return f"{pieces_of_work(many)} {'is' if many == 1 else 'are'} missing"


def _judge_rows(experiment: Experiment, rows: list[Row], missing: int, stale: int = 0) -> tuple[Verdict, bytes]:
    """Verdict and picture; an interrupted run has no answer, and may not have the rows that they compare.

    Rows of an earlier code may not have the columns that they compare.
    """
    try:
        found = experiment.verdict(rows) if missing else judge(experiment, rows)
        if missing:
            says = f"{are_missing(missing)}, and with them an answer. So far: {found.says}"
            found = replace(found, answer="open", says=says)
        return found, _png(experiment.plot(rows))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        if not missing and not stale:
            raise
        why = are_missing(missing) if missing else "Rows of earlier code do not have what is compared now"
        return Verdict("open", f"{why}: run it again{' to go on' if missing else ''}."), b""


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return buffer.getvalue()
