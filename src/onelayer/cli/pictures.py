"""Tables and pictures of a model, for the terminal and for files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onelayer.errors import FileError, OptionError, visible
from onelayer.ledger import show
from onelayer.measure.gaps import NAMED, Gaps, gaps_of, name_gaps
from onelayer.model import Model
from onelayer.problems.tables import Table as DataTable

STRIP = 40  # columns of a number line


def summary(console: Console, model: Model) -> None:
    """The ledger as a table."""
    table = Table(title="Constants of the model", title_justify="left", show_edge=False)
    for name in ("constant", "value", "meaning"):
        table.add_column(name)
    for line in model.ledger.lines:
        table.add_row(*map(Text, (line.name, show(line.value), line.meaning)))  # as text, not as markup
    console.print(table)


def show_gaps(console: Console, model: Model) -> None:
    """How many gaps between neighbouring cells fall into each power of ten, and what lies beside the narrowest."""
    found = gaps_of(model)
    if not found:
        readout = model.ledger.get("readout", model.ledger.get("construction"))
        if readout is not None:  # a learner stores no answers
            console.print(f"\nThe readout is {readout}: there are no gaps on a line to show.", highlight=False)
        return
    full = "█" if (console.encoding or "").lower().startswith("utf") else "#"
    every = np.concatenate([gaps.width for gaps in found])
    values, counts = np.unique(np.floor(np.log10(every)).astype(int), return_counts=True)
    least = "" if found[0].samples is not None else ", lower bounds"
    console.print(f"\nGaps between neighbouring cells{least} (a bar for each power of ten)")
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        bar = full * max(1, round(40 * count / counts.max()))
        console.print(f"  1e{value:+03d}  {bar} {count:,}", highlight=False)
    if "guard" in model.ledger:
        guard, radius = model.ledger["guard"], model.ledger["radius_upper"]
        console.print(
            f"  an id may move by {show(guard)}; rounding moves it by at most {show(radius)}", highlight=False
        )
    _list_gaps(console, model, found)


def _list_gaps(console: Console, model: Model, found: list[Gaps]) -> None:
    table = Table(title="\nThe narrowest gaps", title_justify="left", show_edge=False)
    for name, side in (("between", "left"), ("width", "right"), ("left of it", "left"), ("right of it", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for gaps in found:
        for gap in name_gaps(model, gaps, gaps.narrowest(max(1, NAMED // len(found)))):
            row = (gaps.name, f"{gap.width:.4g}", gap.left, gap.right)
            table.add_row(*(Text(visible(text)) for text in row))  # as text, not as markup
    console.print(table)


def check_picture(path: Path) -> None:
    """Refuse a picture that could not be written, before anything is shown."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise OptionError("data", "a picture name ending in .png or .svg", f"it is {path}", "Rename it.")
    if not path.absolute().parent.is_dir():
        raise FileError("file", "a folder that exists", f"there is no {path.parent}", "Create it.")


def demo(console: Console, data: DataTable, model: Model) -> None:
    """Each ambiguous word on a number line: a digit per context, which names the answer."""
    console.print(f"[bold]{data.source}[/bold], where the same word has different answers in different contexts,")
    console.print(
        f"compiled into one attention head of rank {model.ledger['rank']} and a readout of "
        f"{model.ledger['plateaus']} plateaus: {model.n_parameters:,} parameters, no training.\n"
    )
    kept = model.trace(data.X, data.lengths)
    contexts, coordinates = np.asarray(kept["context0"]), np.asarray(kept["readout.0"])[..., 0]
    seen: dict[str, list[tuple[float, float, str, str]]] = defaultdict(list)
    for record, row, ts in zip(data.records(), contexts.tolist(), coordinates.tolist(), strict=True):
        for word, answer, at, t in zip(record["tokens"], record["answers"], row, ts, strict=False):
            company = " ".join(other for other in record["tokens"] if other != word)
            seen[word].append((at, t, answer, company))
    ambiguous = {word: rows for word, rows in seen.items() if len({row[2] for row in rows}) > 1}
    table = Table(title="What attention writes beside a word", title_justify="left", show_edge=False)
    for name in ("word", "with", "context", "t = context + the word's code", "answer read off at t"):
        table.add_column(name)
    for word, rows in list(ambiguous.items())[:3]:
        for at, t, answer, company in rows:
            table.add_row(*map(Text, (word, company, f"{at:+.4f}", f"{t:.4f}", answer)))
    console.print(table)
    low, high = float(contexts.min()), float(contexts.max())
    console.print("\nAll contexts on a line: each digit is the word in one context and names its answer.")
    console.print(f"{'':>8} {f'{low:+.2f}':<{STRIP - 5}}{high:+.2f}", highlight=False)
    for word, rows in ambiguous.items():
        strip = ["·"] * STRIP
        names = {answer: str(i + 1) for i, answer in enumerate(dict.fromkeys(row[2] for row in rows))}
        for at, _, answer, _ in rows:
            strip[round((STRIP - 1) * (at - low) / (high - low or 1.0))] = names[answer]
        legend = "  ".join(f"{mark} {answer}" for answer, mark in names.items())
        console.print(f"{word:>8} {''.join(strip)} {legend}", highlight=False, soft_wrap=True)
