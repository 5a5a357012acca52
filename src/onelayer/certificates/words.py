"""Claims in words: one sentence each, what they take for granted, and what they leave open."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

from onelayer.certificates.names import Names
from onelayer.problems.targets.formula import formula
from onelayer_checker import Claim

ARITHMETIC = {
    "real": "in real arithmetic",
    "float64": "as executed in IEEE float64, in any order of summation, fused or not",
    "float32": "as executed in IEEE float32, in any order of summation, fused or not",
    "float16": "as executed in IEEE float16, in any order of summation, fused or not",
    "bfloat16": "as executed in bfloat16, in any order of summation, fused or not",
}
SHORTLY = {
    "real": "in real arithmetic",
    "float64": "as executed in IEEE float64 in any order",
    "float32": "as executed in IEEE float32 in any order",
    "float16": "as executed in IEEE float16 in any order",
    "bfloat16": "as executed in bfloat16 in any order",
}
ASSUMED = (
    "float arithmetic follows the profile ieee-any-order/1: IEEE 754 with round to nearest, exp within 32 units in "
    "the last place, a softmax that subtracts the maximum; no TF32, no bfloat16 products, no folded weights",
    "this machine's float64 is IEEE with gradual underflow (the checker probes it), and NumPy computes with it",
    "SHA-256 has no collision between the files certified and the files checked",
)
#: Characters of a formula that a sentence has room for.
SHORT = 160


def _of_learner(claim: Claim) -> str:
    """How near the answers of a learner are to those of its algorithm."""
    where, n = ARITHMETIC[claim.arith], claim.numbers
    if claim.type == "attends":
        return (
            f"{where}, the answer at every query is within {at_most(n['bound'])} of that of the algorithm, a "
            "kernel smoother, for any number of examples, all of them and the queries in "
            f"[{n['low']:.17g}, {n['high']:.17g}], and answers up to {n['y']:.17g} in magnitude"
        )
    return (
        f"{where}, the answer at every query is within {at_most(n['bound'])} of that of the algorithm in real "
        f"arithmetic, for up to {n['examples']:g} examples, components up to {n['x']:.17g} and answers up to "
        f"{n['y']:.17g} in magnitude, all of them numbers of that arithmetic"
    )


def sentence(claim: Claim) -> str:
    where, n = ARITHMETIC[claim.arith], claim.numbers
    if claim.type == "within":
        keep = n["a"] - n["b"]
        scale = n["eta"] if n["late"] else keep * n["eta"]
        penalty = (1 - keep) / scale if scale else float("inf")
        return (
            f"{where}, the answer at every query is that of the algorithm, and within {at_most(n['bound'])} of the "
            "answer <v, x> of ridge regression, v the minimiser of "
            f"mean (y - <v, x>)^2/2 + {penalty:.6g} |v|^2/2, for all examples and queries with components up to "
            f"{n['x']:.17g} and answers up to {n['y']:.17g} in magnitude"
        )
    if claim.type == "minimises":
        return (
            f"{where}, half the mean squared error over random tasks is at most {at_most(n['value'])}, and at most "
            f"{at_most(n['gap'])} above that of every linear attention layer with any number of heads: "
            f"{n['examples']:g} examples with components uniform on [-{n['half']:g}, {n['half']:g}], normal "
            f"weights of variance {n['weight']:g}, noise of variance {n['noise']:g}"
        )
    if claim.type == "selects":
        return (
            f"{where}, the answer at every query is that one of the two learners whose mean square over the judges "
            f"is smaller, exactly, wherever these means are at least {n['delta']:.6g} apart and the two answers "
            f"differ by at most {at_most(n['reach'])}"
        )
    if claim.type == "identifies":
        return (
            f"{where}, every layer of linear attention that fits the stored sequences equally well is the same "
            f"function: the least eigenvalue of the mean of H H^T, H the cubic features, is at least {n['mu']:.6g}"
        )
    if claim.type == "ambiguous":
        return (
            f"{where}, the second layer that is stored differs from this one by at most {at_most(n['eps'])} on all "
            f"stored sequences, and by at least {n['delta']:.6g} at the stored input"
        )
    if claim.type in ("attends", "rounds"):
        return _of_learner(claim)
    if claim.type == "equals":
        return (
            f"{where}, the answer at every query is that of the algorithm, for all examples and any number of them"
        )
    if claim.about_function:
        return f"{where}, {_of_function(claim)}"
    exactly = "exactly the stored one" if n.get("eps") == 0 else f"within {n.get('eps', 0.0):.3g} of the stored one"
    each = {"token": "token", "sequence": "sequence", "last": "sequence's last token"}[claim.scope]
    if claim.type == "memorizes":
        return f"{where}, the answer at every stored {each} is {exactly}"
    if claim.type == "argmax":
        right = f"the output of the stored class at every stored {each}"
        return f"{where}, {right} exceeds every other by at least {n['margin']:.6g}"
    if claim.type == "rejects":
        return f"{where}, every listed unknown sequence gets the default"
    if claim.type == "robust":
        return f"{where}, that holds too if every component of every token is moved by up to {n['radius']:.3g}"
    return (
        f"{where}, different contexts have coordinates at least {n['delta']:.3g} apart, and none exceeds "
        f"{n['r']:.3g}: one attention layer is a contextual mapping for this data"
    )


def in_one_sentence(claims: Sequence[Claim], names: Names | None, sequences: int, answers: int) -> str:
    """Whose answers, in which arithmetic, for which data; and what decides whether they are a person's own."""
    stored = [claim for claim in claims if claim.type in ("memorizes", "argmax")]
    about = stored or [claim for claim in claims if claim.about_function]
    where = " and ".join(dict.fromkeys(SHORTLY[claim.arith] for claim in about))
    if not about:
        return "That the stored answers come back is not claimed."
    if not stored:
        return (
            f"For inputs of a box, not for stored answers: the network is near the function named below, {where}."
        )
    eps = max(claim.numbers.get("eps", 0.0) for claim in stored)
    if names is None:
        under, answer = "under names that were not certified (version 1)", "number"
    else:
        under, answer = f"under {_say_names(names)}", "number" if names["answers"] is None else "class"
    each = {"token": "", "sequence": ", at all of their tokens", "last": ", at their last tokens"}[stored[0].scope]
    gives = f"exactly the stored {answer}" if eps == 0 else f"the stored {answer} to within {at_most(eps)}"
    return (
        f"For all {answers:,} answers of the {sequences:,} sequences stored in data.safetensors{each}, {under}, "
        f"the network gives {gives}, {where}; whether that is your file, `onelayer verify MODEL --data FILE` "
        "decides."
    )


def _say_names(names: Names) -> str:
    def count(listed: list[Any], words: str, others: str) -> str:
        return f"the {len(listed):,} {words if all(isinstance(name, str) for name in listed) else others}"

    if names["tokens"] is None and names["answers"] is None:
        return "no names but numbers"
    parts = [] if names["tokens"] is None else [count(names["tokens"], "words", "tokens")]
    parts += [] if names["answers"] is None else [count(names["answers"], "classes", "classes")]
    return f"{' and '.join(parts)} in names.json"


def at_most(value: float) -> str:
    """Four digits, rounded up: what is said of a bound is not more than what was proved."""
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(value)):.4g}"


def _of_function(claim: Claim) -> str:
    """How near the network is to its target, and on which inputs."""
    n = claim.numbers
    if claim.type == "formula_error":
        return _of_formula(claim)
    box = f"[{n['low']:g}, {n['high']:g}]"
    each = "the answer at every token" if claim.scope == "token" else "the answer for the sequence"
    if claim.type == "lp_error":
        return (
            f"the mean of |answer - target|^{n['p']:g} over all inputs with components in {box} is at most "
            f"{at_most(n['bound'])}^{n['p']:g}, in the largest component: "
            + ("no input is left out" if n["radius"] == 0 else "inputs outside the stored cells count")
        )
    near = f"{each} is within {at_most(n['bound'])} of the target in every component, for every input"
    if claim.type == "sup_error_everywhere":
        return f"{near} with components in {box}: none is left out"
    return (
        f"{near} whose components lie within {n['radius']:.6g} of those of a stored sequence (in any order, if the "
        f"model has no positions): all with components in {box} but for a share of at most {at_most(n['measure'])}"
    )


def _of_formula(claim: Claim) -> str:
    target = claim.target
    each = "the answer at every token" if claim.scope == "token" else "the answer for the sequence"
    sides = [f"[{low:g}, {high:g}]" for low, high in target.box]
    box = sides[0] if len(set(sides)) == 1 else " x ".join(sides)
    return (
        f"{each} is within {at_most(claim.numbers['bound'])} of the target in every component, for every sequence "
        f"of 1 to {target.tokens:,} tokens with components in {box}: none is left out"
    )


def target_of(claims: Sequence[Claim]) -> list[str]:
    """Which function the claims are about; empty if they are about stored answers."""
    return list(dict.fromkeys(_target(claim) for claim in claims if claim.target is not None))


def _target(claim: Claim) -> str:
    target = claim.target
    if claim.type == "formula_error":
        texts = [formula(target.lines, target.d, k, SHORT) for k in target.outputs]
        whole = ", ".join(f"({text})" if len(texts) > 1 else str(text) for text in texts)
        if None in texts or len(whole) > SHORT:
            whole = f"written as {len(target.lines)} lines in the certificate"
        return f"the function {whole} of a token x and all tokens y"
    if not hasattr(target, "lines"):
        return "a function known only by its stored values, and what is assumed about it"
    written = [formula(target.lines, target.d, k, SHORT) for k in target.outputs]
    names = []
    for i in range(len(written)):
        where = [f"component {i % target.components + 1}"] if target.components > 1 else []
        where += [f"token {i // target.components + 1}"] if target.per == "token" else []
        names.append(" at ".join(where))
    whole = "; ".join(f"{text} ({name})" for name, text in zip(names, written, strict=True) if text)
    tokens = {1: "of the token x1", 2: "of the tokens x1 and x2"}.get(
        target.n, f"of the tokens x1, ..., x{target.n}"
    )
    tokens += f" with {target.d} components each" if target.d > 1 else ""
    if len(written) == 1 and written[0]:
        return f"the function {written[0]} {tokens}"
    if all(written) and len(whole) <= SHORT:
        return f"the function {tokens} that is {whole}"
    return f"the function {tokens} that is written as a program of {len(target.lines)} lines in the certificate"


def list_assumptions(claims: Sequence[Claim]) -> list[str]:
    """What is taken for granted: of machines, and of a target that nobody can look into."""
    return [*of_target(claims), *ASSUMED]


def of_target(claims: Sequence[Claim]) -> list[str]:
    """What the claims assume of their target, and no checker can verify."""
    targets = dict.fromkeys(claim.target for claim in claims if hasattr(claim.target, "lipschitz"))
    return [
        f"the target is {target.lipschitz:.6g}-Lipschitz from the largest component of the input to that of the "
        f"output, and within {target.error:.3g} of the stored answers at the stored sequences"
        + (", and reordering the tokens does not change its answers, or reorders them" if target.symmetric else "")
        for target in targets
    ]


def not_claimed(claims: Sequence[Claim]) -> list[str]:
    kinds = {claim.type for claim in claims}
    lines = []
    if kinds & {"identifies", "ambiguous"}:
        return [
            "that the layer fits any answers",
            "anything about inputs whose channels beyond the tokens are not 0",
        ]
    if kinds & {"equals", "within", "attends"}:
        return [
            "anything about rounding: the claims are about real numbers",
            "that the algorithm is the one a person had in mind: it is the one that is written here",
        ]
    functions = {claim.type for claim in claims if claim.about_function}
    if kinds - functions:
        lines += [
            "anything about inputs that are neither stored, nor within the radius of one that is, nor listed as "
            "strangers",
            "that the answers are true: only that they are the ones stored in data.safetensors",
        ]
    if "sup_error" in kinds:
        average = ", beyond the mean that lp_error bounds" if "lp_error" in kinds else ""
        lines.append(f"how large the error is at a single input that lies in no stored cell{average}")
    if functions == {"lp_error"}:
        lines.append("how large the error is at a single input: it is bounded in the mean")
    if functions:
        lengths = "longer sequences" if functions == {"formula_error"} else "sequences of another length"
        lines.append(f"anything about inputs outside the box, or about {lengths}")
        lines.append("that the target is the function a person had in mind: it is the one that is written here")
    return lines
