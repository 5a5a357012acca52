"""A certificate in words: what is claimed, under which assumptions, and what is not claimed."""

from __future__ import annotations

from pathlib import Path

from onelayer.errors import HypothesisError
from onelayer_checker.claims import Claim, read_claim
from onelayer_checker.files import DATA, MODEL, Malformed, read_folder

ARITHMETIC = {
    "real": "in real arithmetic",
    "float64": "as executed in IEEE float64, in any order of summation, fused or not",
    "float32": "as executed in IEEE float32, in any order of summation, fused or not",
}
ASSUMED = (
    "float arithmetic follows the profile ieee-any-order/1: IEEE 754 with round to nearest, exp within 32 units in "
    "the last place, a softmax that subtracts the maximum; no TF32, no bfloat16 products, no folded weights",
    "this machine's float64 is IEEE with gradual underflow (the checker probes it), and NumPy computes with it",
    "SHA-256 has no collision between the files certified and the files checked",
)
NOT_CLAIMED = (
    "anything about inputs that are neither stored, nor within the radius of one that is, nor listed as strangers",
    "that the answers are true: only that they are the ones stored in data.safetensors",
)


def explain(folder: str | Path) -> str:
    """The statement of a certified folder, one sentence per claim. It says what is claimed, not that it is true."""
    try:
        certificate, weights, data = read_folder(Path(folder))
        claims = [read_claim(entry, f"claims[{i}]") for i, entry in enumerate(certificate["claims"])]
    except (Malformed, KeyError, TypeError) as error:
        raise HypothesisError(
            "data", f"a certified bundle at {folder}", str(error), "Write it with `onelayer memorize`."
        ) from None
    windows = "stream" in data
    sequences = len(data["stream"]) - int(data["window"][0]) + 1 if windows else len(data["tokens"])
    answers = len(data.get("which", data["answers"]))
    digests = {name: certificate["files"][name]["sha256"][:16] for name in (MODEL, DATA)}
    lines = [
        f"{MODEL}: {sum(a.size for a in weights.values()):,} weights, sha256 {digests[MODEL]}...",
        f"{DATA}: {sequences:,} sequences, {answers:,} answers, sha256 {digests[DATA]}...",
        "",
        "Claimed (run `onelayer verify`, or `python -m onelayer_checker`, to have it decided):",
        *(f"  - {sentence(claim)}" for claim in claims),
        "Assumed:",
        *(f"  - {line}" for line in ASSUMED),
        "Not claimed:",
        *(f"  - {line}" for line in NOT_CLAIMED),
    ]
    return "\n".join(lines)


def sentence(claim: Claim) -> str:
    where, n = ARITHMETIC[claim.arith.name], claim.numbers
    exactly = "exactly the stored one" if n.get("eps") == 0 else f"within {n.get('eps', 0.0):.3g} of the stored one"
    each = {"token": "token", "sequence": "sequence", "last": "sequence's last token"}[claim.scope]
    if claim.type == "memorizes":
        return f"{where}, the answer at every stored {each} is {exactly}"
    if claim.type == "rejects":
        return f"{where}, every sequence listed as a stranger gets the default"
    if claim.type == "robust":
        return f"{where}, that holds too if every component of every token is moved by up to {n['radius']:.3g}"
    return (
        f"{where}, different contexts have coordinates at least {n['delta']:.3g} apart, and none exceeds "
        f"{n['r']:.3g}: one attention layer is a contextual mapping for this data"
    )
