"""An approximation as tables: how far it is from its target, why, and what else was considered."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from onelayer.certificates.words import at_most
from onelayer.interfaces import Function
from onelayer.interfaces.plan import Plan, count_with_commas
from onelayer.ledger import show as shown
from onelayer.model import Model
from onelayer.problems.targets import ZOO


def show(console: Console, model: Model, seconds: float) -> None:
    table = Table(show_header=False, show_edge=False, title_justify="left", title=title(model))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows(model, seconds):
        table.add_row(name, Text(text))
    console.print(table)
    console.print()
    console.print(budget(model))
    if len(of(model).compared) > 1:
        console.print()
        console.print(comparison_table(model))


def of(model: Model) -> Function:
    return model.interface_as(Function, "approximate")


def title(model: Model) -> Text:
    t = model.target
    tokens = f"{t.n} token{'s' if t.n > 1 else ''}" + (f" of {t.d} components" if t.d > 1 else "")
    return Text(f"{t.name} of {tokens} in [{of(model).low:g}, {of(model).high:g}]")


def rows(model: Model, seconds: float) -> list[tuple[str, str]]:
    """What is known of the error, and how."""
    dtype = str(model.transformer.dtype)
    bound = f"{at_most(model.error_bound)}, proved in real numbers and in {dtype} in any order of summation"
    if not model.proved:
        bound = "not proved: too little is known of the target, or the checker could not decide"
    left = f"a share {at_most(of(model).left_out)} of the box: ramps between cells"
    left += ", and sequences with two tokens in one cell" if of(model).box.distinct else ""
    tried = f"{model.measured_error:.4g}, among {of(model).samples:,} inputs and by climbing from the worst"
    return [
        ("target", f"{model.target.kind}; {model.target.says}"),
        ("construction", of(model).construction),
        ("error at most", bound),
        *([("if", of(model).assumes)] if of(model).assumes else []),
        *([("left out", left if of(model).left_out else "nothing")] if model.proved else []),
        *(("over the whole box", line) for line in averages(model)),
        ("largest error found", tried),
        ("tolerance", shown(of(model).tolerance)),
        ("parameters", f"{model.n_parameters:,} numbers in {dtype}"),
        ("seconds", f"{seconds:.1f}"),
    ]


def averages(model: Model) -> list[str]:
    """What is proved of the mean over the whole box."""
    claims = () if model.certificate is None else model.certificate.claims
    norms = [(float.fromhex(c["p"]), float.fromhex(c["bound"])) for c in claims if c["type"] == "lp_error"]
    return [f"a mean of order {p:g} of at most {at_most(bound)}, proved" for p, bound in norms]


def budget(model: Model) -> Table:
    """Where the error comes from; the parts add up to the bound."""
    table = Table(title="Where the error may come from", title_justify="left", show_edge=False)
    table.add_column("part")
    table.add_column("at most", justify="right")
    table.add_column("what it is", overflow="fold")
    for line in model.budget.lines:
        table.add_row(line.name, shown(line.value), Text(line.meaning))
    if model.proved:
        table.add_row("in all", at_most(model.error_bound), "")
    return table


def comparison_table(model: Model) -> Table:
    """What each construction was expected to take before one was built."""
    table = Table(title="Expected of each construction", title_justify="left", show_edge=False)
    table.add_column("construction")
    for name in ("cells", "parameters", "memory", "time"):
        table.add_column(name, justify="right")
    table.add_column("")
    for plan in sorted(of(model).compared, key=lambda plan: (not plan.reachable, plan.parameters)):
        table.add_row(*expected_row(plan), verdict(plan, model))
    return table


def expected_row(plan: Plan) -> tuple[str, str, str, str, str]:
    cells = count_with_commas(plan.cells) if plan.cells else "none"
    return plan.construction, cells, count_with_commas(plan.parameters), plan.memory, plan.duration


def verdict(plan: Plan, model: Model) -> str:
    if plan.construction == of(model).construction:
        return "built"
    if plan.reachable:
        return ""
    return f"out of reach; about {plan.error:.2g} is not" if math.isfinite(plan.error) else "out of reach"


def zoo(console: Console) -> None:
    """The functions that have a name."""
    table = Table(show_edge=False)
    for name in ("name", "kind", "a value per", "what it is"):
        table.add_column(name, overflow="fold")
    for named in ZOO.values():
        name = f"{named.name}:{named.parameter}" if named.parameter else named.name
        table.add_row(*map(Text, (name, named.kind, named.per, named.says)))
    console.print(table)
