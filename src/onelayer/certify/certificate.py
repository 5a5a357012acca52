"""Writing a certificate: the checker's own judge is asked what it can prove, and just that is claimed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as save_tensors

from onelayer.data.answers import Answers, read_answers
from onelayer.data.sequences import Sequences
from onelayer.errors import HypothesisError
from onelayer.memory import Memory
from onelayer_checker.claims import Claim, Judge, Progress, Verdict
from onelayer_checker.data import Data, read_data
from onelayer_checker.files import CERTIFICATE, DATA, MODEL
from onelayer_checker.kernel import ARITHMETICS
from onelayer_checker.network import Network, build

Array = NDArray[Any]
#: Radii tried for a robust claim, each a quarter of the one before.
TRIES = 4
#: Unknown sequences that a model with a default is tried on.
STRANGERS = 256
FORMAT, TEMPLATE, PROFILE = "onelayer-certificate/1", "one-layer/1", "ieee-any-order/1"


@dataclass(frozen=True)
class Certificate:
    """Claims that the checker could prove when they were written, and the data they are about."""

    claims: tuple[dict[str, Any], ...]
    data: dict[str, Array]
    verdicts: tuple[str, ...]  # what the checker said of each claim; the files say it again to whoever asks
    causal: bool = False

    def files(self, weights: bytes, version: str) -> dict[str, bytes]:
        """The files that go beside the weights."""
        content = {MODEL: weights, DATA: save_tensors(self.data)}
        certificate = {
            "format": FORMAT,
            "graph": {"template": TEMPLATE, "attention": "softmax", "causal": self.causal},
            "profile": PROFILE,
            "files": {
                name: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for name, c in content.items()
            },
            "claims": list(self.claims),
            "producer": {"name": "onelayer", "version": version},
        }
        return {DATA: content[DATA], CERTIFICATE: json.dumps(certificate, indent=1).encode()}


def certify(
    model: Memory, X: Any, Y: Any, lengths: Any = None, *, progress: Progress = lambda *_: None
) -> Certificate:
    """Ask the checker what it can prove of this model on this data, and claim that.

    memorizes  in real arithmetic and in the model's dtype, with the smallest eps it could prove (0 for classes)
    separated  in real arithmetic, with the largest delta; left out if two contexts with equal answers coincide
    robust     in the model's dtype, for real tokens, with a radius in which no answer changes
    rejects    in the model's dtype, if it has a default: sequences put together at random that get it
    """
    sequences = model.read(X, lengths)
    answers = read_answers(Y, sequences, model.form.scope)
    return certify_data(model, _data(model, sequences, answers) | _strangers(model, sequences), progress)


def certify_data(model: Memory, tensors: dict[str, Array], progress: Progress = lambda *_: None) -> Certificate:
    """The same for data as the checker reads it: tokens or the windows of a stream, and rows of answers."""
    causal = model.transformer.attention.causal
    network = build({name: np.asarray(array) for name, array in model.transformer.tensors()}, causal)
    data = read_data(tensors, network)
    if data.strangers is not None:
        tensors = _provable(tensors, network, data.strangers, str(model.transformer.dtype), model.form.scope)
        data = read_data(tensors, network)
    judge, scope, dtype = Judge(network, data, progress), model.form.scope, str(model.transformer.dtype)
    claims: list[Claim] = []
    verdicts: list[Verdict] = []
    for arith in ("real", dtype):
        proved = _memorizes(judge, arith, scope)
        claims.append(proved[0])
        verdicts.append(proved[1])
    eps = claims[-1].numbers["eps"]
    unknown = [] if data.strangers is None else [Claim("rejects", ARITHMETICS[dtype], scope, {"eps": 0.0})]
    for further in (_separated(judge, scope), *_robust(judge, network, data, dtype, scope, eps), *unknown):
        if further is None or further.type in [claim.type for claim in claims]:
            continue
        if (verdict := judge.judge(further)).outcome == "proved":
            claims.append(further)
            verdicts.append(verdict)
    return Certificate(
        tuple(_as_text(claim) for claim in claims),
        tensors,
        tuple(
            f"{claim}: {verdict.outcome}, {verdict.why}" for claim, verdict in zip(claims, verdicts, strict=True)
        ),
        causal,
    )


def _strangers(model: Memory, sequences: Sequences) -> dict[str, Array]:
    """Sequences put together of stored tokens at random that get the default, all tokens of them."""
    if "default" not in model.ledger:
        return {}
    default = np.array(model.ledger["default"], np.float64)
    rng = np.random.default_rng(0)
    n = sequences.n if sequences.lengths is None else int(sequences.lengths.min())
    at = rng.integers(0, sequences.N, (STRANGERS, n)), rng.integers(0, n, (STRANGERS, n))
    tokens = sequences.tokens[at]
    outputs = model.outputs(Sequences(tokens, None, sequences.vocabulary))
    rejected = (outputs == default.astype(outputs.dtype)).all(axis=(1, 2))
    if not rejected.any():
        return {}
    kept = tokens[rejected].astype(model.transformer.dtype) if sequences.is_real else tokens[rejected]
    return {"strangers": np.ascontiguousarray(kept), "default": default}


def _provable(
    tensors: dict[str, Array], network: Network, strangers: Data, dtype: str, scope: str
) -> dict[str, Array]:
    """Without the strangers that the checker cannot see rejected, say on a ramp between two cells."""
    samples = Judge(network, strangers, lambda *_: None).samples(ARITHMETICS[dtype], scope)
    with np.errstate(all="ignore"):
        out = network.readout.apply(samples.t, ARITHMETICS[dtype])
    open_ = (out.r != 0).any(axis=1) | (out.m != tensors["default"]).any(axis=1)
    kept = np.setdiff1d(samples.i, samples.i[open_])
    rest = {name: a for name, a in tensors.items() if name not in ("strangers", "default")}
    if not kept.size:
        return rest
    return rest | {"strangers": np.ascontiguousarray(tensors["strangers"][kept]), "default": tensors["default"]}


def _data(model: Memory, sequences: Sequences, answers: Answers) -> dict[str, Array]:
    """The data as the model sees it: tokens in its dtype (or ids), answers as rows of numbers."""
    tokens = sequences.tokens.astype(model.transformer.dtype, copy=False) if sequences.is_real else sequences.tokens
    rows = answers.rows
    if answers.form.classes is not None and answers.form.classes != model.form.classes:
        rows = _recoded(rows, answers, model)
    data = {"tokens": np.ascontiguousarray(tokens), "answers": np.ascontiguousarray(rows)}
    if sequences.lengths is not None:
        data["lengths"] = sequences.lengths
    return data


def _recoded(rows: Array, answers: Answers, model: Memory) -> Array:
    """Classes by the model's own numbering, when only part of the data is certified."""
    assert answers.form.classes is not None
    index = {name: i for i, name in enumerate(model.form.classes or ())}
    unknown = [name for name in answers.form.classes if name not in index]
    if unknown:
        raise HypothesisError(
            "memorize",
            "answers that the model knows",
            f"{unknown[0]!r} is none of its classes",
            "Certify its own data.",
        )
    codes = np.array([index[name] for name in answers.form.classes], np.float64)
    return codes[rows[:, 0].astype(np.int64)][:, None]


def _memorizes(judge: Judge, arith: str, scope: str) -> tuple[Claim, Verdict]:
    """With eps = 0 if that can be proved, else with what the checker found."""
    claim = Claim("memorizes", ARITHMETICS[arith], scope, {"eps": 0.0})
    verdict = judge.judge(claim)
    if verdict.outcome != "proved":
        loose = Claim("memorizes", ARITHMETICS[arith], scope, {"eps": np.finfo(np.float64).max})
        bound = judge.judge(loose)
        if bound.outcome == "proved":
            claim = Claim("memorizes", ARITHMETICS[arith], scope, {"eps": bound.value})
            verdict = judge.judge(claim)
    if verdict.outcome != "proved":
        raise HypothesisError(
            "memorize",
            f"answers that the checker can prove in {arith}",
            f"it says {verdict.outcome}: {verdict.why}",
            "Certify the data that the model memorised; other readouts than plateaus may not be provable.",
        )
    return claim, verdict


def _separated(judge: Judge, scope: str) -> Claim | None:
    samples = judge.samples(ARITHMETICS["real"], scope)
    r = float(np.maximum(np.abs(samples.t.low), np.abs(samples.t.high)).max())
    delta = np.finfo(np.float64).tiny
    # The first shows the gap of ids on a line; with more coordinates, larger ones would compare nearly all pairs.
    first = 4 if samples.t.m.shape[1] == 1 else 15
    for wanted in (delta, *(r * 2.0**-k for k in range(first, 60))):
        claim = Claim("separated", ARITHMETICS["real"], scope, {"r": r, "delta": wanted})
        verdict = judge.judge(claim)
        if verdict.outcome != "proved" and wanted == delta:
            return None
        if verdict.outcome == "proved" and verdict.value > delta:
            return claim if wanted != delta else replace(claim, numbers={"r": r, "delta": verdict.value})
    return None


def _robust(judge: Judge, network: Network, data: Data, arith: str, scope: str, eps: float) -> Iterator[Claim]:
    """Radii from how fast the balls of the coordinates grow, and how much room each has; the first that is proved
    is claimed."""
    A, hots = ARITHMETICS[arith], network.readout.hots.get(0)
    if data.tokens.dtype == np.int64 or hots is None or len(network.readout.layers) != 3 or len(hots.families) > 1:
        return
    plateaus = hots.families[0][1]
    still = judge.samples(A, scope)
    group = plateaus.decide(still.t, A)
    room = np.minimum(plateaus.on_high[group] - still.t.high, still.t.low - plateaus.on_low[group]).min(axis=1)
    trial = float(np.abs(data.tokens).max()) * 2.0**-30
    moved = judge.samples(A, scope, trial)
    growth = ((moved.t.r - still.t.r) / trial).max(axis=1)
    with np.errstate(divide="ignore"):
        radius = 0.5 * float((room / growth).min())
    for _ in range(TRIES if 0 < radius < np.inf else 0):  # other plateaus may be nearer than the end of one's own
        yield Claim("robust", A, scope, {"radius": radius, "eps": eps})
        radius /= 4


def _as_text(claim: Claim) -> dict[str, str]:
    numbers = {name: float(value).hex() for name, value in claim.numbers.items()}
    return {"type": claim.type, "arith": claim.arith.name, "scope": claim.scope, **numbers}
