"""Sequences and answers, checked, with everything that decides which constructions apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onelayer.errors import OptionError, PrecisionError
from onelayer.network.formats import FORMATS, Format
from onelayer.problems.answers import AnswerForm, Answers, read_answers
from onelayer.problems.blocks import every
from onelayer.problems.scopes import Scope, for_each_token
from onelayer.problems.sequences import Sequences, read_sequences
from onelayer.search.sixteen_bits import refuse_beyond

Array = NDArray[Any]
#: Names of what is registered, or "auto".
Mapping: TypeAlias = str
Readout: TypeAlias = str


#: The readout that is any other with logits behind it.
LOGITS = "logits"
#: A fingerprint and a class share a whole number below 2^24.
SMALLEST_SHARE = 1e-6


class NoDefault:
    """No default was given; None may well be one."""

    def __repr__(self) -> str:
        return "no default"


NO_DEFAULT = NoDefault()


class Options(TypedDict, total=False):
    """What `memorize` and `plan` let a person choose; `memorize` explains each."""

    lengths: Any
    rank: int | None
    dtype: DTypeLike | None
    mapping: Mapping
    readout: Readout
    positions: bool
    default: Any
    false_hits: float | None
    seed: int
    scope: Scope | None
    logits: bool


@dataclass(frozen=True)
class Problem:
    """Sequences and answers, checked, with everything that decides which constructions apply."""

    sequences: Sequences
    answers: Answers
    dtype: np.dtype[Any]
    dtype_is_free: bool  # nobody asked for it: float64 may be tried if it fails
    positions: bool
    mapping: Mapping
    rank: int | None
    readout: Readout
    default: Array | None  # [q]
    seed: int
    false_hits: float | None = None  # which share of unknown inputs may not get it, if a person chose
    logits: bool = False  # behind the class number, one for each class
    format: Format | None = None  # of 16 bits, in which all is to be exact; ``dtype`` then is that of the arrays

    @property
    def arithmetic(self) -> str:
        """The name of the format in which the model runs."""
        return str(self.dtype) if self.format is None else self.format.name

    @property
    def itemsize(self) -> int:
        """Bytes of a weight as it is saved."""
        return self.dtype.itemsize if self.format is None else 2

    def rows(self, per_sequence: bool) -> Array:
        """Answers [T, q], one per sample of the chosen mapping."""
        rows = self.answers.rows
        if self.answers.form.scope == "token" or per_sequence:
            return rows
        return for_each_token(rows, self.sequences.n, self.sequences.lengths)

    def show_answer(self, per_sequence: bool) -> Callable[[int], str]:
        rows, classes = self.rows(per_sequence), self.answers.form.classes

        def show(sample: int) -> str:
            if classes is not None:
                return repr(classes[int(rows[sample, 0])])
            return ", ".join(f"{x:.6g}" for x in rows[sample])

        return show


def read_problem(X: Any, Y: Any, options: Options) -> Problem:
    """Check everything that can be checked without building anything."""
    seed, scope, dtype = options.get("seed", 0), options.get("scope"), options.get("dtype")
    number, small = _number(dtype)
    if type(seed) is not int or seed < 0:
        raise OptionError("memorize", "a whole seed of at least 0", f"seed={seed!r}", "Give 0, 1, 2, ...")
    if scope not in (None, "token", "sequence"):
        raise OptionError("memorize", 'scope "token" or "sequence"', f"scope={scope!r}", "Choose one of them.")
    sequences = read_sequences(X, options.get("lengths"))
    answers = read_answers(Y, sequences, scope)
    readout, logits = _logits(options, answers.form)
    answers, default = _with_default(answers, options.get("default", NO_DEFAULT))
    if small is not None:
        refuse_beyond(small, sequences, answers, default, logits, bool(options.get("positions")))
    shortage = _shortage(answers, default, number)
    if dtype is None and (shortage or not _float32_holds(sequences, answers, default)):
        number = np.dtype("float64")
        shortage = _shortage(answers, default, number)
    if shortage:
        raise shortage
    return Problem(
        sequences,
        answers,
        number,
        dtype is None,
        bool(options.get("positions", False)),
        _for_format(small or readout == "planes", options.get("mapping", "auto"), "tallies"),
        options.get("rank"),
        _for_format(small, readout, "planes"),
        default,
        seed,
        _false_hits(options.get("false_hits"), default),
        logits,
        small,
    )


def _number(dtype: DTypeLike | None) -> tuple[np.dtype[Any], Format | None]:
    """The dtype of the arrays, and the format of 16 bits that was asked for, if one was."""
    name = dtype if isinstance(dtype, str) else None
    try:
        number = np.dtype("float32" if dtype is None or name == "bfloat16" else dtype)
    except TypeError:
        number = np.dtype(object)
    if name == "bfloat16" or number == np.float16:
        return np.dtype(np.float32), FORMATS["bfloat16" if name == "bfloat16" else "float16"]
    if number not in (np.float32, np.float64):
        needs = "dtype float32, float64, float16 or bfloat16"
        raise OptionError("memorize", needs, f"dtype {dtype!r:.40} was asked for", "Change it.")
    return number, None


def _for_format(small: Format | bool | None, wish: str, only: str) -> str:
    """What is there for 16 bits, unless another was asked for."""
    if not small or wish == only:
        return wish
    if wish != "auto":
        needs = f'"{only}" or "auto" for numbers of 16 bits'
        raise OptionError("memorize", needs, f'"{wish}" was asked for', "Leave it out.")
    return only


def _logits(options: Options, form: AnswerForm) -> tuple[Readout, bool]:
    """Which readout finds the class, and whether logits follow: "logits" is any readout with logits behind it."""
    readout, wanted = options.get("readout", "auto"), options.get("logits", False)
    readout, wanted = ("auto", True) if readout == LOGITS else (readout, bool(wanted))
    if wanted and form.classes is None:
        kind = "real numbers" if form.components is None else f"vectors of {form.components} numbers"
        remedy = "Leave logits out; or make each answer one class, say a word or a whole number."
        raise OptionError("memorize", "answers that are classes, for logits", f"they are {kind}", remedy)
    return readout, wanted


def _false_hits(wanted: Any, default: Array | None) -> float | None:
    if wanted is None:
        return None
    if default is None:
        found = f"false_hits={wanted!r} without a default"
        raise OptionError(
            "memorize", "a default, since false hits are answers other than the default", found, "Pass default=."
        )
    if not isinstance(wanted, Real) or not SMALLEST_SHARE <= float(wanted) < 1:
        needs = f"a share of false hits from {SMALLEST_SHARE:.0e} to below 1"
        raise OptionError("memorize", needs, f"false_hits={wanted!r}", "Give a share such as 1e-4.")
    return float(wanted)


def _with_default(answers: Answers, default: Any) -> tuple[Answers, Array | None]:
    """The default as a row of numbers; a class that no stored answer has is added to the classes."""
    if isinstance(default, NoDefault):
        return answers, None
    form = answers.form
    if form.classes is None:
        try:
            row = np.broadcast_to(np.asarray(default, np.float64), (form.width,)).copy()
        except (TypeError, ValueError):
            row = np.full(form.width, np.nan)
        if not np.isfinite(row).all():
            raise OptionError(
                "memorize", "a finite default, like the answers", f"default={default!r:.60}", "Give a number."
            )
        return answers, row
    known = {(type(name), name): i for i, name in enumerate(form.classes)}
    try:
        index = known.get((type(default), default), len(form.classes))
    except TypeError:
        raise OptionError(
            "memorize", "a default that can be a class", f"default={default!r:.60} is not hashable", "Give a word."
        ) from None
    classes = form.classes if index < len(form.classes) else (*form.classes, default)
    form = AnswerForm(form.scope, classes, form.components, form.ragged)
    return Answers(answers.rows, form), np.array([float(index)])


def _shortage(answers: Answers, default: Array | None, number: np.dtype[Any]) -> PrecisionError | None:
    """Why this arithmetic is too small for the answers, or for the default; None if it is not."""
    info, classes = np.finfo(number), answers.form.classes
    limit = 2 ** (info.nmant + 1)
    if classes is not None and len(classes) > limit:
        needs = f"at most {limit} classes in {number}"
        return PrecisionError("memorize", needs, f"there are {len(classes)}", 'Use dtype="float64".')
    for rows, what in ((answers.rows, "an answer"), (default, "the default")):
        size = np.zeros(1) if rows is None else np.abs(rows)
        faint = number != np.float64 and ((size > 0) & (size < info.tiny)).any()  # float64 has nothing beyond it
        if not size.max() <= info.max or faint:
            needs = f"answers that {number} can hold"
            return PrecisionError("memorize", needs, f"{what} overflows or underflows it", 'Use dtype="float64".')
    return None


def _float32_holds(sequences: Sequences, answers: Answers, default: Array | None) -> bool:
    """Whether tokens and answers are numbers of float32, so that a claim in float32 can be about them."""

    def exact(values: Array) -> bool:
        if values.dtype == np.float32:
            return True
        with np.errstate(over="ignore"):
            return every(lambda x: x.astype(np.float32) == x, values)

    small = float(np.abs(answers.rows).max()) < 2.0**100
    tokens = not sequences.is_real or exact(sequences.tokens)
    return tokens and small and exact(answers.rows) and (default is None or exact(default))
