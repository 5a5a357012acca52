"""A certificate in words: what is claimed, under which assumptions, and what is not claimed."""

from __future__ import annotations

from pathlib import Path

from onelayer.certify.words import assumed, not_claimed, sentence, target_of
from onelayer.errors import HypothesisError
from onelayer_checker.claims import read_claim
from onelayer_checker.files import DATA, MODEL, Malformed, read_folder


def explain(folder: str | Path) -> str:
    """The statement of a certified folder, one sentence per claim. It says what is claimed, not that it is true."""
    try:
        certificate, weights, data = read_folder(Path(folder))
        claims = [read_claim(entry, f"claims[{i}]") for i, entry in enumerate(certificate["claims"])]
    except (Malformed, KeyError, TypeError) as error:
        remedy = "Write it with `onelayer memorize` or `onelayer approximate`."
        raise HypothesisError("data", f"a certified bundle at {folder}", str(error), remedy) from None
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
        *(f"The target is {target}." for target in target_of(claims)),
        "Assumed:",
        *(f"  - {line}" for line in assumed(claims)),
        "Not claimed:",
        *(f"  - {line}" for line in not_claimed(claims)),
    ]
    return "\n".join(lines)
