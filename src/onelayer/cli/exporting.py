"""The command `export`: a model as other libraries read it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from onelayer.cli.console import AsJson, Model, Overwrite, print_json, progress, say
from onelayer.cli.sharded import refuse_shards
from onelayer.errors import FileError
from onelayer.model import load

To = Literal["torch", "onnx", "hf", "transformer-lens"]
#: The name of what is written, if none is given, and how it is opened.
SUFFIXES: dict[To, str] = {"torch": ".pt", "onnx": ".onnx", "hf": "-hf", "transformer-lens": "-hf"}
OPENED: dict[To, str] = {
    "torch": "torch.jit.load({out!r})(tokens)",
    "onnx": "onnxruntime.InferenceSession({out!r}).run(None, {{'tokens': tokens}})",
    "hf": "import onelayer.hf, transformers; transformers.{head}.from_pretrained({out!r})",
    "transformer-lens": "onelayer.to_transformer_lens(onelayer.load({out!r}))",
}


def export(
    model: Model,
    to: Annotated[To, typer.Option("--to", help="The library that is to open it.", show_default=False)],
    out_path: Annotated[
        Path | None, typer.Option("--out", help="File, or folder for hf.", show_default="beside the model")
    ] = None,
    padding: Annotated[
        Literal["lengths", "attention_mask"], typer.Option(help="With onnx: how padding is given.")
    ] = "lengths",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a model for PyTorch (TorchScript), ONNX, Hugging Face or TransformerLens, and say how it is opened."""
    refuse_shards(model)
    out = out_path or model.with_name(model.name + SUFFIXES[to])
    if out.exists() and not overwrite:
        raise FileError("file", f"a new file or folder for the export at {out}", "it exists", "Pass --overwrite.")
    head = ""
    with progress() as step:
        step("reading")
        memory = load(model)
        step("writing")
        if to == "torch":
            from onelayer.export.torch import to_torch  # says which package is missing

            to_torch(memory)
            from onelayer.export.torchscript import to_torchscript

            to_torchscript(memory, out)
        elif to == "onnx":
            from onelayer.export.onnx import to_onnx

            to_onnx(memory, out, padding)
        else:
            from onelayer.hf import head_of, to_hf

            head = f"AutoModelFor{head_of(memory)}"
            to_hf(memory, out, overwrite=overwrite)
    opened = OPENED[to].format(out=str(out), head=head)
    print_json({"written": str(out), "opened": opened}) if as_json else say(
        f"written to {out}; in Python: {opened}"
    )
