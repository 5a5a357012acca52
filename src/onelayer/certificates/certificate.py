"""Writing a certificate: the checker is asked what it can prove, and just that is claimed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as save_tensors

from onelayer.certificates.folder import CERTIFICATE, DATA, MODEL
from onelayer.certificates.names import FILE as NAMES
from onelayer.certificates.names import Names, certifiable, names_of, to_bytes
from onelayer.certificates.tolerance import allowed_error, prove_claims
from onelayer.equality import EqualByContent
from onelayer.errors import HypothesisError
from onelayer.network import Transformer
from onelayer.network.blocks import evaluate
from onelayer_checker import Claim, Report, check

if TYPE_CHECKING:
    from onelayer.model import Model

Array = NDArray[Any]
Progress = Callable[[int, int], None]
#: Radii tried for a robust claim, each a quarter of the one before; and sequences on which the first is found.
TRIES, FEW = 4, 128
LARGEST = 2.0**1000
#: A margin that is asked for, before the one that is proved is claimed.
LEAST = 2.0**-100
#: Products up to which they are tried without a search.
DENSE = 1 << 30
FORMAT, TEMPLATE, LOOPED, PROFILE = "onelayer-certificate/2", "one-layer/1", "looped/1", "ieee-any-order/1"


@dataclass(frozen=True, eq=False)
class Certificate(EqualByContent):
    """Claims that the checker could prove when they were written, and the data they are about."""

    claims: tuple[dict[str, Any], ...]
    data: dict[str, Array]
    verdicts: tuple[str, ...]  # what the checker said of each claim; the files say it again to whoever asks
    names: Names  # in which words
    graph: dict[str, Any] | None = None  # of a looped network; None: that of one softmax layer

    def files(self, weights: bytes) -> dict[str, bytes]:
        """The files that go beside the weights."""
        content = {MODEL: weights, DATA: save_tensors(self.data), NAMES: to_bytes(self.names)}
        certificate = {
            "format": FORMAT,
            "graph": self.graph or {"template": TEMPLATE, "attention": "softmax", "causal": self.names["causal"]},
            "profile": PROFILE,
            "files": {
                name: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for name, c in content.items()
            },
            "claims": list(self.claims),
            "producer": {"name": "onelayer", "version": version("onelayer")},
        }
        return {DATA: content[DATA], NAMES: content[NAMES], CERTIFICATE: json.dumps(certificate, indent=1).encode()}


def judge_claims(
    transformer: Transformer,
    data: dict[str, Array],
    names: Names,
    entries: Iterable[dict[str, Any]],
    progress: Progress = lambda *_: None,
    claims: Iterable[Claim] | None = None,
    dense: bool = False,
    budget: float = float("inf"),
) -> Report:
    """What the checker says of a certificate with these entries, or of other claims; more can be asked of it."""
    weights = save_tensors({name: np.ascontiguousarray(a) for name, a in transformer.tensors()})
    certificate = Certificate(tuple(entries), data, (), names)
    files = {MODEL: weights, **certificate.files(weights)}
    report = check(files, progress=progress, claims=claims, dense=dense, budget=budget, memory=float("inf"))
    if report.result in ("MALFORMED", "UNFIT"):
        raise HypothesisError("memorize", "a model that the checker reads", report.why, "Report this as a bug.")
    return report


def certify_data(
    model: Model,
    tensors: dict[str, Array],
    progress: Progress = lambda *_: None,
    tolerance: float | None = None,
    wrong: Callable[[], str] = lambda: "",
    budget: float | None = None,
) -> Certificate:
    """Ask the checker to prove that this model gives these answers, and what else it can prove; claim that.

    The data is as the checker reads it (`certificates/data.py`). What is claimed:
    memorizes  in real arithmetic and in the model's dtype, and in 16 bits if it was made for them: classes
               exactly; reals to within ``tolerance``, without which it is the rounding to that dtype. What cannot
               be proved is an error that names the first wrong answer, or the bound that can be
    argmax     instead, of a model with logits: the output of the right class leads, by the margin that is proved
    separated  in real arithmetic, with the largest delta; left out if two contexts with equal answers coincide
    robust     in the model's dtype, for real tokens, with a radius in which no answer changes
    rejects    in the model's dtype, if it has a default: sequences put together at random that get it
    Within a ``budget`` of operations only memorizes and separated are tried.
    """
    scope, dtype, names = model.form.scope, model.arithmetic, certifiable(names_of(model))
    arithmetics = dict.fromkeys(("real", str(model.transformer.dtype), dtype))
    most = {"eps": allowed_error(model, tensors["answers"], tolerance)}
    kind, least = ("argmax", {"margin": LEAST}) if model.has_logits else ("memorizes", {"eps": 0.0})
    asked_for = [Claim(kind, arith, scope, least) for arith in arithmetics]
    entries = [claim.to_json() for claim in asked_for]
    report = judge_claims(model.transformer, tensors, names, entries, progress, [], budget=budget or float("inf"))
    if not model.has_logits:
        asked_for = [replace(claim, numbers=most) for claim in asked_for]
    stored = prove_claims(report, asked_for, wrong)
    if budget is not None or model.has_logits:  # that unknown inputs get the default is said of class numbers only
        tensors = {name: a for name, a in tensors.items() if name not in ("strangers", "default")}
    if "strangers" in tensors:
        few = tensors["strangers"].size * model.n_parameters <= DENSE  # then a dense check can afford it too
        asked = (
            judge_claims(model.transformer, tensors, names, [stored[0][0].to_json()], claims=[], dense=True)
            if few
            else report
        )
        tensors = _provable(tensors, asked, Claim("rejects", dtype, scope, {"eps": 0.0}))
    rejects = [Claim("rejects", dtype, scope, {"eps": 0.0})] if "strangers" in tensors else []
    eps = stored[-1][0].numbers.get("eps", 0.0)
    robust = _robust(report, model, tensors, eps) if budget is None else iter(())
    for further in (_widest_separation(report, scope), *robust, *rejects):
        if further is None or further.type in [claim.type for claim, _ in stored]:
            continue
        if further.type == "rejects":
            report = judge_claims(model.transformer, tensors, names, [further.to_json()], progress, [])
        if (verdict := report.judge(further)).outcome == "proved":
            stored.append((further, verdict))
    return Certificate(
        tuple(claim.to_json() for claim, _ in stored),
        tensors,
        tuple(f"{claim}: {verdict.outcome}, {verdict.why}" for claim, verdict in stored),
        names,
    )


def _widest_separation(report: Report, scope: str) -> Claim | None:
    """With about the largest delta that is proved."""
    least = float(np.finfo(np.float64).tiny)
    claim = Claim("separated", "real", scope, {"r": LARGEST, "delta": least})
    first = report.judge(claim)
    if first.outcome != "proved" or first.value == np.inf:  # infinite: there is one class, and nothing to separate
        return None
    r = first.size
    if first.value > least:  # on a line it shows the smallest gap at once
        return replace(claim, numbers={"r": r, "delta": first.value})
    for k in range(15, 60):  # larger ones would compare nearly all pairs
        further = replace(claim, numbers={"r": r, "delta": r * 2.0**-k})
        if report.judge(further).outcome == "proved":
            return further
    return None


def _robust(report: Report, model: Model, tensors: dict[str, Array], eps: float) -> Iterator[Claim]:
    """Radii, the first found on the sequences whose coordinates come closest; one that is proved is claimed."""
    kinds = [type(layer).__name__ for layer in model.transformer.readout]
    real = "tokens" in tensors and tensors["tokens"].dtype != np.int64
    if not real or kinds != ["Linear", "Linear", "Grouped", "Linear"]:
        return
    few = _closest(model, tensors)
    claim = Claim("robust", str(model.transformer.dtype), model.form.scope, {"radius": 0.0, "eps": eps})
    radius = float(np.abs(tensors["tokens"]).max())
    for step in (2.0**-16, 2.0**-4, 2.0**-1):  # down by this factor until proved, then back up one step, and finer
        tried = radius
        while tried > 2.0**-200 * radius and not _holds(report, claim, tried, few):
            tried *= step
        radius = tried / step
    for k in range(TRIES if radius > 0 else 0):
        yield replace(claim, numbers={"radius": radius * 0.5 * 0.25**k, "eps": eps})


def _holds(report: Report, claim: Claim, radius: float, few: Array) -> bool:
    return report.judge(replace(claim, numbers=claim.numbers | {"radius": radius}), few).outcome == "proved"


def _closest(model: Model, tensors: dict[str, Array]) -> Array:
    """Sequences with a first coordinate nearest to that of another sample, and some others."""
    head = replace(model.transformer, readout=model.transformer.readout[:1])
    tokens, lengths = tensors["tokens"], tensors.get("lengths")
    t = evaluate(head, tokens, lengths)[..., 0]
    if lengths is not None:
        t = np.where(np.arange(t.shape[1]) < lengths[:, None], t, np.nan)
    order = np.argsort(t, axis=None, kind="stable")  # NaN comes last
    gaps = np.diff(t.ravel()[order].astype(np.float64))
    near = np.argsort(np.where(gaps > 0, gaps, np.inf), kind="stable")[:FEW]
    spread = np.linspace(0, len(tokens) - 1, FEW).astype(int)
    return np.unique(np.concatenate([order[near] // t.shape[1], order[near + 1] // t.shape[1], spread]))


def _provable(tensors: dict[str, Array], report: Report, claim: Claim) -> dict[str, Array]:
    """Without the unknown inputs that the checker cannot see rejected, say on a ramp between two cells."""
    parts, kept = [np.arange(len(tensors["strangers"]))], []
    while parts:
        part = parts.pop()
        if report.judge(claim, part).outcome == "proved":
            kept.append(part)
        elif len(part) > 1:
            parts += np.array_split(part, 2)
    rest = {name: a for name, a in tensors.items() if name not in ("strangers", "default")}
    if not kept:
        return rest
    unknown = tensors["strangers"][np.sort(np.concatenate(kept))]
    return rest | {"strangers": np.ascontiguousarray(unknown), "default": tensors["default"]}
