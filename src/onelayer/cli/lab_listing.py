"""What `onelayer lab list` shows: the experiments, or of one its settings, their costs and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from onelayer.cli.console import out, print_json, say
from onelayer.lab import find, names
from onelayer.lab.experiment import Case, Preset
from onelayer.lab.harness import Plan, plan_of
from onelayer.lab.sections import pieces_of_work, run_command, seconds_of
from onelayer.lab.shipped import read_all
from onelayer.lab.store import Piece


def show_experiments(as_json: bool) -> None:
    found = {name: find(name) for name in names()}
    if as_json:
        listed = [{"name": name, "question": e.QUESTION, "needs": [*e.EXTRAS]} for name, e in found.items()]
        print_json({"experiments": listed})
        return
    table = Table(box=None, header_style="bold")
    for column in ("name", "question", "needs"):
        table.add_column(column)
    for name, experiment in found.items():
        table.add_row(name, experiment.QUESTION, ", ".join(experiment.EXTRAS))
    out.print(table)
    say("\nSettings of one, what they cost, and which rows are there: onelayer lab list NAME")


def show_settings(
    name: str,
    preset: Preset,
    seeds: int | None,
    results: Path,
    corpus: Path | None,
    only: Sequence[str],
    as_json: bool,
) -> None:
    plan = plan_of(name, preset, seeds=seeds, results=results, corpus=corpus, only=only)
    own = plan.store.pieces() if plan.store.folder.is_dir() else []
    settings = [_setting(case, plan, own) for case in plan.cases]
    missing = sum(each["missing"] for each in settings)
    experiment = find(name)
    if as_json:
        told: dict[str, Any] = {
            "name": name,
            "question": experiment.QUESTION,
            "hypotheses": [*experiment.HYPOTHESES],
        }
        told |= {"needs": [*experiment.EXTRAS], "preset": preset, "seeds": plan.seeds, "missing": missing}
        print_json({**told, "settings": settings})
        return
    out.print(experiment.QUESTION, style="bold", markup=False, highlight=False)
    for hypothesis in experiment.HYPOTHESES:
        say(f"  expected: {hypothesis}")
    _show_table(settings, plan.seeds)
    command = run_command(name, preset, seeds, results, str(corpus or ""), only)
    if missing:
        say(
            f"{pieces_of_work(missing)} {'is' if missing == 1 else 'are'} missing{_price(settings)}. Run: {command}"
        )
    else:
        say(f"Nothing is missing in {results}.")


def _setting(case: Case, plan: Plan, own: list[Piece]) -> dict[str, Any]:
    """A setting, its seeds that are there, missing, and there of earlier code alone, and CPU seconds of one."""
    there = sum(plan.store.has(case, seed) for seed in range(plan.seeds))
    mine = [piece for piece in own if piece.case == case]
    old = {p.seed for p in mine if not plan.store.is_current(p)} - {
        p.seed for p in mine if plan.store.is_current(p)
    }
    known = mine or [piece for piece in _shipped(plan.store.name) if piece.case == case]
    seconds = median(float(piece.about["seconds"]) for piece in known) if known else None
    said = {"there": there, "missing": plan.seeds - there, "stale": len(old), "cpu_seconds": seconds}
    return {"setting": case, **said}


@cache
def _shipped(name: str) -> list[Piece]:
    return [piece for given in read_all(name=name) for piece in given.pieces]


def _show_table(settings: list[dict[str, Any]], seeds: int) -> None:
    """Values that all settings share are said once, above."""
    cases = [each["setting"] for each in settings]
    columns = list(dict.fromkeys(name for case in cases for name in case))
    shared = [name for name in columns if len({str(case.get(name)) for case in cases}) == 1] if cases[1:] else []
    if said := [f"{name}={cases[0][name]}" for name in shared if cases[0].get(name) not in (None, "")]:
        say(f"In all settings: {', '.join(said)}")
    names_shown = [name for name in columns if name not in shared]
    lines = [[*names_shown, "seeds", "stale", "CPU s a seed"]]
    for each in settings:
        cost = "?" if each["cpu_seconds"] is None else seconds_of(each["cpu_seconds"])
        values = [_shown(each["setting"].get(name)) for name in names_shown]
        lines.append([*values, f"{each['there']} of {seeds}", str(each["stale"] or ""), cost])
    # Lines as wide as they are, which a terminal may break: half words in narrow columns are for nobody.
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        text = "  ".join(value.rjust(width) for value, width in zip(line, widths, strict=True))
        out.print(f"  {text}", style=None if number else "bold", soft_wrap=True, highlight=False, markup=False)


def _shown(value: Any) -> str:
    """As `--only` takes it, and nothing for what a setting does not have."""
    return "" if value is None else str(value)


def _price(settings: list[dict[str, Any]]) -> str:
    """CPU seconds of what is missing, by rows that are there or ship."""
    missing = [each for each in settings if each["missing"]]
    known = [each for each in missing if each["cpu_seconds"] is not None]
    if not known:
        return ", and no row says what they cost"
    total = seconds_of(sum(each["missing"] * each["cpu_seconds"] for each in known))
    rest = len(missing) - len(known)
    return f", about {total} CPU seconds" + (f" beside {rest} settings whose cost no row says" if rest else "")
