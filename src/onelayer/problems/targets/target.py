"""A target: the function that a Transformer is to approximate, and the ways a person may name it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from onelayer.errors import HypothesisError, OptionError
from onelayer.problems.targets.continuity import check_constant, check_continuous, looked_at, steepest
from onelayer.problems.targets.expression import NAMED, read_expression, read_pooled
from onelayer.problems.targets.networks import kind_of, name_of, read_network
from onelayer.problems.targets.poles import check_defined
from onelayer.problems.targets.pooled import Pooled
from onelayer.problems.targets.program import Array, Per, Program
from onelayer.problems.targets.slopes import lipschitz as derived
from onelayer.problems.targets.symmetry import ROUNDING, asymmetry, try_symmetry
from onelayer.problems.targets.zoo import ZOO, Kind

Function = Callable[[Array], Array]
#: A text that is one word, perhaps with a number after a colon, is a name; x and x1 are formulas.
NAME = re.compile(r"(?!(x[0-9]*|y|n|pi|e)$)[A-Za-z_][A-Za-z_0-9]*(:.*)?")
KINDS = ("equivariant", "invariant", "ordered")
BATCHES = "a function from sequences [B, n, d] to values [B, n, q] or [B, q], each from its own sequence"
#: Sequences on which symmetry and a Lipschitz constant are tried.
TRIED = 64


@dataclass(frozen=True)
class Target:
    """A function of n tokens in a box of R^d with ``components`` values per token or per sequence.

    ``lipschitz`` goes from the sup norm of all inputs to that of all outputs, on the box it was resolved for. Only
    a target with a program can be enclosed, hence proved to be approximated.
    """

    name: str
    kind: Kind
    n: int
    d: int
    components: int
    per: Per
    evaluate: Function = field(compare=False, repr=False)
    program: Program | None
    lipschitz: float | None
    says: str
    pooled: Pooled | None = None  # the same function for every number of tokens, where it is one
    steepest: float | None = field(default=None, compare=False)  # slope that was seen, of a function that was tried

    def to_json(self) -> dict[str, Any]:
        """A Python function is not written: a saved model knows its name and what was assumed of it."""
        shape = {name: getattr(self, name) for name in ("name", "kind", "n", "d", "components", "per", "says")}
        program = None if self.program is None else self.program.to_json()
        pooled = None if self.pooled is None else self.pooled.to_json()
        lipschitz = None if self.lipschitz is None else self.lipschitz.hex()
        return shape | {"program": program, "pooled": pooled, "lipschitz": lipschitz}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Target:
        entry = dict(entry)
        program = None if entry["program"] is None else Program.from_json(entry["program"])
        pooled = None if entry["pooled"] is None else Pooled.from_json(entry["pooled"])
        lipschitz = None if entry["lipschitz"] is None else float.fromhex(entry["lipschitz"])

        def evaluate_nothing(_: Array) -> Array:
            needs = "a target that can be evaluated"
            found = f"{entry['name']!r} was a Python function, which no file holds"
            raise OptionError("target", needs, found, "Compare predictions with the function yourself.")

        written = pooled if program is None else program
        evaluate = evaluate_nothing if written is None else written.evaluate
        found = {"program": program, "pooled": pooled, "lipschitz": lipschitz, "evaluate": evaluate}
        return Target(**entry | found)


def names() -> tuple[str, ...]:
    """The names that `resolve` knows; some take a whole number after a colon."""
    return tuple(sorted(ZOO))


def resolve(
    target: str | Program | Callable[..., Any] | object,
    *,
    n: int,
    d: int,
    low: Any = 0.0,
    high: Any = 1.0,
    lipschitz: float | None = None,
    kind: Kind | None = None,
    components: int | None = None,
    tolerance: float | None = None,
) -> Target:
    """The target that a name, a formula, a program or a Python function stands for, on the box [low, high]^(n d).

    A Python function takes sequences [B, n, d] and gives [B, n, q] or [B, q]; it must come with its kind, and with
    a Lipschitz constant if something is to be derived from it. Its symmetry is tried on samples, not proved; so is
    its continuity, if a ``tolerance`` is given: jumps that are small beside it do no harm.
    """
    _check_box(n, d, low, high)
    lipschitz = None if lipschitz is None else _constant(lipschitz)
    if kind is not None and kind not in KINDS:
        raise OptionError("target", f"a kind among {', '.join(KINDS)}", f"kind={kind!r}", "Choose one.")
    if kind_of(target) is not None:
        found = _of_network(target, n, d)
    elif isinstance(target, str):
        found = (_target_by_name if NAME.fullmatch(target.strip()) else _target_by_formula)(
            target.strip(), n, d, low, high
        )
    elif isinstance(target, Program):
        found = _of_program(target, low, high, kind)
    elif callable(target):
        found = _of_callable(target, n, d, low, high, kind)
    else:
        raise _no_target(target)
    for what, asked, has in (("kind", kind, found.kind), ("components", components, found.components)):
        if asked is not None and asked != has:
            raise OptionError("target", f"its own {what}", f"{what}={asked!r}, it is {has!r}", "Leave it out.")
    if (found.n, found.d) != (n, d):
        raise OptionError(
            "target", f"n={n} and d={d}", f"it is for n={found.n}, d={found.d}", "Build it again for these sizes."
        )
    X, special = np.random.default_rng(0).uniform(low, high, (TRIED, n, d)), _special(n, d, low, high)
    written = found.program if found.pooled is None else found.pooled
    if written is not None:
        check_defined(found.name, written, low, high)
    _check_finite(found, np.concatenate([X, special]))
    if found.pooled is None:  # else it is symmetric by its syntax
        try_symmetry(found, X)
    if lipschitz is not None or (written is None and tolerance is not None):
        pairs = looked_at(found.evaluate, n, d, low, high, special)
        if written is None:
            check_continuous(found.name, pairs, 0.0 if tolerance is None else tolerance)
        if lipschitz is not None:
            check_constant(pairs, lipschitz)
        found = replace(found, steepest=steepest(pairs))
    return replace(found, lipschitz=_smallest(lipschitz, found.lipschitz))


def _no_target(given: Any) -> OptionError:
    remedy = f"Names: {', '.join(names())}."
    if hasattr(given, "predict"):
        remedy = "Pass what it gives for sequences [B, n, d]: lambda X: model.predict(X.reshape(len(X), -1))."
    needs = "a name, a formula, a program, a network or a Python function"
    return OptionError("target", needs, f"a {type(given).__name__} was given", remedy)


def _check_box(n: int, d: int, low: Any, high: Any) -> None:
    if n < 1 or d < 1 or not (np.isfinite(low).all() and np.isfinite(high).all() and np.less(low, high).all()):
        needs, found = "n and d of at least 1, and a box low < high", f"n={n}, d={d}, low={low}, high={high}"
        raise OptionError("target", needs, found, "Give them so.")


def _constant(lipschitz: Any) -> float:
    if isinstance(lipschitz, Real) and 0 <= float(lipschitz) < math.inf:
        return float(lipschitz)
    needs, remedy = "a Lipschitz constant of at least 0", "Give a number, or leave it out."
    raise OptionError("target", needs, f"lipschitz={lipschitz!r}", remedy)


def _special(n: int, d: int, low: Any, high: Any) -> Array:
    """Sequences where functions tend to have no value: tokens at the ends, in the middle, and equal ones."""
    marks = np.broadcast_to(low, d) + (np.broadcast_to(high, d) - low) * np.linspace(0, 1, 21)[:, None]  # [21, d]
    which = np.random.default_rng(2).choice([0, 10, 20], (TRIED, n, d))
    return np.concatenate([marks[which, np.arange(d)], np.broadcast_to(marks[:, None], (21, n, d))])


def _smallest(*constants: float | None) -> float | None:
    return min((c for c in constants if c is not None), default=None)


def _target_by_name(text: str, n: int, d: int, low: Any, high: Any) -> Target:
    name, _, number = text.partition(":")
    named = ZOO.get(name)
    if named is None:
        near = get_close_matches(name, names(), 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise OptionError("target", "a known name", f"{text!r} is not", f"Names: {', '.join(names())}.{meant}")
    takes = named.parameter > 0
    if number and not (takes and re.fullmatch(r"[1-9][0-9]{0,3}", number)):
        meant = f"{name}:{named.parameter}" if takes else name
        needs = f"a whole number from 1 to 9999 after {name!r}" if takes else f"no number after {name!r}"
        raise OptionError("target", needs, f"the name is {text!r}", f"Write {meant!r}.")
    parameter, hull = int(number) if number else named.parameter, (float(np.min(low)), float(np.max(high)))
    title, constant = f"{name}:{parameter}" if takes else name, named.lipschitz(n, d, *hull, parameter)
    formula = read_pooled(NAMED[name], n, d) if name in NAMED else None
    if formula is not None and formula[1].is_long:
        return _any_length(title, *formula, constant, named.says)
    program = named.program(n, d, parameter)
    constant = _smallest(constant, derived(program, low, high))
    found = _with_program(title, named.kind, program, constant, named.says)
    return found if formula is None else replace(found, pooled=formula[1])


def _target_by_formula(text: str, n: int, d: int, low: Any, high: Any) -> Target:
    says, formula = f"the formula {text}", read_pooled(text, n, d)
    if formula is not None and formula[1].is_long:
        return _any_length(text, *formula, None, says)
    kind, program = read_expression(text, n, d)
    found = _with_program(text, kind, program, derived(program, low, high), says)
    return found if formula is None else replace(found, pooled=formula[1])


def _any_length(name: str, kind: Kind, pooled: Pooled, constant: float | None, says: str) -> Target:
    shape = pooled.n, pooled.d, len(pooled.outputs), pooled.per
    return Target(name, kind, *shape, pooled.evaluate, None, constant, says, pooled)


def _with_program(name: str, kind: Kind, program: Program, constant: float | None, says: str) -> Target:
    shape = program.n, program.d, program.components, program.per
    return Target(name, kind, *shape, program.evaluate, program, constant, says)


def _of_network(network: Any, n: int, d: int) -> Target:
    """Its formula; and, where that is short, the program for this number of tokens."""
    formula, name = read_network(network, n, d), name_of(network)
    kind: Kind = "equivariant" if formula.per == "token" else "invariant"
    found = _any_length(name, kind, formula, None, f"the network {name}, {len(formula.lines)} lines")
    return found if formula.is_long else replace(found, program=formula.program())


def _of_program(program: Program, low: Any, high: Any, kind: Kind | None) -> Target:
    """Without a kind, the most symmetric one that its values on samples allow."""
    says = f"a program of {len(program.lines)} lines"
    symmetric: Kind = "equivariant" if program.per == "token" else "invariant"
    found = _with_program("program", kind or symmetric, program, derived(program, low, high), says)
    X = np.random.default_rng(0).uniform(low, high, (TRIED, program.n, program.d))
    return replace(found, kind="ordered") if kind is None and asymmetry(found, X) else found


def _of_callable(f: Callable[..., Any], n: int, d: int, low: Any, high: Any, kind: Kind | None) -> Target:
    name = getattr(f, "__name__", type(f).__name__)
    if kind is None:
        needs, remedy = "its kind, if it is a Python function", f"Pass kind= one of {', '.join(KINDS)}."
        raise OptionError("target", needs, f"{name!r} came without", remedy)
    X = np.random.default_rng(0).uniform(low, high, (TRIED, n, d))
    values = _call(f, X, name, kind)
    if not np.allclose(values[:1], _call(f, X[:1], name, kind), rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
        found = f"{name!r} gives {X[0].tolist()} other values in a batch than alone"
        raise _one_by_one(name, found)
    per: Per = "token" if values.ndim == 3 else "sequence"
    if (kind == "equivariant" and per == "sequence") or (kind == "invariant" and per == "token"):
        needs = f"values of shape [B, {'n, q' if kind == 'equivariant' else 'q'}], if it is {kind}"
        raise OptionError("target", needs, f"{name!r} gives {list(values.shape)}", "Change the kind, or the shape.")

    def evaluate(X: Array) -> Array:
        return _call(f, X, name, kind)

    return Target(name, kind, n, d, values.shape[-1], per, evaluate, None, None, f"the Python function {name!r}")


def _call(f: Callable[..., Any], X: Array, name: str, kind: Kind) -> Array:
    """The values as [B, n, q] or [B, q]; a last axis of one component may be missing where that is no guess."""
    try:
        given = np.asarray(f(X))
        values = given.real.astype(np.float64)
    except Exception as error:
        raise _misfit(f, X, name, f"{name!r} raises {type(error).__name__}: {error}") from error
    if given.dtype.kind == "c":
        remedy = "Give real and imaginary parts as two components."
        raise HypothesisError("target", "real values", f"{name!r} gives complex ones", remedy)
    if values.shape == X.shape[:1] or (kind == "equivariant" and values.shape == X.shape[:2]):
        values = values[..., None]
    fits = values.ndim in (2, 3) and values.shape[: values.ndim - 1] == X.shape[: values.ndim - 1]
    if not fits or 0 in values.shape[1:]:
        raise _misfit(f, X, name, f"{name!r} turns shape {list(X.shape)} into {list(values.shape)}")
    return values


def _check_finite(target: Target, X: Array) -> None:
    with np.errstate(all="ignore"):
        finite = np.isfinite(target.evaluate(X).reshape(len(X), -1)).all(axis=1)
    if not finite.all():
        found = f"{target.name!r} has none at {X[int(np.argmin(finite))].tolist()}"
        raise HypothesisError("target", "finite values on the box", found, "Shrink or move the box.")


def _misfit(f: Callable[..., Any], X: Array, name: str, found: str) -> OptionError:
    """Say so if the function takes one sequence only: that is easily mended."""
    try:
        single = np.shape(f(X[0]))
    except Exception:
        return OptionError("target", BATCHES, found, "Let it take a batch of sequences.")
    return _one_by_one(name, f"{found}; a single sequence {list(X.shape[1:])} it turns into {list(single)}")


def _one_by_one(name: str, found: str) -> OptionError:
    return OptionError("target", BATCHES, found, f"Pass lambda X: np.stack([{name}(x) for x in X]).")
