"""`onelayer lab`: list the experiments, run one or all, write the report."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from onelayer.cli import lab_listing as listing
from onelayer.cli.console import AsJson, err, out, print_json, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.errors import FileError, OptionError
from onelayer.lab import find, names
from onelayer.lab import report as pages
from onelayer.lab.experiment import Experiment, Preset, Row, Verdict, judge
from onelayer.lab.harness import DEFAULT_SEEDS, PieceError, Plan, prepare
from onelayer.lab.harness import run as run_experiment
from onelayer.lab.sections import RESULTS, Cost, pieces_of_work, report_command, run_command, sections
from onelayer.lab.shipped import FOLDER, gather

app = typer.Typer(name="lab", help="Questions of the papers as experiments to run again.", no_args_is_help=True)

Full = Annotated[bool, typer.Option("--full/--quick", help="All settings (hours), or a few of them (minutes).")]
Corpus = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="Labelled sentences (CoNLL) for experiments that read them."),
]
Results = Annotated[Path, typer.Option(help="Where rows are kept.")]
Seeds = Annotated[
    int | None, typer.Option(min=1, help="Repetitions; 5 for quick, 10 for full; fewer than 5 give no answer.")
]
Only = Annotated[
    list[str] | None, typer.Option(help="Settings that have this value, as name=value; may be repeated.")
]


def _preset(full: bool) -> Preset:
    return "full" if full else "quick"


@app.command("list")
def list_(
    name: Annotated[str | None, typer.Argument(help="An experiment, for its settings.", show_default=False)] = None,
    full: Full = False,
    seeds: Seeds = None,
    results: Results = RESULTS,
    corpus: Corpus = None,
    only: Only = None,
    as_json: AsJson = False,
) -> None:
    """Every experiment and its question; of one, its settings, what each costs, and which rows are there."""
    if name is not None:
        listing.show_settings(name, _preset(full), seeds, results, corpus, only or (), as_json)
    elif full or seeds or corpus or only:
        needs, remedy = "an experiment, for options about its settings", "Run: onelayer lab list NAME"
        raise OptionError("lab", needs, "there is no name", remedy)
    else:
        listing.show_experiments(as_json)


@app.command()
def run(
    name: Annotated[list[str], typer.Argument(help="Experiments, or `all`.", show_default=False)],
    full: Full = False,
    seeds: Seeds = None,
    results: Results = RESULTS,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Set old rows aside and start over.")] = False,
    corpus: Corpus = None,
    only: Only = None,
    as_json: AsJson = False,
) -> None:
    """Run experiments; what was computed before is kept, an interrupted run goes on where it stopped."""
    chosen = list(names()) if name == ["all"] else list(dict.fromkeys(name))
    preset, asked = _preset(full), dict[str, Any]()
    for one in chosen:
        read = corpus if name != ["all"] or hasattr(find(one), "of_corpus") else None
        asked[one] = {"seeds": seeds, "results": results, "jobs": jobs, "cluster": cluster, "corpus": read}
        asked[one] |= {"only": only or ()}
    # Whatever is wrong with one of them is said before the first is run.
    plans = {one: prepare(one, preset, **options) for one, options in asked.items()}
    for plan in plans.values():
        plan.make_room(fresh)
    # A process that has grown large is replaced, which loses nothing and need not be warned of.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    said, costs, failed = dict[str, Verdict](), dict[str, Cost](), list[PieceError]()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=err) as bar:
            for one, plan in plans.items():
                task = bar.add_task(one, total=len(plan.wanted))

                def show(done: int, total: int, task: TaskID = task) -> None:
                    bar.update(task, completed=done, total=total)

                try:
                    rows = run_experiment(one, preset, progress=show, **asked[one])
                    said[one] = _judge_part(find(one), rows) if only else judge(find(one), rows)
                    costs[one] = Cost.of(plan.pieces())
                except PieceError as error:  # the next experiments do not wait for it to be mended
                    failed.append(error)
    except KeyboardInterrupt:
        _say_interrupted(plans, preset, seeds, results, str(corpus or ""), only or ())
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _say_answers(said, costs, as_json)
    if said and not as_json:
        again = seeds or DEFAULT_SEEDS[preset]
        there = f"{again} {'seed' if again == 1 else 'seeds'} in {results}"
        say(f"{there}; a page of all results: {report_command(preset, results)}")
    for other in failed[1:]:
        err.print(f"error: {other}", style="red", highlight=False, markup=False, soft_wrap=True)
    if failed:
        raise failed[0]


def _say_answers(said: dict[str, Verdict], costs: dict[str, Cost], as_json: bool) -> None:
    if as_json:
        told = {one: {"answer": v.answer, "says": v.says, "findings": v.findings} for one, v in said.items()}
        print_json({one: {**told[one], "cpu_seconds": asdict(cost)} for one, cost in costs.items()})
        return
    for one, verdict in said.items():
        out.print(f"[bold]{find(one).QUESTION}[/bold]")
        say(f"{verdict.answer.capitalize()}. {verdict.says}")
        for finding in verdict.findings:
            say(f"  - {finding}")
        say(f"  {costs[one]}")


def _say_interrupted(
    plans: dict[str, Plan], preset: Preset, seeds: int | None, results: Path, corpus: str, only: Sequence[str]
) -> None:
    """What is there after Ctrl-C, and the command that goes on with it: the one that was run."""
    wanted = sum(len(plan.wanted) for plan in plans.values())
    kept = wanted - sum(len(plan.pending()) for plan in plans.values())
    name = "all" if list(plans) == list(names()) else " ".join(plans)
    again = run_command(name, preset, seeds, results, corpus, only)
    said = f"interrupted; {kept:,} of {pieces_of_work(wanted)} are kept in {results}. Go on with: {again}"
    err.print(said, markup=False, highlight=False, soft_wrap=True)


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
    results: Results = RESULTS,
    corpus: Corpus = None,
    page: Annotated[Path, typer.Option("--out", help="The page to write; Markdown is written beside it.")] = Path(
        "lab-report.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page, and Markdown, of all results."""
    beside = page.with_suffix(".md")
    for path in (page, beside):  # before a page is drawn that cannot be written
        _require_writable(path)
    found = sections(results, _preset(full), corpus)
    page.write_text(pages.as_html(found), encoding="utf-8")
    beside.write_text(pages.as_markdown(found), encoding="utf-8")
    if as_json:
        answers = {section.name: section.verdict.answer for section in found}
        told = [
            {
                "name": s.name,
                "preset": s.preset,
                "corpus": s.corpus,
                "answer": s.verdict.answer,
                "seeds": s.least,
                "missing": s.missing,
                "stale": s.stale,
                "shipped": s.results is None,
            }
            for s in found
        ]
        print_json({"written": [str(page), str(beside)], "answers": answers, "experiments": told})
        return
    if any(section.results is None for section in found):
        none = f"No rows of preset {_preset(full)} in {results}"
        say(f"{none}: these are the rows that ship with onelayer.{_others(full, results)}")
    count = len(found)
    say(f"{count} {'experiment' if count == 1 else 'experiments'} on {page} and {beside}")
    if old := sum(bool(section.stale) for section in found):
        say(f"{old} of {count} have rows of earlier code, marked stale, and say the command to run again.")


def _others(full: bool, results: Path) -> str:
    """Where to look for rows that are there, but not of this preset."""
    other: Preset = _preset(not full)
    there = any(next((results / name / other).glob("*.parquet"), None) for name in names())
    return f" Those of preset {other}: {report_command(other, results)}" if there else ""


def _require_writable(path: Path) -> None:
    if path.is_dir():
        raise FileError("lab", "a file to write", f"{path} is a folder", "Name a file in it.")
    if not path.parent.is_dir():
        remedy = f"Make it, with mkdir -p {shlex.quote(str(path.parent))}, or use another."
        raise FileError("lab", f"a folder for {path.name}", f"there is no folder {path.parent}", remedy)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise FileError("lab", f"to write {path}", "you have no permission to", "Use another folder.")


@app.command()
def ship(
    results: Results = RESULTS,
    folder: Annotated[
        Path, typer.Option("--into", help="Where files of rows lie that ship with the library.")
    ] = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Put rows beside those that ship with the library: runs of several days add up, newer ones replace older."""
    written = [str(path) for path in gather(results, folder)]
    if not written:
        raise FileError(
            "lab", f"rows in {results}", "there are none", f"Run: {run_command('NAME', 'quick', None, results)}"
        )
    if as_json:
        print_json({"written": written})
        return
    out.print("\n".join(written), highlight=False, markup=False)
