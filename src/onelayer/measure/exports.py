"""Is an exported file the certified model? Its graph against the template, its weights bit for bit; and a replay.

If every weight is the certified one and the graph is the one `one-layer/1` is written as, a claim about any order
of evaluation covers the export. A replay only ever refutes: it runs the runtimes and demands the certified answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from onelayer.certificates.folder import read_certified
from onelayer.errors import MissingExtraError, OptionError
from onelayer.export.bundle import Parts, read
from onelayer.network.blocks import evaluate
from onelayer.problems.scopes import in_places
from onelayer.problems.targets import Program as Function
from onelayer_checker import Claim

Array = NDArray[Any]
#: Numbers of the widest layer that a replay may hold at a time.
REPLAYED = 1 << 27
RUNTIMES = ("numpy", "torch", "onnx")


def onnx_mismatch(folder: str | Path, path: str | Path) -> str:
    """What makes an ONNX file another model than the certified one; empty if nothing does."""
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("comparing an ONNX file", "onnx", "onnx") from None
    from onelayer.export.onnx import build

    try:
        found = onnx.load_model_from_string(Path(path).read_bytes())
    except Exception as error:  # protobuf raises its own kinds
        return f"{path} is not an ONNX model ({str(error)[:80]})"
    masked = any(taken.name == "attention_mask" for taken in found.graph.input)
    expected = build(read(folder).transformer, "attention_mask" if masked else "lengths")
    weights = {t.name: t for t in found.graph.initializer}
    if len(weights) != len(found.graph.initializer):
        return "two initialisers share a name"
    for wanted in expected.graph.initializer:
        tensor = weights.pop(wanted.name, None)
        if tensor is None:
            return f"the initialiser {wanted.name} is missing"
        if (tensor.data_type, list(tensor.dims), tensor.raw_data) != (
            wanted.data_type,
            list(wanted.dims),
            wanted.raw_data,
        ):
            return f"the initialiser {wanted.name} differs from the certified weights"
    if weights:
        return f"the initialiser {next(iter(weights))} is not part of the model"
    for i, (node, template) in enumerate(zip(found.graph.node, expected.graph.node, strict=False)):
        node.name = template.name = ""  # it is for people
        if node.SerializeToString(deterministic=True) != template.SerializeToString(deterministic=True):
            return f"node {i} is {node.op_type} ({', '.join(node.output)}), not the template's {template.op_type}"
    if len(found.graph.node) != len(expected.graph.node):
        return f"there are {len(found.graph.node)} nodes, the template has {len(expected.graph.node)}"
    for part in ("graph.input", "graph.output", "opset_import", "functions"):
        a, b = found, expected
        for name in part.split("."):
            a, b = getattr(a, name), getattr(b, name)
        if [x.SerializeToString(deterministic=True) for x in a] != [
            x.SerializeToString(deterministic=True) for x in b
        ]:
            return f"{part} differs from the template"
    return ""


def torch_mismatch(folder: str | Path, path: str | Path) -> str:
    """What makes a saved state dict, or a script, another model than the certified one; empty if nothing does."""
    torch = _torch("comparing a PyTorch file")
    from onelayer.export import torchscript
    from onelayer.export.torch import to_torch

    module = to_torch(read(folder).transformer)
    expected = module.state_dict()
    try:
        if torchscript.is_script(path):
            loaded = torchscript.load_script(path)
            if not torchscript.does_as(loaded, module):
                return "its code is not that of the certified model"
            found = loaded.state_dict()
        else:
            found = torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # unpickling refuses in many ways
        return f"{path} is not a state dict, nor a script ({str(error)[:80]})"
    if not isinstance(found, dict) or set(found) != set(expected):
        names = sorted(set(found) ^ set(expected)) if isinstance(found, dict) else [type(found).__name__]
        return f"the names differ: {', '.join(map(str, names[:3]))}"
    for name, wanted in expected.items():
        tensor = found[name]
        same = tensor.dtype == wanted.dtype and tensor.shape == wanted.shape
        if not same or tensor.contiguous().numpy().tobytes() != wanted.contiguous().numpy().tobytes():
            return f"{name} differs from the certified weights"
    return ""


def replay(folder: str | Path, runtimes: Iterable[str], most: int = 2_000) -> dict[str, str]:
    """Run stored sequences (at most ``most``, evenly spread) and demand the certified answers; or sequences of the
    box of a function, and demand to be near it.

    A line per runtime: empty, or the first answer outside its bound. This falsifies; it never proves.
    """
    model = read(folder)
    found = read_certified(folder)
    data, dtype = found.data, str(model.transformer.dtype)
    claims = [claim for claim in found.claims if claim.arith == dtype]
    stored = [claim for claim in claims if claim.type in ("memorizes", "argmax")]
    stored.sort(key=lambda claim: claim.numbers.get("eps", 0.0))
    near = [claim for claim in claims if claim.type in ("sup_error", "sup_error_everywhere")]
    if not stored and not near:
        raise OptionError(
            "data",
            f"a claim memorizes, argmax or sup_error in {dtype} to replay",
            "there is none",
            "Certify the model.",
        )
    widest = max(layer.width for layer in (*model.transformer.feedforward, *model.transformer.readout))
    asked = (
        _stored_questions(model, stored[0], data, most, widest) if stored else _near(near[0], data, most, widest)
    )
    said = {}
    for name in runtimes:
        out = _runner(name, model)(asked.tokens, asked.lengths)
        if stored and stored[0].type == "argmax":
            out = np.where(np.isfinite(out).all(axis=2), out.argmax(axis=2), np.nan)[..., None]
        off = np.nan_to_num(np.abs(out - asked.wanted).max(axis=2), nan=np.inf)
        off = np.where(asked.inside, off, 0.0)
        worst = np.unravel_index(int(np.argmax(off)), off.shape)
        at = f"{asked.what} {asked.numbers[worst[0]]}, token {worst[1]}"
        said[name] = "" if off.max() <= asked.allowed else f"{at} is off by {off.max():.3g}"
    return said


@dataclass(frozen=True)
class Asked:
    """Sequences to run, what they must answer, and how far off they may be."""

    tokens: Array
    lengths: Array
    wanted: Array  # [N, n, q]
    inside: Array  # [N, n] where it counts
    allowed: float
    what: str
    numbers: Array  # of the sequences, for people


def _stored_questions(model: Parts, claim: Claim, data: dict[str, Array], most: int, widest: int) -> Asked:
    windows = "stream" in data
    tokens = sliding_window_view(data["stream"], int(data["window"][0])) if windows else data["tokens"]
    lengths = data.get("lengths", np.full(len(tokens), tokens.shape[1], np.int64))
    most = max(4, min(most, REPLAYED // (tokens.shape[1] * widest), len(tokens)))
    some = np.unique(np.linspace(0, len(tokens) - 1, most).astype(int))
    rows = data["answers"] if "which" not in data else data["answers"][data["which"]]
    wanted = _answers(model, rows, lengths, tokens.shape[1], some)
    places = np.arange(tokens.shape[1])
    inside = (
        places == lengths[some][:, None] - 1
        if model.interface.form.scope == "last"
        else places < lengths[some][:, None]
    )
    eps = claim.numbers.get("eps", 0.0)
    return Asked(np.ascontiguousarray(tokens[some]), lengths[some], wanted, inside, eps, "sequence", some)


def _near(claim: Claim, data: dict[str, Array], most: int, widest: int) -> Asked:
    """Random sequences of the box, in stored cells if it has any; or just the stored ones of a target that nobody
    can evaluate, whose answers are such a target's values."""
    n, tokens, target = claim.numbers, data["tokens"], claim.target
    most = max(4, min(most, REPLAYED // (tokens.shape[1] * widest)))
    rng = np.random.default_rng(0)
    some = rng.permutation(len(tokens))[:most]
    if hasattr(target, "lines"):
        if claim.type == "sup_error":
            some = rng.integers(0, len(tokens), most)
            tokens = _perturb(tokens[some], n["radius"], rng)
        else:
            tokens = rng.uniform(n["low"], n["high"], (most, *tokens.shape[1:])).astype(tokens.dtype)
            tokens, some = (
                np.clip(tokens, *(tokens.dtype.type(n[side]) for side in ("low", "high"))),
                np.arange(most),
            )
        parts = target.n, target.d, target.lines, target.outputs
        wanted = Function(
            *parts, per="token" if target.per == "token" else "sequence", components=target.components
        ).evaluate(tokens)
    else:
        tokens = tokens[some]
        wanted = data["answers"].reshape(len(data["tokens"]), -1, data["answers"].shape[1])[some]
    wanted = wanted.reshape(len(tokens), -1, wanted.shape[-1])  # [N, n or 1, q]
    slack = 1e-12 * (1 + float(np.abs(wanted).max()))  # what evaluating the target in float64 may cost
    lengths = np.full(len(tokens), tokens.shape[1], np.int64)
    inside = np.ones(tokens.shape[:2], bool)
    what = "a sequence near stored sequence" if claim.type == "sup_error" else "random sequence"
    return Asked(tokens, lengths, wanted, inside, n["bound"] + slack, what, some)


def _perturb(tokens: Array, radius: float, rng: np.random.Generator) -> Array:
    """Every component somewhere within the radius, as numbers of the dtype; one that rounding takes out stays."""
    moved = (tokens + rng.uniform(-radius, radius, tokens.shape)).astype(tokens.dtype)
    return np.where(np.abs(moved.astype(np.float64) - tokens) <= radius, moved, tokens)


def _answers(model: Parts, rows: Array, lengths: Array, n: int, some: Array) -> Array:
    """Answers [some, n, q], padding zero."""
    if model.interface.form.scope != "token":
        return np.repeat(rows[some][:, None, :], n, axis=1)
    return in_places(rows, len(lengths), n, lengths)[some]


def _runner(name: str, model: Parts) -> Callable[[Array, Array], Array]:
    if name == "numpy":
        return lambda X, lengths: evaluate(model.transformer, X, lengths)
    if name == "torch":
        torch = _torch("replaying in PyTorch")
        from onelayer.export.torch import to_torch

        module = to_torch(model.transformer)

        def run(X: Array, lengths: Array) -> Array:
            with torch.no_grad():
                result: Array = module(torch.tensor(X), torch.tensor(lengths)).numpy()
            return result

        return run
    if name == "onnx":
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("replaying in ONNX Runtime", "onnxruntime", "onnx") from None
        from onelayer.export.onnx import build

        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 3  # no warning that lengths, which have a default, are no constant
        session = onnxruntime.InferenceSession(build(model.transformer).SerializeToString(), quiet)
        return lambda X, lengths: np.asarray(session.run(["outputs"], {"tokens": X, "lengths": lengths})[0])
    raise OptionError(
        "data", f"runtimes among {', '.join(RUNTIMES)}", f"{name!r} is not one of them", "Choose among them."
    )


def _torch(wanted_for: str) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError(wanted_for, "torch", "torch") from None
    return torch
