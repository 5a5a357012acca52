"""From the name of a learning algorithm to a model that is this algorithm, with the checker's proof of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np

from onelayer.certificates.algorithms import prove, with_rounding
from onelayer.errors import OptionError
from onelayer.interfaces import Examples
from onelayer.learners.bounds import bound
from onelayer.learners.built import Built, Limit, Risk, Setting
from onelayer.learners.registry import LEARNERS, Entry
from onelayer.ledger import Constant, Ledger
from onelayer.model import Model
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.answers import AnswerForm

#: What scikit-learn calls alpha, as it is called here.
ALPHA = {
    ("ridge", "alpha"): "Give penalty=alpha / N, for N examples: it is that of the mean loss.",
    ("lasso", "alpha"): "Give penalty=alpha.",
    ("mesa", "alpha"): "Give ridge=alpha.",
}
MOST_STEPS, MOST_EXAMPLES = 1 << 20, 1 << 22


def learner(
    name: str,
    *,
    d: int = 1,
    outputs: int = 1,
    low: float = -1.0,
    high: float = 1.0,
    largest: float = 1.0,
    steps: int | None = None,
    tolerance: float | None = None,
    dtype: Literal["float32", "float64"] = "float64",
    examples: int | None = None,
    certify: bool = True,
    **options: Any,
) -> Model:
    """A network that learns from the examples in its prompt as this algorithm does; `onelayer learners` lists them.

    Examples have d components in [low, high] and answers of ``outputs`` components up to ``largest`` in magnitude;
    the box matters for step sizes and bounds only. ``steps`` is the number of loops, or ``tolerance`` how near to
    its limit the answer must come, for all examples of the box. `penalty` is that of the mean loss,
    mean (y - <w, x>)^2 / 2 + penalty |w|^2 / 2: scikit-learn's Ridge has alpha = N penalty, Lasso alpha = penalty,
    LogisticRegression C = 1/(N penalty), each without an intercept.

        ridge = onelayer.learner("ridge", d=5, penalty=0.1, tolerance=1e-3)
        ridge.predict(X, y, queries)

    With ``examples`` the checker also bounds what rounding does in the dtype, in any order, for prompts of the box
    with up to this many examples (`interface.rounding_bound`): of learners whose tokens carry w, the published form
    of ridge, lasso, and logistic. It is a bound for the worst of all prompts, and far above what is seen.

    Without examples the answer is that of the start state, 0. With ``certify`` the checker proves that the network
    is the algorithm, on every input; a learner that is too large for that has no certificate: its ledger says so.
    """
    entry = _entry(name, options)
    setting = read_setting(d, outputs, low, high, steps, tolerance, dtype, largest)
    built = entry.build(setting, **options)
    near = bound(setting, built.limit, built.algorithm.steps, setting.largest) if built.limit else float("inf")
    claims = [_within(built.limit, built.algorithm, setting, near)] if built.limit and np.isfinite(near) else []
    claims += [_minimises(built.risk, built.algorithm)] if built.risk else []
    claims += [_selects(built.selects, built.algorithm)] if built.selects else []
    proof = prove(built.transformer, built.algorithm, claims) if certify else None
    known = proof is not None and any(claim["type"] == "within" for claim in proof.claims)
    interface = as_interface(name, built, setting, near if known else float("inf"))
    rounding: tuple[Constant, ...] = ()
    if examples is not None and proof is not None:
        proof, rounded = with_rounding(built.transformer, built.algorithm, proof, _box(setting, examples))
        interface = replace(interface, rounding_bound=rounded, most_examples=int(examples))
        rounding = (_rounding(rounded, examples),)
    return Model(built.transformer, interface, as_ledger(built, proof, rounding), proof)


def _rounding(bound: float, examples: int) -> Constant:
    about = f"for up to {examples:,} examples of the box, in any order of sums"
    found = f"how far floats are from the algorithm {about}" if np.isfinite(bound) else f"nothing is proved {about}"
    return Constant("rounding_bound", bound, found)


def _box(setting: Setting, examples: Any) -> dict[str, float]:
    """What the claim `rounds` is about."""
    if isinstance(examples, bool) or not isinstance(examples, int) or not 1 <= examples <= MOST_EXAMPLES:
        needs, found = f"examples from 1 to {MOST_EXAMPLES:,}", f"examples={examples!r:.40}"
        raise OptionError("learner", needs, found, "Give such a number.")
    return {"x": setting.reach, "y": setting.largest, "examples": float(examples)}


def _minimises(risk: Risk, algorithm: Algorithm) -> dict[str, Any]:
    """The claim that no linear attention layer is better on random tasks, but for a gap."""
    written = {key: float(value).hex() for key, value in asdict(risk).items()}
    return {"type": "minimises", "arith": "real", "scope": "token", "target": algorithm.to_json(), **written}


def _selects(numbers: tuple[float, float], algorithm: Algorithm) -> dict[str, Any]:
    """The claim that the answer is that of the learner which the judges found better."""
    written = {key: value.hex() for key, value in zip(("delta", "reach"), numbers, strict=True)}
    return {"type": "selects", "arith": "real", "scope": "token", "target": algorithm.to_json(), **written}


def _within(limit: Limit, algorithm: Algorithm, setting: Setting, near: float) -> dict[str, Any]:
    """The claim that the answers are so near to those of ridge regression."""
    numbers = {
        "bound": near,
        "x": setting.reach,
        "y": setting.largest,
        "eta": limit.eta,
        "a": limit.a,
        "b": limit.b,
    }
    numbers["late"] = float(limit.late)
    written = {key: float(value).hex() for key, value in numbers.items()}
    return {"type": "within", "arith": "real", "scope": "token", "target": algorithm.to_json(), **written}


def as_interface(name: str, built: Built, setting: Setting, near: float) -> Examples:
    q = built.algorithm.outputs
    return Examples(
        form=AnswerForm("token", None, None if q == 1 else q, False),
        learner=name,
        words=built.says,
        algorithm=built.algorithm,
        reads=built.reads,
        low=float(setting.low),
        high=float(setting.high),
        largest=setting.largest,
        error_bound=near,
        labels=built.labels,
        lags=built.lags,
        judges=built.judges,
    )


def as_ledger(built: Built, proof: Any, further: tuple[Constant, ...] = ()) -> Ledger:
    why = "the checker proved it; `verify` asks it again" if proof is not None else "not asked for, or too large"
    return Ledger((*built.constants, *further, Constant("certified", proof is not None, why)))


def _entry(name: str, options: dict[str, Any]) -> Entry:
    if name not in LEARNERS:
        needs = f"a learner among {', '.join(LEARNERS)}"
        raise OptionError("learner", needs, f"{name!r:.40}", "Choose one of them.")
    known = LEARNERS[name].options
    for key in options:
        if key not in known:
            needs = f"options that {name} has: {', '.join(known) or 'none'}"
            raise OptionError(
                "learner", needs, f"{key}={options[key]!r:.40}", ALPHA.get((name, key), "Leave it out.")
            )
    return LEARNERS[name]


def read_setting(
    d: Any, outputs: Any, low: Any, high: Any, steps: Any, tolerance: Any, dtype: Any, largest: Any
) -> Setting:
    whole = {"d": (d, 4096), "outputs": (outputs, 4096), "steps": (1 if steps is None else steps, MOST_STEPS)}
    for key, (value, most) in whole.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
            raise OptionError("learner", f"{key} from 1 to {most:,}", f"{key}={value!r:.40}", "Give such a number.")
    finite = all(isinstance(end, float | int) and np.isfinite(end) for end in (low, high))
    if not finite or not low < high:
        raise OptionError("learner", "a box low < high", f"low={low!r:.40}, high={high!r:.40}", "Give finite ends.")
    if steps is not None and tolerance is not None:
        needs, found = "steps or a tolerance", f"steps={steps} and tolerance={tolerance!r:.40}"
        raise OptionError("learner", needs, found, "Leave one of them out.")
    if tolerance is not None and not (isinstance(tolerance, float | int) and 0 < tolerance < np.inf):
        raise OptionError("learner", "a tolerance above 0", f"tolerance={tolerance!r:.40}", "Give such a number.")
    if dtype not in ("float32", "float64"):
        raise OptionError("learner", "float32 or float64", f"dtype={dtype!r:.40}", "Choose one of them.")
    if not isinstance(largest, float | int) or not 0 < largest < np.inf:
        raise OptionError("learner", "answers up to largest > 0", f"largest={largest!r:.40}", "Give such a number.")
    loops = None if steps is None else int(steps)
    return Setting(int(d), int(outputs), float(low), float(high), loops, tolerance, dtype, float(largest))
