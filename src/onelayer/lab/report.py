"""One page for all experiments: question, answer, picture, table, and how to run it again. HTML and Markdown."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

from onelayer.lab.experiment import Earlier, Row
from onelayer.lab.sections import Section, are_missing, sections

__all__ = ["as_html", "as_markdown", "sections"]

#: Rows of a table on the page; the Parquet files hold all.
SHOWN = 12
#: A column that holds how a run went, step by step: too long for the page.
CURVE = "curve"
#: What an answer says, in the order of the words.
LEGEND = {
    "yes": "the rows answer the question so, by the rule that the experiment states in its code",
    "no": "they answer it so, by the same rule",
    "partly": "it is so for some settings and not for others, which the sentences beside it name",
    "open": "the rows do not decide it: seeds or pieces of work are missing, or runs ended too early",
}
HOW_SURE = (
    "Everything here is measured, not proved. Answers are computed from the rows, with 95% confidence intervals "
    "over seeds and draws; fewer than five seeds give no answer. An interval reaches as far below a mean as above, "
    "so those of shares, errors and losses may go on where no such number is: the part that can be is meant."
)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; } h3 { font-size: 1rem; margin: 1rem 0 .2rem; }
h2 { font-size: 1.25rem; margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem; }
.wide { overflow-x: auto; max-width: 100%; }
.wide img { display: block; max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .82rem; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } code, pre { background: #f4f4f4; padding: .1rem .3rem; }
pre { overflow-x: auto; } ul { margin: .2rem 0 1rem; } dl { display: grid; grid-template-columns: 5rem 1fr; }
dt { font-weight: 600; } dd { margin: 0; }
.summary td { white-space: normal; text-align: left; vertical-align: top; } .summary th { text-align: left; }
.summary td:first-child { width: 40%; } .summary td:nth-child(3) { white-space: nowrap; }
@media (max-width: 40rem) {
.wide img { max-width: none; width: 48rem; }
.summary, .summary tbody, .summary tr, .summary td, .summary td:first-child { display: block; width: auto; }
.summary tr { border-bottom: 1px solid #ddd; padding: .4rem 0; } .summary td { border: 0; }
.summary tr:first-child { display: none; } .summary td:nth-child(3)::after { content: " seeds"; } }
.answer { font-weight: 600; } .hypotheses { color: #555; } .about { color: #666; font-size: .85rem; }
.old { color: #a03000; }
"""


def as_html(found: list[Section]) -> str:
    """Self-contained: pictures inline, no script, nothing from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<link rel=icon href='data:,'>",
        f"<title>The lab of onelayer</title><style>{STYLE}</style>",
        "<h1>The lab: does the theory hold on real machines?</h1>",
        f"<p>{_e(HOW_SURE)}</p>",
        "<dl>" + "".join(f"<dt>{word}<dd>{_e(says)}" for word, says in LEGEND.items()) + "</dl>",
        f"<p>{_e(_whose(found))}</p>",
        "<table class=summary><tr><th>question<th>answer<th>seeds<th>in short</tr>",
        *(
            f"<tr><td><a href='#{s.anchor}'>{_e(s.title)}</a><td>{_e(s.verdict.answer)}{_old(s)}"
            f"<td>{_seeds(s)}<td>{_e(s.verdict.says)}</tr>"
            for s in found
        ),
        "</table>",
        *(_section(s) for s in found),
        _machines(found),
        "</html>",
    ]
    return "\n".join(parts)


def _whose(found: list[Section]) -> str:
    """The first thing to know of rows: who computed them, and by which code."""
    mine = sum(s.results is not None for s in found)
    old = sum(bool(s.stale) for s in found)
    whose = (
        f"Your own rows, from {found[0].results}"
        if mine
        else "Rows that ship with onelayer, computed by its authors"
    )
    said = f"{whose}; each experiment says when."
    return said + (f" {old} of {len(found)} have rows of earlier code, marked stale." if old else "")


def _old(s: Section) -> str:
    return " <span class=old>(stale)</span>" if s.stale else ""


def _seeds(s: Section) -> str:
    """Of the setting with the fewest, and of the others."""
    return str(s.seeds) if s.least == s.seeds else f"{s.least} to {s.seeds}"


def _section(s: Section) -> str:
    image = base64.b64encode(s.picture).decode()
    findings = "".join(f"<li>{_e(finding)}</li>" for finding in s.verdict.findings)
    return "\n".join(
        [
            f"<h2 id='{s.anchor}'>{_e(s.title)}</h2>",
            "<h3>Expected before</h3>",
            "<ul class=hypotheses>" + "".join(f"<li>{_e(h)}</li>" for h in s.experiment.HYPOTHESES) + "</ul>",
            f"<h3>Answer{_old(s)}</h3>",
            f"<p><span class=answer>{_e(s.verdict.answer.capitalize())}.</span> {_e(s.verdict.says)}</p>",
            f"<ul>{findings}</ul>" if findings else "",
            f"<p class=hypotheses>{_e(said)}</p>" if (said := _earlier(s)) else "",
            f"<div class=wide><img alt='{_e(s.experiment.QUESTION)}' src='data:image/png;base64,{image}'></div>"
            if image
            else "",
            f"<details><summary>{_counted(s)}</summary><div class=wide>{_table(s.rows)}</div></details>",
            f"<p class=about>{_e(s.source)} {_e(str(s.cost))}.</p>",
            f"<p class=about>Run again: <code>{_e(s.command)}</code></p>",
        ]
    )


def _counted(s: Section) -> str:
    seeds = f"{_seeds(s)} {'seed' if s.seeds == 1 else 'seeds'}"
    shown = f", one of {step} shown" if (step := _step(s.rows)) > 1 else ""
    left_out = f"; {are_missing(s.missing)}" if s.missing else ""
    return f"{len(s.rows):,} {'row' if len(s.rows) == 1 else 'rows'}{shown}, {seeds}{left_out}"


def _step(rows: list[Row]) -> int:
    return max(1, -(-len(rows) // SHOWN))


def _table(rows: list[Row]) -> str:
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name != CURVE]
    body = "".join(
        "<tr>" + "".join(f"<td>{_e(_format_value(row.get(name)))}" for name in columns) + "</tr>"
        for row in rows[:: _step(rows)]
    )
    return "<table><tr>" + "".join(f"<th>{_e(name)}" for name in columns) + f"</tr>{body}</table>"


def as_markdown(found: list[Section], level: int = 1) -> str:
    """The same without pictures, for terminals and diffs; at level 0 without headings, inside another page."""
    lines = ["# The lab: does the theory hold on real machines?", "", HOW_SURE, ""] if level else []
    for s in found:
        question = f"## {s.title}" if level else f"**{s.title}**"
        lines += [question, "", *(f"- Expected: {h}" for h in s.experiment.HYPOTHESES), ""]
        lines += [f"**{s.verdict.answer.capitalize()}.** {s.verdict.says}", ""]
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


def _machines(found: list[Section]) -> str:
    """Each machine and its versions once, with the experiments that ran there last."""
    ran: dict[str, list[str]] = {}
    for s in found:
        said = json.dumps({name: s.about[name] for name in ("versions", "machine")}, indent=1)
        ran.setdefault(said, []).append(s.name)
    listed = "".join(
        f"<p class=about>{_e(', '.join(names))}</p><pre>{_e(said)}</pre>" for said, names in ran.items()
    )
    return f"<h2>Machines and versions</h2>{listed}"


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _e(text: str) -> str:
    return html.escape(str(text), quote=True)
