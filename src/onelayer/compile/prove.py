"""Proofs are made where models are made: always, never, or where that costs at most a few times the build."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from onelayer.certificates.certificate import certify_data
from onelayer.certificates.tolerance import Unproved
from onelayer.errors import OnelayerError
from onelayer.ledger import Constant
from onelayer.model import Model
from onelayer.problems.blocks import is_mapped

Array = NDArray[Any]
#: Operations that an unasked proof may take: a second or so, and a few microseconds for each answer.
FREELY, PER_ANSWER = 1.5e9, 2e4
#: Bytes of tokens that an unasked proof may read from disk into memory.
FROM_DISK = 1 << 28
ASK = "With certify=True the checker has no limit of time."


def certify_model(
    model: Model,
    certify: bool | None,
    data: Callable[[], dict[str, Array]],
    wrong: Callable[[], str],
    on_step: Callable[[str], None],
    tolerance: float | None = None,
) -> Model:
    """The model with its proof, and a line of the ledger that says so, or why there is none."""
    if certify is False:
        return without_proof(model, "not asked for; `certify` makes a proof")
    tensors = data()
    on_step("asking the checker")
    if certify or tolerance is not None:
        proof = certify_data(model, tensors, tolerance=tolerance, wrong=wrong)
    else:
        answers = len(tensors.get("which", tensors["answers"]))
        try:
            proof = certify_data(model, tensors, wrong=wrong, budget=FREELY + PER_ANSWER * answers)
        except Unproved as error:
            return without_proof(model, f"{error.found}. {error.remedy} {ASK}")
        except OnelayerError as error:  # names that no file holds, answers closer than their rounding
            return without_proof(model, f"{error.found}. {error.remedy}")
    why = f"{len(proof.claims)} claims, which the checker proved; `verify` asks it again"
    return model.with_notes(Constant("certified", True, why), certificate=proof)


def too_large(tokens: Array) -> str:
    """Why an unasked proof about these tokens is not begun; empty if it may be."""
    if not is_mapped(tokens) or tokens.nbytes <= FROM_DISK:
        return ""
    return f"the tokens are on disk, {tokens.nbytes:,} bytes, and a proof reads all of them into memory. {ASK}"


def without_proof(model: Model, why: str) -> Model:
    return model.with_notes(Constant("certified", False, why))
