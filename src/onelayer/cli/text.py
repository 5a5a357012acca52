"""Commands about texts: compile one into a layer, and have it go on from a prompt."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from onelayer.cli import pictures
from onelayer.cli.console import AsJson, Overwrite, Seed, about, err, out, print_json, progress, say, written_out
from onelayer.cli.exit_codes import ExitCode
from onelayer.compile.text import CONTEXT, python_reference
from onelayer.compile.text import memorize_text as memorize
from onelayer.errors import OptionError
from onelayer.export.bundle import check_target
from onelayer.interfaces import NextToken
from onelayer.measure.recall import TextRecall, recall_text
from onelayer.model import Model, load

#: Tokens after which what has been recited is shown.
FLUSH = 64


def memorize_text(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(help="A text; without one, Python's own language reference.", show_default=False),
    ] = None,
    context: Annotated[int, typer.Option(help="Tokens in a window.")] = CONTEXT,
    tokenizer: Annotated[
        Literal["bytes", "bpe"],
        typer.Option(help="bytes: a token is a byte; bpe: byte pairs are learned from the text."),
    ] = "bytes",
    vocabulary_size: Annotated[
        int | None, typer.Option(help="With --tokenizer bpe: the largest number of tokens.", show_default=False)
    ] = None,
    false_hits: Annotated[
        float | None,
        typer.Option(
            help="Share of windows not in the text that may be continued; else all are.", show_default=False
        ),
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    certificate: Annotated[
        bool | None,
        typer.Option(help="Write a certificate beside the weights; by default where that is quick."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile a text into a one-layer next-token model, and ask for what follows every window."""
    check_target(out_dir, overwrite=overwrite)
    with progress() as step, nullcontext() if file is None else about(file):
        step("reading")
        text = python_reference().encode() if file is None else file
        model = memorize(
            text,
            context,
            seed,
            tokenizer=None if tokenizer == "bytes" else tokenizer,
            vocabulary_size=vocabulary_size,
            false_hits=false_hits,
            certify=certificate,
            on_step=step,
        )
        step("asking for what follows every window")
        measured = recall_text(model, text)
        step("writing")
        model.save(out_dir, overwrite=overwrite)
    _show(model, measured, file, out_dir, asked=certificate is not None, as_json=as_json)
    if not measured.perfect:
        err.print(f"the first wrong answer: {measured.first_wrong}", markup=False)
        raise typer.Exit(ExitCode.NO)


def _show(model: Model, measured: TextRecall, file: Path | None, out_dir: Path, asked: bool, as_json: bool) -> None:
    """What was written, measured and proved; ``asked``: whether a person chose if there is a certificate."""
    claims = [] if model.certificate is None else list(model.certificate.verdicts)
    if as_json:
        said = {"model": str(out_dir), "certain": measured.certain, "certain_right": measured.certain_right}
        said |= {"ambiguous": measured.ambiguous, "ambiguous_right": measured.ambiguous_right}
        print_json({**said, "claims": claims, "ledger": model.ledger.to_json()})
    else:
        say("Python's language reference" if file is None else file.name)
        pictures.summary(out, model)
        say(f"{measured} (measured). Written to {out_dir}")
        if claims:
            say(f"{len(claims)} claims certified. Re-check them with `onelayer verify {out_dir}`.")
        elif not asked:
            say(f"Not certified: {model.ledger.meaning('certified')}")


def recite(
    model: Annotated[
        Path, typer.Argument(help="A folder written by `onelayer memorize-text`.", show_default=False)
    ],
    prompt: Annotated[str | None, typer.Option(help="What to go on from.", show_default=False)] = None,
    prompt_file: Annotated[Path | None, typer.Option(help="The same, in a file.", show_default=False)] = None,
    length: Annotated[int, typer.Option(min=0, help="Tokens to recite.")] = 500,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw each token at random instead of taking the likeliest.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same draws.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Have a model of a text go on from a prompt: a passage of the text, at least as long as the context."""
    if (prompt is None) == (prompt_file is None):
        found = "there is none" if prompt is None else "there are two"
        raise OptionError("text", "one prompt", found, "Pass either --prompt or --prompt-file.")
    given = prompt_file.read_bytes() if prompt_file else (prompt or "").encode(errors="surrogateescape")
    with progress() as step:
        step("reading")
        memory = load(model)
        interface = memory.interface_as(NextToken, "recite")
        ids = interface.encode(given)
        step("looking up codes")
        pieces = memory.stream(ids, length, sampled=sample, seed=seed)
    if len(ids) < interface.context:
        err.print(
            f"the prompt has {len(ids)} tokens, a window {interface.context}: it is read as the text's beginning",
            highlight=False,
            soft_wrap=True,
        )
    if as_json:
        written = list(pieces)
        text, stopped = b"".join(written), len(written) < length
        said = {"text": text.decode(errors="backslashreplace"), "hex": text.hex(), "tokens": len(written)}
        print_json(said | {"stopped": stopped, "prompt_tokens": len(ids)})
        return
    count = 0
    with written_out():
        for count, piece in enumerate(pieces, 1):
            sys.stdout.buffer.write(piece)
            if count % FLUSH == 1:
                sys.stdout.buffer.flush()
        if sys.stdout.isatty():
            sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()
    if count < length:
        err.print(_say_stopped(count, interface), highlight=False, soft_wrap=True)
        if not count:
            raise typer.Exit(ExitCode.NO)


def _say_stopped(count: int, interface: NextToken) -> str:
    """Why there are fewer tokens than were asked for."""
    after = f"stopped after {count:,} tokens" if count else "nothing follows this prompt"
    left = "the text ends here, or this is not in it" if interface.default is not None else "the text ends here"
    return f"{after}: {left}"
