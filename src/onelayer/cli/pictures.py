"""Tables and pictures of a model, for the terminal and for files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onelayer.data.tables import Table as DataTable
from onelayer.errors import HypothesisError, MissingExtraError
from onelayer.ledger import show
from onelayer.memory import Memory
from onelayer.model.fast import find_plateaus
from onelayer.model.forward import apply_stack

STRIP = 56  # columns of a number line


def summary(console: Console, model: Memory) -> None:
    """The ledger as a table."""
    table = Table(title="Constants of the model", title_justify="left", show_edge=False)
    for name in ("constant", "value", "meaning"):
        table.add_column(name)
    for line in model.ledger.lines:
        table.add_row(*map(Text, (line.name, show(line.value), line.meaning)))  # as text, not as markup
    console.print(table)


def shapes(console: Console, model: Memory) -> None:
    """Every tensor with its shape."""
    table = Table(title="Tensors", title_justify="left", show_edge=False)
    table.add_column("name")
    table.add_column("shape")
    table.add_column("numbers", justify="right")
    for name, array in model.transformer.tensors():
        table.add_row(name, " x ".join(map(str, array.shape)), f"{array.size:,}")
    table.add_row("in all", "", f"{model.n_parameters:,}")
    console.print(table)


def ramp_widths(model: Memory) -> Any:
    """The width of the ramp between neighbouring plateaus, a quarter to a half of the gap between their ids."""
    readout = model.transformer.readout
    slopes = np.abs(readout[-3].weight) if len(readout) >= 3 else np.empty(0)
    return 1.0 / slopes[slopes > 0].astype(np.float64)


def gap_histogram(console: Console, model: Memory) -> None:
    """How many gaps between neighbouring answers fall into each power of ten."""
    widths = ramp_widths(model)
    if not widths.size:
        console.print("One plateau: every input gets the same answer.")
        return
    decades = np.floor(np.log10(2 * widths)).astype(int)
    values, counts = np.unique(decades, return_counts=True)
    console.print("\nGaps between neighbouring answers (each bar a power of ten)")
    for value, count in zip(values, counts, strict=True):
        bar = "█" * max(1, round(40 * count / counts.max()))
        console.print(f"  1e{value:+03d}  {bar} {count // 2 or 1:,}", highlight=False)
    guard, radius = model.ledger["guard"], model.ledger["radius_upper"]
    console.print(
        f"  an id may move by {show(guard)}; rounding moves it by at most {show(radius)}", highlight=False
    )


def draw(model: Memory, path: Path) -> None:
    """Gaps and readout as a figure."""
    if path.suffix not in (".png", ".svg"):
        raise HypothesisError("data", "a picture name ending in .png or .svg", f"it is {path}", "Rename it.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing a picture", "matplotlib", "plot") from None
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    gaps, stairs = figure.subplots(2, 1)
    widths = ramp_widths(model)
    gaps.hist(np.log10(2 * widths), bins=40, color="#4477aa")
    radius = float(str(model.ledger["radius_upper"]))
    gaps.axvline(
        np.log10(4 * radius), color="#cc3311", label="4 × the bound on rounding: the least gap that is safe"
    )
    gaps.set(xlabel="log10 of the gap between neighbouring answers", ylabel="number of gaps")
    gaps.legend(frameon=False)
    t, y = staircase(model)
    stairs.plot(t, y, color="#4477aa", linewidth=0.8)
    stairs.set(xlabel="context coordinate t", ylabel="first component of the output")
    figure.suptitle(f"One attention layer, {model.n_parameters:,} parameters")
    figure.savefig(path, dpi=150)


def staircase(model: Memory, most: int = 200) -> tuple[Any, Any]:
    """The readout as a function of its first coordinate, over the first plateaus."""
    readout = model.transformer.readout
    found = find_plateaus(readout)
    ends = np.array([0.0, 1.0]) if found is None else found.right[np.isfinite(found.right)][:most]
    stop = float(ends[-1]) if ends.size else 1.0
    t = np.linspace(float(ends[0]) - 0.05 * (stop - float(ends[0])), stop, 4000)
    h = np.zeros((len(t), readout[1].weight.shape[0]), model.transformer.dtype)
    h[:, 0] = t
    return t, apply_stack(readout[1:], h)[:, 0]


def demo(console: Console, data: DataTable, model: Memory) -> None:
    """Each ambiguous word on a number line: a digit per company, which names the answer."""
    console.print(f"[bold]{data.source}[/bold], the same word answering differently in different company,")
    console.print(
        f"compiled into one attention head of rank {model.ledger['rank']} and a readout of "
        f"{model.ledger['plateaus']} plateaus: {model.n_parameters:,} parameters, no training.\n"
    )
    contexts = np.asarray(model.trace(data.X, data.lengths)["context0"])
    seen: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    for record, row in zip(data.records(), contexts.tolist(), strict=True):
        for word, answer, at in zip(record["tokens"], record["answers"], row, strict=False):
            company = " ".join(other for other in record["tokens"] if other != word)
            seen[word].append((at, answer, company))
    ambiguous = {word: rows for word, rows in seen.items() if len({answer for _, answer, _ in rows}) > 1}
    table = Table(title="What attention writes beside a word", title_justify="left", show_edge=False)
    for name in ("word", "in the company of", "context number", "answer"):
        table.add_column(name)
    for word, rows in list(ambiguous.items())[:3]:
        for at, answer, company in rows:
            table.add_row(*map(Text, (word, company, f"{at:+.6f}", answer)))
    console.print(table)
    console.print("\nAll of them on a line: a digit is the word in one company and names the answer read off.")
    low, high = float(contexts.min()), float(contexts.max())
    for word, rows in ambiguous.items():
        strip = ["·"] * STRIP
        names = {answer: str(i + 1) for i, answer in enumerate(dict.fromkeys(a for _, a, _ in rows))}
        for at, answer, _ in rows:
            strip[round((STRIP - 1) * (at - low) / (high - low or 1.0))] = names[answer]
        legend = "  ".join(f"{mark} {answer}" for answer, mark in names.items())
        console.print(f"{word:>8} {''.join(strip)} {legend}", highlight=False, soft_wrap=True)
