"""Commands about functions: compile one into a layer with a proved error, and list those that have a name."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from onelayer.cli import approximation_table
from onelayer.cli.console import AsJson, Overwrite, err, out, print_json, progress, say
from onelayer.cli.exit_codes import ExitCode
from onelayer.cli.pictures import check_picture
from onelayer.compile.approximate import approximate as approximate_function
from onelayer.compile.approximate import construction_names
from onelayer.compile.refinement import refinements
from onelayer.export.bundle import check_target
from onelayer.interfaces import Function
from onelayer.measure import function_pictures
from onelayer.measure.worst_error import largest_error
from onelayer.model import Model
from onelayer.problems.targets import ZOO
from onelayer.problems.targets.expression import LANGUAGE

if TYPE_CHECKING:
    ConstructionName = str
else:  # what is registered, so that help lists it
    ConstructionName = Literal[tuple(construction_names())]
#: Seconds in which finer and coarser models may be built for a picture.
SECONDS = 20.0


def approximate(
    target: Annotated[
        str, typer.Argument(help='A name (`onelayer targets`) or a formula, "x - mean(y)".', show_default=False)
    ],
    n: Annotated[int, typer.Option("--n", min=1, help="Tokens of a sequence.", show_default=False)],
    tolerance: Annotated[float, typer.Option(help="How far the model may be from the target.", show_default=False)],
    d: Annotated[int, typer.Option("--d", min=1, help="Components of a token.")] = 1,
    low: Annotated[float, typer.Option(help="Every component is at least this.")] = 0.0,
    high: Annotated[float, typer.Option(help="Every component is at most this.")] = 1.0,
    construction: Annotated[
        ConstructionName, typer.Option(help="auto: the fewest parameters among those that reach the tolerance.")
    ] = "auto",
    relative: Annotated[
        bool, typer.Option("--relative", help="The tolerance is a share of the range of the target's values.")
    ] = False,
    allow_unproved: Annotated[
        bool, typer.Option("--allow-unproved", help="Keep a model that could not be proved; exit code 1.")
    ] = False,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Folder for the model and its certificate.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Also draw the target, the model and the error into this .png or .svg file.", show_default=False
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="How many inputs try to break the bound; a few thousand by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same target and seed give the same weights.")] = 0,
    dtype: Annotated[
        Literal["float32", "float64"], typer.Option(help="Arithmetic in which the model runs.")
    ] = "float32",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Compile a function into a one-layer model. Exit code 0 only if its error is proved to be within tolerance."""
    if out_dir is not None:
        check_target(out_dir, overwrite=overwrite)
    if plot is not None:
        check_picture(plot)
    box: dict[str, Any] = {"n": n, "d": d, "low": low, "high": high, "dtype": dtype, "seed": seed}
    box |= {"relative": relative, "allow_unproved": allow_unproved}
    with progress() as step:
        begun = time.perf_counter()
        model = approximate_function(target, tolerance=tolerance, construction=construction, on_step=step, **box)
        if samples is not None:
            model = measured_with(model, samples, seed)
        seconds = time.perf_counter() - begun
        if out_dir is not None:
            step("writing")
            model.save(out_dir, overwrite=overwrite)
        if plot is not None:
            step("drawing")
            figure = function_pictures.figure_of(model, lambda: refinements(model, SECONDS, step))
            figure.savefig(plot, dpi=150)
    print_result(model, out_dir, plot, seconds, as_json)


def print_result(model: Model, out_dir: Path | None, plot: Path | None, seconds: float, as_json: bool) -> None:
    """What was made and proved; the exit code says whether the tolerance was."""
    if as_json:
        print_json(describe_result(model, out_dir, seconds))
    else:
        approximation_table.show(out, model, seconds)
        where_it_is(model, out_dir)
    if plot is not None:
        err.print(f"picture written to {plot}", markup=False, highlight=False)
    if not model.error_bound <= model.interface_as(Function, "approximate").tolerance:
        err.print("no bound within the tolerance was proved", highlight=False)
        raise typer.Exit(ExitCode.NO)


def measured_with(model: Model, samples: int, seed: int) -> Model:
    """The model with the largest error that was found among this many inputs."""
    function = model.interface_as(Function, "approximate")
    found, _ = largest_error(model.errors, function.box, samples, seed)
    return replace(model, interface=replace(function, measured_error=found, samples=samples))


def where_it_is(model: Model, out_dir: Path | None) -> None:
    if out_dir is None:
        say("\nNothing was written; --out FOLDER keeps the model" + (" and its proof." if model.proved else "."))
    elif model.certificate is None:
        say(f"\nWritten to {out_dir}, without a certificate: nothing was proved.")
    else:
        say(f"\nWritten to {out_dir}. {len(model.certificate.claims)} claims certified. Re-check them with")
        say(f"  onelayer verify {out_dir}\n  python -m onelayer_checker {out_dir}")


def describe_result(model: Model, out_dir: Path | None, seconds: float) -> dict[str, Any]:
    t, function = model.target, model.interface_as(Function, "approximate")
    return {
        "model": None if out_dir is None else str(out_dir),
        "target": {"name": t.name, "kind": t.kind, "says": t.says, "n": t.n, "d": t.d, "outputs": t.components},
        "low": function.low,
        "high": function.high,
        "tolerance": function.tolerance,
        "construction": function.construction,
        "error_bound": model.error_bound if model.proved else None,
        "proved": model.proved,
        "assumes": function.assumes,
        "left_out": function.left_out,
        "measured_error": model.measured_error,
        "samples": function.samples,
        "parameters": model.n_parameters,
        "dtype": str(model.transformer.dtype),
        "seconds": seconds,
        "budget": model.budget.to_json(),
        "compared": [asdict(plan) for plan in function.compared],
        "claims": [] if model.certificate is None else list(model.certificate.verdicts),
        "ledger": model.ledger.to_json(),
    }


def targets(as_json: AsJson = False) -> None:
    """The functions that have a name; any other can be written as a formula."""
    if as_json:
        kept = ("name", "kind", "per", "says", "least", "parameter")
        print_json({"targets": [{key: getattr(named, key) for key in kept} for named in ZOO.values()]})
        return
    approximation_table.zoo(out)
    say(f'\nA formula will do as well, such as "x - mean(y)" or "x1*x2 + sin(x1)". {LANGUAGE}')
    say("x is the token whose answer is wanted, y runs over all tokens, x1 is the first token, x[0] a component.")
