"""The comparison of theorem and library as a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from onelayer.measure.price import Comparison


def show(console: Console, comparison: Comparison) -> None:
    s = comparison.separation
    console.print(
        f"|V| = {s.vocabulary} different tokens ({comparison.tokens}), n = {s.n}, d = {s.d}\n"
        f"r_min = {s.r_min:.4g}   r_max = {s.r_max:.4g}   eps = {s.eps:.4g}\n",
        highlight=False,
    )
    table = Table(show_edge=False)
    table.add_column("")
    for column in comparison.columns:
        table.add_column(column.name)
    columns = comparison.columns
    table.add_row("standing", *(c.standing for c in columns))
    table.add_row("beta", *(_number(c.beta) for c in columns))
    table.add_row("log10 of the promised gap (delta)", *(_number(c.log10_delta) for c in columns))
    table.add_row("log10 of the gap it really has", *(_number(c.log10_gap) for c in columns))
    table.add_row("bits that the promise (or the gap) needs", *(_whole(c.bits) for c in columns))
    console.print(table)
    for column in columns:
        if column.note:
            console.print(f"{column.name}: {column.note}", highlight=False, markup=False)


def _whole(value: int | None) -> str:
    return "" if value is None else f"{value:,}" if value < 10**9 else f"{value:.3g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"
