"""A certificate in words: what is claimed, under which assumptions, and what is not claimed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onelayer.certificates.algorithms import algorithm_in_words
from onelayer.certificates.certificate import LOOPED
from onelayer.certificates.folder import DATA, MODEL, CertifiedFolder, read_certified, read_files
from onelayer.certificates.names import FILE as NAMES
from onelayer.certificates.words import in_one_sentence, list_assumptions, not_claimed, sentence, target_of


def explain(folder: str | Path) -> str:
    """The statement of a certified folder, one sentence per claim. It says what is claimed, not that it is true."""
    return _explain_folder(read_certified(folder))


def explain_files(content: Mapping[str, bytes]) -> str:
    """The same for the files of a model that is not in a folder."""
    return _explain_folder(read_files(content))


def _explain_folder(found: CertifiedFolder) -> str:
    claims, data = found.claims, found.data
    if found.certificate["graph"]["template"] == LOOPED:
        return _of_sequences(found) if "tokens" in data else _of_algorithm(found)
    windows = "stream" in data
    sequences = len(data["stream"]) - int(data["window"][0]) + 1 if windows else len(data["tokens"])
    answers = len(data.get("which", data["answers"]))
    digests = {name: entry["sha256"][:16] for name, entry in found.certificate["files"].items()}
    lines = [
        in_one_sentence(claims, found.names, sequences, answers),
        f"{MODEL}: {sum(a.size for a in found.weights.values()):,} weights, sha256 {digests[MODEL]}...",
        f"{DATA}: {sequences:,} sequences, {answers:,} answers, sha256 {digests[DATA]}...",
        *(f"{NAMES}: sha256 {digest}..." for name, digest in digests.items() if name == NAMES),
        "",
        "Claimed (run `onelayer verify`, or `python -m onelayer_checker`, to have it decided):",
        *(f"  - {sentence(claim)}" for claim in claims),
        *(f"The target is {target}." for target in target_of(claims)),
        "Assumed:",
        *(f"  - {line}" for line in list_assumptions(claims)),
        "Not claimed:",
        *(f"  - {line}" for line in not_claimed(claims)),
    ]
    return "\n".join(lines)


def _of_sequences(found: CertifiedFolder) -> str:
    """The same for a layer of linear attention and the sequences that do, or do not, determine it."""
    digests = {name: entry["sha256"][:16] for name, entry in found.certificate["files"].items()}
    lines = [
        "This is one layer of linear attention, asked at the last token of a sequence.",
        f"{MODEL}: {sum(a.size for a in found.weights.values()):,} weights, sha256 {digests[MODEL]}...",
        f"{DATA}: {len(found.data['tokens']):,} sequences, sha256 {digests[DATA]}...",
        "",
        "Claimed (run `onelayer verify`, or `python -m onelayer_checker`, to have it decided):",
        *(f"  - {sentence(claim)}" for claim in found.claims),
        "Assumed:",
        *(f"  - {line}" for line in list_assumptions(found.claims)[1:]),
        "Not claimed:",
        *(f"  - {line}" for line in not_claimed(found.claims)),
    ]
    return "\n".join(lines)


def _of_algorithm(found: CertifiedFolder) -> str:
    """The same for a learner: no data is stored."""
    digest = found.certificate["files"][MODEL]["sha256"][:16]
    lines = [
        "This network is the algorithm below, on every prompt, in real arithmetic.",
        *algorithm_in_words(found.certificate),
        f"{MODEL}: {sum(a.size for a in found.weights.values()):,} weights, sha256 {digest}...",
        "",
        "Claimed (run `onelayer verify`, or `python -m onelayer_checker`, to have it decided):",
        *(f"  - {sentence(claim)}" for claim in found.claims),
        "Assumed:",
        *(f"  - {line}" for line in list_assumptions(found.claims)[1:]),
        "Not claimed:",
        *(f"  - {line}" for line in not_claimed(found.claims)),
    ]
    return "\n".join(lines)
