"""The contract of mappings, readouts, constructions of functions and gadgets: `check_construction(cls)`.

Whoever writes one runs this on it; it needs no test framework. The class need not be registered yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.compile.approximate import approximate
from onelayer.compile.construction import CONSTRUCTIONS, Construction
from onelayer.compile.memorize import memorize
from onelayer.contexts.mapping import MAPPINGS, ContextMapping
from onelayer.errors import OnelayerError
from onelayer.gadgets.stacks import STACKS, covered_by, read_parts
from onelayer.ledger import Constant, Ledger
from onelayer.model import Model
from onelayer.network.blocks import apply_stack
from onelayer.readouts.method import READOUTS, ReadoutMethod

Array = NDArray[Any]
Kind = type[ContextMapping] | type[ReadoutMethod] | type[Construction]
Make = Callable[..., Model]

#: Sequences, tokens and components of the data on which mappings and readouts are tried.
SHAPE = (12, 4, 2)
#: A function, and boxes on which a construction is tried: the second is the first translated, the third rescaled.
TARGET, TOLERANCE, BOXES = "x - mean(y)", 0.25, ((0.0, 1.0), (4.0, 5.0), (-0.25, 0.25))


class ContractError(AssertionError):
    """What a construction does not keep, all of it: a line for each promise."""

    def __init__(self, name: str, broken: dict[str, str]) -> None:
        self.broken = broken
        lines = "".join(f"\n  {promise}: {why}" for promise, why in broken.items())
        super().__init__(f"{name} breaks {len(broken)} promises of the contract:{lines}")


class _NoModelError(Exception):
    """There is nothing to look at."""


def check_construction(cls: Kind) -> tuple[str, ...]:
    """Try every promise of the contract on small data; the promises that are kept, or ContractError.

    recall         what is stored comes back, or OnelayerError says why not: nothing else is raised
    permutation    of sequences, and of the tokens of a sequence, which permutes its answers
    translation    of the data; rescaling likewise, by powers of two
    hypotheses     data that contradicts itself, and options that do not fit, are OnelayerErrors
    search         gives the bits of the layers on stored data
    recognition    every gadget is recognised in its layers, and they are its own
    names          every channel of every value has one of its own
    ledger         every constant has a name, a meaning, and a value that can be saved
    verified       the independent checker proves a small model
    """
    broken: dict[str, str] = {}
    kept: list[str] = []
    with _register(cls):
        for promise, tried in _promises(cls):
            try:
                why = tried()
            except _NoModelError:  # then recall is broken, and says why
                continue
            except OnelayerError as refusal:
                why = f"it refuses: {refusal}"
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            if why:
                broken[promise] = why
            else:
                kept.append(promise)
    if broken:
        raise ContractError(getattr(cls, "name", cls.__name__), broken)
    return tuple(kept)


def _register(cls: Kind) -> AbstractContextManager[None]:
    if issubclass(cls, ContextMapping):
        return MAPPINGS.hold(cls)
    if issubclass(cls, ReadoutMethod):
        return READOUTS.hold(cls)
    if issubclass(cls, Construction):
        return CONSTRUCTIONS.hold(cls)
    raise TypeError(f"{cls!r} is neither a mapping, nor a readout, nor a construction of functions")


def _promises(cls: Kind) -> Iterator[tuple[str, Callable[[], str]]]:
    if issubclass(cls, Construction):
        yield from _of_a_function(cls)
        return
    option = {"mapping" if issubclass(cls, ContextMapping) else "readout": cls.name}
    dtype = "float32" if _on_lattice(cls) else "float64"

    def make(X: Array, Y: Array, **more: Any) -> Model:
        return memorize(X, Y, cluster=None, **{"dtype": dtype, "certify": False, **option, **more})

    X, Y = _data()
    model: list[Model] = []

    def recall() -> str:
        model.append(make(X, Y))
        reals = Y + 0.25
        takes_reals = issubclass(cls, ReadoutMethod) and not cls.only_classes
        return _recalls(model[0], X, Y) or (_recalls(make(X, reals), X, reals) if takes_reals else "")

    def make_model() -> Model:
        if not model:
            raise _NoModelError
        return model[0]

    if issubclass(cls, ContextMapping) and cls.only_refuses:
        yield "hypotheses", lambda: _check_refusals({"every data": lambda: make(X, Y)})
        return
    yield "recall", recall
    yield "permutation", lambda: _check_permuted(make, make_model(), X, Y)
    yield "translation", lambda: _recalls(make(X + 64.0, Y), X + 64.0, Y)
    yield (
        "rescaling",
        lambda: _recalls(make(X * 2.0**20, Y), X * 2.0**20, Y) or _recalls(make(X / 64, Y), X / 64, Y),
    )
    yield "hypotheses", lambda: _hypotheses(make, cls, X, Y)
    yield "search", lambda: _check_search(make_model(), X)
    yield from _of_any_model(make_model, X)
    yield "verified", lambda: _check_verified(make(X, Y, certify=True))


def _of_a_function(cls: type[Construction]) -> Iterator[tuple[str, Callable[[], str]]]:
    def make(low: float, high: float) -> Model:
        return approximate(
            TARGET, n=2, low=low, high=high, tolerance=TOLERANCE * (high - low), construction=cls.name
        )

    models: dict[tuple[float, float], Model] = {}

    def make_model(box: tuple[float, float] = BOXES[0]) -> Model:
        if box not in models:
            models[box] = make(*box)
        return models[box]

    def within(box: tuple[float, float]) -> str:
        model = make_model(box)
        X = _inside(model)
        worst = float(model.errors(X).max())
        return "" if worst <= TOLERANCE * (box[1] - box[0]) else f"it is off by {worst:.3g} on [{box[0]}, {box[1]}]"

    def check_permuted() -> str:
        X = _inside(make_model())
        off = np.abs(make_model().predict(X)[:, ::-1] - make_model().predict(X[:, ::-1])).max()
        return "" if off <= 1e-5 else f"tokens in another order get other answers, by {off:.3g}"

    def hypotheses() -> str:
        try:
            approximate(TARGET, n=2, tolerance=1e-300, construction=cls.name)
        except OnelayerError:
            return ""
        return "a tolerance that nothing reaches is accepted"

    for promise, box in zip(("recall", "translation", "rescaling"), BOXES, strict=True):
        yield promise, lambda box=box: within(box)  # type: ignore[misc]
    yield "permutation", check_permuted
    yield "hypotheses", hypotheses
    yield "search", lambda: _check_search(make_model(), _inside(make_model()), exact=False)
    yield from _of_any_model(make_model, _inside)
    yield "verified", lambda: _check_verified(make_model())


def _of_any_model(make_model: Callable[[], Model], asked: Any) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "recognition", lambda: _check_recognition(make_model())
    yield "names", lambda: _check_names(make_model(), asked(make_model()) if callable(asked) else asked)
    yield "ledger", lambda: _ledger(make_model().ledger)


def _data() -> tuple[Array, Array]:
    """Numbers with few bits, so that moving them rounds nothing, and classes."""
    rng = np.random.default_rng(0)
    return rng.integers(-4096, 4096, SHAPE) / 1024, rng.integers(0, 3, SHAPE[:2])


def _inside(model: Model) -> Array:
    box = model.interface.box  # type: ignore[attr-defined]
    X = box.draw(np.random.default_rng(0), 200)
    return np.asarray(X[box.holds(X) & box.holds(X[:, ::-1])])


def _on_lattice(cls: Kind) -> bool:
    if issubclass(cls, ReadoutMethod):
        return not (cls.reads("on_line") or cls.reads("in_boxes"))
    return bool(getattr(cls, "on_lattice", False))


def _recalls(model: Model, X: Array, Y: Array) -> str:
    wrong = int((np.abs(model.predict(X).reshape(Y.shape) - Y) > model.interface.allowed_error).sum())
    return f"{wrong} of {Y.size} answers come back wrong" if wrong else ""


def _check_permuted(make: Make, model: Model, X: Array, Y: Array) -> str:
    rng = np.random.default_rng(1)
    tokens, sequences = rng.permutation(X.shape[1]), rng.permutation(len(X))
    if (model.predict(X[:, tokens]) != Y[:, tokens]).any():
        return "the tokens of a sequence in another order get other answers"
    return _recalls(make(X[sequences], Y[sequences]), X, Y)


def _hypotheses(make: Make, cls: Kind, X: Array, Y: Array) -> str:
    contradicting = np.concatenate([X, X]), np.concatenate([Y, (Y + 1) % 3])
    asked: dict[str, Callable[[], Model]] = {
        "data that contradicts itself": lambda: make(*contradicting),
        "a rank of 0": lambda: make(X, Y, rank=0),
    }
    if issubclass(cls, ReadoutMethod) and not cls.knows_stored:
        asked["a default"] = lambda: make(X, Y, default=0)
    if issubclass(cls, ReadoutMethod) and cls.only_classes:
        asked["answers that are no classes"] = lambda: make(X, Y + 0.5)
    return _check_refusals(asked)


def _check_refusals(asked: dict[str, Callable[[], Model]]) -> str:
    """What is not refused as it should be."""
    for what, ask in asked.items():
        try:
            ask()
        except OnelayerError:
            continue
        except Exception as error:
            return f"{what} is a {type(error).__name__}, no OnelayerError"
        return f"{what} is accepted"
    return ""


def _check_search(model: Model, X: Array, exact: bool = True) -> str:
    """Gadget by gadget, and all together; ``exact`` to the bit."""
    sequences = model.read(X)
    wanted = model.outputs(sequences, "dense")
    pairs = [("the whole model", model.outputs(sequences), wanted)]
    trace = model.trace(X)
    for stack in STACKS:
        for part in model.parts[stack]:
            c = part.covered
            before = (
                trace[f"{stack}.{c.start - 1}"]
                if c.start
                else trace["context" if stack == "readout" else "embedded"]
            )
            layers = getattr(model.transformer, stack)[c.start : c.stop]
            pairs.append((f"{stack} / {c.kind}", part.gadget.search(before), apply_stack(layers, before)))
    for name, found, dense in pairs:
        room = 0.0 if exact else 1e-4 * (1 + float(np.abs(dense).max()))
        if found.shape != dense.shape or not (np.abs(found - dense) <= room).all():
            return f"{name}: the search does not give what the layers give"
    return ""


def _check_recognition(model: Model) -> str:
    if (found := covered_by(model.parts)) != model.gadgets:
        return f"register the gadget: {model.gadgets} was built, {found} is recognised"
    if (blind := covered_by(read_parts(model.transformer))) != model.gadgets:
        return f"without a hint, layers of {model.gadgets} are taken for {blind}"
    for stack in STACKS:
        for part in model.parts[stack]:
            if type(part.gadget).recognise(part.gadget.layers()) != part.gadget:
                return f"the layers of {part.covered.kind} are not recognised as its own"
    return ""


def _check_names(model: Model, X: Array) -> str:
    trace = model.trace(X)
    for value in trace.values:
        names = trace.names(value)
        if value.endswith((".logits", ".attention")):
            continue
        if len(names) != trace[value].shape[-1]:
            return f"{value} has {trace[value].shape[-1]} channels and {len(names)} names"
        if len(set(names)) != len(names) or not all(type(name) is str and name.strip() for name in names):
            return f"two channels of {value} have one name, or one has none"
    return ""


def _ledger(ledger: Ledger) -> str:
    for line in ledger.lines:
        value = getattr(line, "value", None)
        plain = isinstance(value, bool | int | float | str) or (
            type(value) is tuple and all(type(x) in (int, float) for x in value)
        )
        if not isinstance(line, Constant) or not line.name or not line.meaning or not plain:
            return f"{line!r} is no constant with a name, a meaning, and a number, words or numbers as its value"
    names = [line.name for line in ledger.lines]
    return "" if len(names) == len(set(names)) else "two constants have one name"


def _check_verified(model: Model) -> str:
    if model.certificate is None:
        return "nothing was proved"
    report = model.verify()
    return "" if report.exit_code == 0 else f"the checker says {report.result}: {report.why}"
