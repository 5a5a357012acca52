"""One page for all experiments: question, answer, picture, table, and how to run it again. HTML and Markdown."""

from __future__ import annotations

import base64
import html
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from onelayer.errors import FileError
from onelayer.lab.experiment import Earlier, Experiment, Preset, Row, Verdict, choose_cases, count_seeds, judge
from onelayer.lab.registry import find, fingerprint, names
from onelayer.lab.shipped import Shipped, read_all
from onelayer.lab.store import Piece, Store

#: Rows of a table on the page; the Parquet files hold all.
SHOWN = 12
#: A column that holds how a run went, step by step: too long for the page.
CURVE = "curve"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
h1 { font-size: 1.7rem; }
h2 { font-size: 1.25rem; margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .82rem; display: block; overflow-x: auto; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } code, pre { background: #f4f4f4; padding: .1rem .3rem; }
pre { overflow-x: auto; }
.summary { display: table; } .summary td { white-space: normal; } .summary td:first-child { width: 45%; }
@media (max-width: 40rem) {
.summary, .summary tbody, .summary tr, .summary td, .summary td:first-child { display: block; width: auto; }
.summary tr { border-bottom: 1px solid #ddd; padding: .4rem 0; } .summary td { border: 0; text-align: left; }
.summary tr:first-child { display: none; } .summary td:nth-child(3)::after { content: " seeds"; } }
.answer { font-weight: 600; } .hypotheses { color: #555; } .about { color: #666; font-size: .85rem; }
"""


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

    def __str__(self) -> str:
        listed = ", ".join(f"{model} {seconds:.3g}" for model, seconds in self.by_model.items())
        return f"{self.seconds:,.0f} CPU seconds" + (f"; median of a piece of work: {listed}" if listed else "")


@dataclass(frozen=True)
class Section:
    """What the page says of one experiment."""

    name: str
    preset: Preset
    experiment: Experiment
    rows: list[Row]
    seeds: int
    missing: int  # pieces of work that have no rows
    verdict: Verdict
    picture: bytes  # PNG
    cost: Cost
    about: dict[str, Any]
    corpus: str = ""  # the name of a file of sentences
    source: str = ""  # of rows that nobody computed here: when they were, and whether the code has changed

    @property
    def anchor(self) -> str:
        return "-".join(filter(None, (self.name, self.source and self.preset, Path(self.corpus).stem)))

    @property
    def command(self) -> str:
        corpus = f" --corpus {self.corpus}" if self.corpus else ""
        return f"onelayer lab run {self.name} --{self.preset} --seeds {self.seeds}{corpus}"


def sections(results: Path, preset: Preset, corpus: Path | None = None) -> list[Section]:
    """Every experiment that has rows; on a corpus, those that read one have their rows of it.

    Whoever has no rows sees those that ship with the library, of whichever preset.
    """
    found = []
    for name in names():
        store = Store(results, name, preset)
        if (seeds := store.seeds() if store.folder.exists() else 0) < 1:
            continue
        experiment = find(name)
        read = corpus if hasattr(experiment, "of_corpus") else None
        cases = choose_cases(name, experiment, preset, read)
        if pieces := store.pieces_of(cases, seeds):
            own = Shipped(name, preset, str(read or ""), cases, pieces)
            found.append(_as_section(own, seeds))
    found = found or [_as_section(one, count_seeds(_rows(one)), _source(one)) for one in read_all()]
    if not found:
        needs, remedy = f"results of preset {preset} in {results}", "Run: onelayer lab run NAME"
        raise FileError("lab", needs, "there are none", remedy)
    return found


def _rows(given: Shipped) -> list[Row]:
    return [row for piece in given.pieces for row in piece.rows]


def _as_section(given: Shipped, seeds: int, source: str = "") -> Section:
    experiment, rows = find(given.name), _rows(given)
    missing = len(given.cases) * seeds - len(given.pieces)
    verdict, picture = _judge_rows(experiment, rows, missing)
    said = (given.name, given.preset, experiment, rows, seeds, missing, verdict, picture, Cost.of(given.pieces))
    return Section(*said, given.pieces[-1].about, given.corpus, source)


def _source(given: Shipped) -> str:
    """When shipped rows were computed, and how many of them by other code than there is now."""
    days = sorted({str(piece.about["written"])[:10] for piece in given.pieces})
    codes = sorted({str(piece.about["code"]) for piece in given.pieces})
    stale = sum(piece.about["code"] != fingerprint(given.name, piece.case) for piece in given.pieces)
    old = f"; stale: the code has changed since for {stale} of {len(given.pieces)} pieces of work" if stale else ""
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    return f"Rows that ship with onelayer, preset {given.preset}, computed {when}, code {', '.join(codes)}{old}."


def _judge_rows(experiment: Experiment, rows: list[Row], missing: int) -> tuple[Verdict, bytes]:
    """Verdict and picture; an interrupted run has no answer, and may not have the rows that they compare."""
    try:
        found = experiment.verdict(rows) if missing else judge(experiment, rows)
        if missing:
            says = f"{missing} pieces of work are missing, and with them an answer. So far: {found.says}"
            found = replace(found, answer="open", says=says)
        return found, _png(experiment.plot(rows))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        if not missing:
            raise
        return Verdict("open", f"{missing} pieces of work are missing: run it again to go on."), b""


def as_html(found: list[Section]) -> str:
    """Self-contained: pictures inline, no script, nothing from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<link rel=icon href='data:,'>",
        f"<title>The lab of onelayer</title><style>{STYLE}</style>",
        "<h1>The lab: does the theory hold on real machines?</h1>",
        "<p>Everything below is measured, not proved. Answers are computed from the rows, with 95% confidence "
        "intervals over seeds and draws; fewer than five seeds give no answer.</p>",
        "<table class=summary><tr><th>question<th>answer<th>seeds<th style='text-align:left'>in short</tr>",
        *(
            f"<tr><td><a href='#{s.anchor}'>{_e(s.experiment.QUESTION)}</a><td>{_e(s.verdict.answer)}<td>{s.seeds}"
            f"<td style='text-align:left'>{_e(s.verdict.says)}</tr>"
            for s in found
        ),
        "</table>",
        *(_section(s) for s in found),
        _machine(found[-1]),
        "</html>",
    ]
    return "\n".join(parts)


def _section(s: Section) -> str:
    image = base64.b64encode(s.picture).decode()
    return "\n".join(
        [
            f"<h2 id='{s.anchor}'>{_e(s.experiment.QUESTION)}</h2>",
            "<ul class=hypotheses>" + "".join(f"<li>{_e(h)}</li>" for h in s.experiment.HYPOTHESES) + "</ul>",
            f"<p><span class=answer>{_e(s.verdict.answer.capitalize())}.</span> {_e(s.verdict.says)}</p>",
            "<ul>" + "".join(f"<li>{_e(finding)}</li>" for finding in s.verdict.findings) + "</ul>",
            f"<p class=hypotheses>{_e(said)}</p>" if (said := _earlier(s)) else "",
            f"<img alt='{_e(s.experiment.QUESTION)}' src='data:image/png;base64,{image}'>" if image else "",
            f"<details><summary>{_counted(s)}</summary>{_table(s.rows)}</details>",
            f"<p class=about>Run again: <code>{_e(s.command)}</code> ({_e(str(s.cost))})</p>",
            f"<p class=about>{_e(s.source)}</p>" if s.source else "",
        ]
    )


def _counted(s: Section) -> str:
    seeds = f"{s.seeds} {'seed' if s.seeds == 1 else 'seeds'}"
    left_out = f"; {s.missing} pieces of work are still missing" if s.missing else ""
    return f"{len(s.rows)} rows, {seeds}{left_out}"


def _table(rows: list[Row]) -> str:
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name != CURVE]
    step = max(1, len(rows) // SHOWN)
    body = "".join(
        "<tr>" + "".join(f"<td>{_e(_format_value(row.get(name)))}" for name in columns) + "</tr>"
        for row in rows[::step]
    )
    return "<table><tr>" + "".join(f"<th>{_e(name)}" for name in columns) + f"</tr>{body}</table>"


def as_markdown(found: list[Section], level: int = 1) -> str:
    """The same without pictures, for terminals and diffs; at level 0 without headings, inside another page."""
    lines = ["# The lab: does the theory hold on real machines?", "", "Measured, not proved.", ""] if level else []
    for s in found:
        question = f"## {s.experiment.QUESTION}" if level else f"**{s.experiment.QUESTION}**"
        lines += [question, "", f"**{s.verdict.answer.capitalize()}.** {s.verdict.says}", ""]
        lines += [f"- {finding}" for finding in s.verdict.findings]
        lines += ["", said] if (said := _earlier(s)) else []
        lines += [
            "",
            " ".join(filter(None, (f"{_counted(s)}.", f"{s.cost}.", s.source))),
            "",
            f"    {s.command}",
            "",
        ]
    return "\n".join(lines)


def _earlier(s: Section) -> str:
    """What was answered before, beside what is answered now."""
    found: Earlier | None = getattr(s.experiment, "EARLIER", None)
    return f"Earlier answer: {found.answer}. {found.says} What changed: {found.why}" if found else ""


def _machine(s: Section) -> str:
    about = {name: s.about[name] for name in ("versions", "machine", "written")}
    return f"<h2>Machine and versions</h2><pre>{_e(json.dumps(about, indent=1))}</pre>"


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return buffer.getvalue()


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _e(text: str) -> str:
    return html.escape(str(text), quote=True)
