"""Commands about learners: list them, build one, and let one learn from a file of examples."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from onelayer.cli.console import AsJson, Overwrite, err, out, print_json, progress, say
from onelayer.compile.attention import identify as identify_sequences
from onelayer.compile.learner import learner as build_learner
from onelayer.errors import DataError, FileError, OptionError, files_in_words
from onelayer.export.bundle import check_target
from onelayer.interfaces import Examples
from onelayer.learners.registry import LEARNERS
from onelayer.model import Model, load

Array = NDArray[Any]
Name = Annotated[str, typer.Argument(help="A learner (`onelayer learners` lists them).", show_default=False)]
Steps = Annotated[int | None, typer.Option(min=1, help="Loops of the block.", show_default=False)]
Tolerance = Annotated[
    float | None,
    typer.Option(
        help="How near the answers must be to the limit, for all examples of the box.", show_default=False
    ),
]
Penalty = Annotated[float | None, typer.Option(help="The penalty beside the mean loss, if the learner has one.")]
Low = Annotated[float, typer.Option(help="Every component of an example is at least this.")]
High = Annotated[float, typer.Option(help="Every component of an example is at most this.")]
More = Annotated[
    list[str] | None, typer.Option("--set", help="A further option, eta=0.1. May be repeated.", show_default=False)
]
Dtype = Annotated[Literal["float32", "float64"], typer.Option(help="Arithmetic in which the model runs.")]


def learners(as_json: AsJson = False) -> None:
    """The learning algorithms that have a name: their statement, kind of attention and options."""
    if as_json:
        rows = [
            {
                "name": name,
                "statement": entry.statement.label,
                "says": entry.statement.says,
                "standing": entry.statement.standing,
                "differs": entry.statement.differs,
                "attention": entry.attention,
                "proves": entry.proves,
                "options": list(entry.options),
            }
            for name, entry in LEARNERS.items()
        ]
        print_json({"learners": rows})
        return
    table = Table(box=None, pad_edge=False)
    for column in ("learner", "statement", "standing", "attention", "proved", "options"):
        table.add_column(column, overflow="fold")
    for name, entry in LEARNERS.items():
        options = ", ".join(entry.options)
        table.add_row(name, entry.statement.label, entry.statement.standing, entry.attention, entry.proves, options)
    out.print(table)


def learner(
    name: Name,
    d: Annotated[int, typer.Option("--d", min=1, help="Components of an example.")] = 1,
    outputs: Annotated[int, typer.Option(min=1, help="Components of an answer.")] = 1,
    steps: Steps = None,
    tolerance: Tolerance = None,
    penalty: Penalty = None,
    low: Low = -1.0,
    high: High = 1.0,
    largest: Annotated[float, typer.Option(help="Answers are at most this, in magnitude.")] = 1.0,
    dtype: Dtype = "float64",
    more: More = None,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Folder for the model and its certificate.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Compile a learning algorithm into a looped layer, and have it proved that the network is the algorithm."""
    if out_dir is not None:
        check_target(out_dir, overwrite=overwrite)
    given = options_of(more) | ({} if penalty is None else {"penalty": penalty})
    box: dict[str, Any] = {"d": d, "outputs": outputs, "low": low, "high": high, "largest": largest}
    with progress() as step:
        step("building")
        model = build_learner(name, steps=steps, tolerance=tolerance, dtype=dtype, **box, **given)
        if out_dir is not None:
            step("writing")
            model.save(out_dir, overwrite=overwrite)
    if as_json:
        print_json(describe_learner(model, out_dir))
        return
    say(f"{model.interface.describe()}: {model.describe()}")
    for verdict in () if model.certificate is None else model.certificate.verdicts:
        say(verdict)
    if model.certificate is None:
        say("Nothing was proved: it would take too long.")
    where = f"Written to {out_dir}; `onelayer verify {out_dir}` asks the checker again." if out_dir else ""
    say(where or "Nothing was written; --out FOLDER keeps the model and its proof.")


def learn(
    name: Annotated[str, typer.Argument(help="A learner, or a folder that holds one.", show_default=False)],
    examples: Annotated[Path, typer.Argument(help="A .csv of numbers; the last column is y.", show_default=False)],
    query: Annotated[
        Path, typer.Option("--query", help="A .csv of the same columns without y.", show_default=False)
    ],
    steps: Steps = None,
    tolerance: Tolerance = None,
    penalty: Penalty = None,
    more: More = None,
    as_json: AsJson = False,
) -> None:
    """Let a learner read examples and answer queries: predictions, one a line, and what is proved of them."""
    table, queries = numbers(examples), numbers(query)
    X, y = table[:, :-1], table[:, -1]
    begun = time.perf_counter()
    if Path(name).is_dir():
        model = load(name)
        model.interface_as(Examples, "learn")
    else:
        reach = max([1.0, *np.abs(X).ravel(), *np.abs(queries).ravel()])
        given = options_of(more) | ({} if penalty is None else {"penalty": penalty})
        box: dict[str, Any] = {"low": -reach, "high": reach, "largest": max(1.0, float(np.abs(y).max()))}
        model = build_learner(name, d=max(1, X.shape[1]), steps=steps, tolerance=tolerance, **box, **given)
    if model.interface_as(Examples, "learn").reads == "series":
        needs, found = "a learner that reads examples", f"{name} forecasts a series"
        raise OptionError("learn", needs, found, "Use it in Python: onelayer.learner(...).predict(series).")
    answers = model.predict(X, y, queries)
    if as_json:
        seconds = time.perf_counter() - begun
        print_json(describe_learner(model, None) | {"predictions": answers.tolist(), "seconds": seconds})
        return
    for answer in answers:
        say(f"{float(answer)!r}")
    bound = model.error_bound
    proved = model.interface.describe() + (", as the checker proved" if model.proved else "")
    within = f" (proved in real arithmetic, within {bound:.4g})" if np.isfinite(bound) else ""
    err.print(f"{proved}{within}", markup=False, highlight=False)


def identify(
    sequences: Annotated[Path, typer.Argument(help="A .npz or .npy of tokens [N, n, d].", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Whether sequences determine the linear attention layer that fits them: a proved bound, or a second layer."""
    with files_in_words(sequences):
        try:
            held = np.load(sequences, allow_pickle=False)
        except ValueError:  # NumPy takes what it does not know for pickled objects
            needs = f"an array [N, n, d] of numbers in {sequences}, as .npz or .npy"
            raise FileError("file", needs, "it is neither", "Write it by np.savez.") from None
    array = held if isinstance(held, np.ndarray) else held[held.files[0]]
    found = identify_sequences(array)
    witness = found.witness
    if as_json:
        apart = None if witness is None else {"eps": witness.eps, "delta": witness.delta, "at": witness.at.tolist()}
        print_json(
            {"identified": bool(found), "bound": found.bound, "eigenvalue": found.eigenvalue, "witness": apart}
        )
    elif found:
        say(f"These {len(array):,} sequences determine a layer of linear attention: the least eigenvalue of their")
        say(f"features is {found.eigenvalue:.6g}, proved to be at least {found.bound:.6g}.")
    elif witness is not None:
        heads = witness.transformer.attention.heads
        say(f"These {len(array):,} sequences do not determine a layer (proved): one of {heads} heads is")
        say(f"within {witness.eps:.2g} of the zero layer on all of them, {witness.delta:.4g} away elsewhere.")
    else:
        say(f"Nothing was proved; the least eigenvalue is {found.eigenvalue:.3g}.")


def describe_learner(model: Model, out_dir: Path | None) -> dict[str, Any]:
    interface = model.interface_as(Examples, "learner")
    return {
        "model": None if out_dir is None else str(out_dir),
        "learner": interface.learner,
        "words": interface.words,
        "proved": model.proved,
        "error_bound": model.error_bound if np.isfinite(model.error_bound) else None,
        "parameters": model.n_parameters,
        "dtype": str(model.transformer.dtype),
        "claims": [] if model.certificate is None else list(model.certificate.verdicts),
        "ledger": model.ledger.to_json(),
    }


def options_of(more: list[str] | None) -> dict[str, Any]:
    """Options written as name=value; numbers where they are numbers."""
    found: dict[str, Any] = {}
    for text in more or []:
        key, equal, value = text.partition("=")
        if not equal or not key.isidentifier():
            raise OptionError("learner", "options such as eta=0.1", f"--set {text!r:.40}", "Write name=value.")
        try:
            found[key] = int(value) if value.lstrip("-").isdigit() else float(value)
        except ValueError:
            found[key] = {"true": True, "false": False}.get(value.lower(), value)
    return found


def numbers(path: Path) -> Array:
    """The rows of a .csv file as numbers; a first row of names is left out."""
    with files_in_words(path):
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines()) if row]
    if rows and not _all_numbers(rows[0]):
        rows = rows[1:]
    if not rows:
        raise FileError("file", f"rows of numbers in {path}", "there are none", "Give one example a line.")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]) or not _all_numbers(row):
            found = f"row {i + 1} is {','.join(row)!r:.60}"
            raise DataError("data", f"{len(rows[0])} numbers in every row of {path}", found, "Correct that row.")
    return np.array([[float(cell) for cell in row] for row in rows])


def _all_numbers(row: list[str]) -> bool:
    try:
        return all(np.isfinite(float(cell)) for cell in row)
    except ValueError:
        return False
