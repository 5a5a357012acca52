"""`onelayer lab`: list the experiments, run one or all, write the report."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from onelayer.cli.console import AsJson, err, out, print_json
from onelayer.errors import FileError
from onelayer.lab import find, names
from onelayer.lab import report as pages
from onelayer.lab.experiment import Experiment, Preset, Row, Verdict, choose_cases, judge, narrow_cases
from onelayer.lab.harness import DEFAULT_SEEDS, PieceError
from onelayer.lab.harness import run as run_experiment
from onelayer.lab.shipped import FOLDER, gather
from onelayer.lab.store import Store

app = typer.Typer(name="lab", help="Questions of the papers as experiments to run again.", no_args_is_help=True)

Full = Annotated[bool, typer.Option("--full/--quick", help="All settings (hours), or a few of them (minutes).")]
Corpus = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="Labelled sentences (CoNLL) for experiments that read them."),
]
Results = Annotated[Path, typer.Option(help="Where rows are kept.")]


def _preset(full: bool) -> Preset:
    return "full" if full else "quick"


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Every experiment and its question."""
    if as_json:
        found = {name: find(name) for name in names()}
        listed = [{"name": name, "question": e.QUESTION, "needs": [*e.EXTRAS]} for name, e in found.items()]
        print_json({"experiments": listed})
        return
    table = Table(box=None, header_style="bold")
    for column in ("name", "question", "needs"):
        table.add_column(column)
    for name in names():
        experiment = find(name)
        table.add_row(name, experiment.QUESTION, ", ".join(experiment.EXTRAS))
    out.print(table)


@app.command()
def run(
    name: Annotated[list[str], typer.Argument(help="Experiments, or `all`.", show_default=False)],
    full: Full = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repetitions; 5 for quick, 10 for full; fewer than 5 give no answer.")
    ] = None,
    results: Results = Path("lab-results"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Set old rows aside and start over.")] = False,
    corpus: Corpus = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Settings that have this value, as name=value; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run experiments; what was computed before is kept, an interrupted run goes on where it stopped."""
    chosen = list(names()) if name == ["all"] else name
    for one in chosen:
        find(one)  # a wrong name is an error before any work is done
    preset, said, failed = _preset(full), {}, list[PieceError]()
    costs: dict[str, pages.Cost] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err) as bar:
        for one in chosen:
            task = bar.add_task(one, total=None)

            def show(done: int, total: int, task: object = task) -> None:
                bar.update(task, completed=done, total=total)  # type: ignore[arg-type]

            options: dict[str, Any] = {"seeds": seeds, "results": results, "jobs": jobs, "cluster": cluster}
            options |= {"fresh": fresh, "only": only or ()}
            options["corpus"] = corpus if hasattr(find(one), "of_corpus") or name != ["all"] else None
            try:
                rows = run_experiment(one, preset, progress=show, **options)
                said[one] = _judge_part(find(one), rows) if only else judge(find(one), rows)
                cases = narrow_cases(choose_cases(one, find(one), preset, options["corpus"]), options["only"])
                pieces = Store(results, one, preset).pieces_of(cases, seeds or DEFAULT_SEEDS[preset])
                costs[one] = pages.Cost.of(pieces)
            except PieceError as error:  # the next experiments do not wait for it to be mended
                failed.append(error)
    if as_json:
        told = {one: {"answer": v.answer, "says": v.says, "findings": v.findings} for one, v in said.items()}
        print_json({one: {**told[one], "cpu_seconds": asdict(cost)} for one, cost in costs.items()})
    else:
        for one, verdict in said.items():
            out.print(f"[bold]{find(one).QUESTION}[/bold]")
            out.print(f"{verdict.answer.capitalize()}. {verdict.says}", highlight=False, markup=False)
            for finding in verdict.findings:
                out.print(f"  - {finding}", highlight=False, markup=False)
            out.print(f"  {costs[one]}", highlight=False, markup=False)
        again = seeds or DEFAULT_SEEDS[preset]
        there = f"{again} {'seed' if again == 1 else 'seeds'} in {results}"
        out.print(f"{there}; a page of all results: onelayer lab report --results {results}")
    for other in failed[1:]:
        err.print(f"error: {other}", style="red", highlight=False, markup=False, soft_wrap=True)
    if failed:
        raise failed[0]


def _judge_part(experiment: Experiment, rows: list[Row]) -> Verdict:
    """A part of the settings has no answer, and may not have the rows that one compares."""
    part = f"{len(rows)} rows of a part of the settings have no answer"
    try:
        found = judge(experiment, rows)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return Verdict("open", f"{part}.")
    return replace(found, answer="open", says=f"{part}. They say: {found.says}")


@app.command()
def report(
    full: Full = False,
    results: Results = Path("lab-results"),
    corpus: Corpus = None,
    page: Annotated[Path, typer.Option("--out", help="The page to write; Markdown is written beside it.")] = Path(
        "lab-report.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page, and Markdown, of all results."""
    found = pages.sections(results, _preset(full), corpus)
    page.write_text(pages.as_html(found), encoding="utf-8")
    page.with_suffix(".md").write_text(pages.as_markdown(found), encoding="utf-8")
    if as_json:
        answers = {section.name: section.verdict.answer for section in found}
        print_json({"written": [str(page), str(page.with_suffix(".md"))], "answers": answers})
        return
    if any(section.source for section in found):
        out.print(f"No rows in {results}: these are the rows that ship with onelayer.")
    out.print(f"{len(found)} experiments on {page} and {page.with_suffix('.md')}")


@app.command()
def ship(
    results: Results = Path("lab-results"),
    folder: Annotated[
        Path, typer.Option("--into", help="Where files of rows lie that ship with the library.")
    ] = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Put rows beside those that ship with the library: runs of several days add up, newer ones replace older."""
    written = [str(path) for path in gather(results, folder)]
    if not written:
        raise FileError("lab", f"rows in {results}", "there are none", "Run: onelayer lab run NAME")
    if as_json:
        print_json({"written": written})
        return
    out.print("\n".join(written), highlight=False, markup=False)
