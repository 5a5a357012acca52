"""One page for a person: what was proved of a bundle, in which arithmetic, and what is not claimed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from html import escape as escape_tags
from pathlib import Path
from typing import TYPE_CHECKING

from onelayer.certificates.words import list_assumptions, not_claimed, sentence, target_of
from onelayer.errors import MissingExtraError, visible
from onelayer.export.bundle import read
from onelayer.ledger import show
from onelayer.measure.examples import examples_of
from onelayer.measure.pictures import as_png, figure_of
from onelayer_checker import Claim, Report, check

if TYPE_CHECKING:
    from onelayer.model import Model

COLOURS = {"VERIFIED": "#1b7f3b", "NOT VERIFIED": "#b3261e", "UNKNOWN": "#9a6700", "MALFORMED": "#b3261e"}
SHOWN = ("mapping", "readout", "rank", "dtype", "distinct", "beta", "gap", "guard", "radius_upper", "parameters")
OF_FUNCTIONS = ("levels", "cell", "vertices", "sequences", "value_step")
NAMED = ("target", "construction", "tolerance", "low", "high", "heads")  # shown with their names
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; color: #1f2328 }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin-top: 2rem }
.verdict { font-size: 1.6rem; font-weight: 700; padding: .6rem 1rem; border-left: .5rem solid }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .35rem .6rem .35rem 0;
border-bottom: 1px solid #d8dee4; vertical-align: top }
.number { font-variant-numeric: tabular-nums }
img { max-width: 100%; background: #fff } td { overflow-wrap: anywhere }
code { font-size: .9em } footer { color: #656d76; font-size: .85rem; margin-top: 2rem }
"""


def escape(text: str) -> str:
    """Text of a bundle for a page: no tags of its own, and nothing that turns the direction of writing."""
    return escape_tags(visible(text))


def write_report(
    folder: str | Path,
    path: str | Path,
    show_line: Callable[[str], None] = lambda _: None,
    load: Callable[[Path], Model] | None = None,
) -> Report:
    """Have the checker decide a bundle and write the page; with ``load``, with a picture and some answers."""
    verdict = check(folder, show=lambda judged: show_line(str(judged)))
    model = None if load is None or not verdict.claims else load(Path(folder))
    page = render(Path(folder), verdict, model)
    target = Path(path)
    part = target.with_name(f".{target.name}.part")
    part.write_text(page, encoding="utf-8")
    part.replace(target)
    return verdict


def render(folder: Path, verdict: Report, model: Model | None = None) -> str:
    colour = COLOURS.get(verdict.result, "#656d76")
    body = [
        f"<h1>{escape(folder.name)}: one attention layer, checked</h1>",
        f'<p class="verdict" style="border-color:{colour};color:{colour}">{verdict.result}</p>',
    ]
    if verdict.notes:
        body += _list("What this is about", list(verdict.notes))
    claims: list[Claim] = [judged.claim for judged in verdict.claims]
    if claims:
        body += _claims(verdict) + ([] if model is None else _examples(model) + _picture(model)) + _model(folder)
    else:
        body.append(f"<p>{escape(verdict.why)}</p>")
    body += _list("What this assumes", list_assumptions(claims))
    if claims:
        body += _list("What is not claimed", not_claimed(claims))
    body.append("<footer>Decided by <code>onelayer_checker</code>, which knows nothing of the compiler. ")
    body.append("Run it again: <code>python -m onelayer_checker FOLDER</code>.</footer>")
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<link rel=icon href='data:,'><title>{escape(folder.name)}: {verdict.result}</title>"
        f"<style>{STYLE}</style><body>{''.join(body)}</body></html>\n"
    )


def _claims(verdict: Report) -> list[str]:
    rows = ["<h2>What was decided</h2>"]
    targets = target_of([judged.claim for judged in verdict.claims])
    rows += [f"<p>The target is {escape(target)}.</p>" for target in targets]
    rows.append("<table><tr><th>claim<th>verdict<th>certain")
    for judged in verdict.claims:
        said = sentence(judged.claim)
        rows.append(
            f"<tr><td>{escape(said[0].upper() + said[1:])}.<td><b>{judged.verdict.outcome}</b>"
            f"<td class=number>{escape(judged.verdict.why)}"
        )
    return [*rows, "</table>"]


def _examples(model: Model) -> list[str]:
    """Some answers as they come out now."""
    found = examples_of(model)
    if not found:
        return []
    rows = [f"<tr><td>{escape(given)}<td>{escape(answer)}" for given, answer in found]
    return ["<h2>Some answers (measured)</h2><table><tr><th>in<th>out", *rows, "</table>"]


def _picture(model: Model) -> list[str]:
    try:
        picture = base64.b64encode(as_png(figure_of(model))).decode()
    except MissingExtraError as error:
        return [f"<h2>The picture</h2><p>{escape(str(error))}</p>"]
    return [f"<h2>The picture</h2><img alt='A picture of the model' src='data:image/png;base64,{picture}'>"]


def _model(folder: Path) -> list[str]:
    ledger = read(folder).ledger
    rows = [
        f"<tr><td>{f'{line.name}: ' if line.name in NAMED else ''}{escape(line.meaning)}"
        f"<td class=number>{escape(show(line.value))}"
        for line in ledger.lines
        if line.name in (*SHOWN, *OF_FUNCTIONS, *NAMED)
    ]
    return ["<h2>The model</h2><table>", *rows, "</table>"]


def _list(title: str, lines: list[str]) -> list[str]:
    return [f"<h2>{title}</h2><ul>", *(f"<li>{escape(line)}" for line in lines), "</ul>"]
