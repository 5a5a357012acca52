"""A learner: examples and queries go in, answers come out; nothing is stored but the algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError, OptionError
from onelayer.interfaces.answers import Answers
from onelayer.interfaces.error_bars import bound_answers, can_bound, refusing_singular
from onelayer.network import Transformer
from onelayer.network.blocks import evaluate
from onelayer.network.reference import evaluate_in_order
from onelayer.network.trace import Trace, trace
from onelayer.problems.algorithms import Algorithm
from onelayer.problems.answers import AnswerForm
from onelayer.problems.examples import Task, Tasks, read_series, read_tasks

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Examples(Answers):
    """Which algorithm the network is, and the box of examples for which a bound was proved."""

    kind: ClassVar[str] = "examples"
    says: ClassVar[str] = "learns from the examples in its prompt"
    proved_by: ClassVar[str] = "Build it again with onelayer.learner, which asks the checker."

    learner: str
    words: str  # the algorithm in a few words
    algorithm: Algorithm
    reads: Literal["examples", "series"]
    low: float  # of every component of an example
    high: float
    largest: float  # of every answer, in magnitude
    error_bound: float  # to what the steps tend to, in real arithmetic, within the box; infinite if none is proved
    labels: bool = False
    lags: int = 1
    rounding_bound: float = (
        np.inf
    )  # how far floats are from the algorithm in the box; infinite if nothing is proved
    most_examples: int = 0  # up to which that holds
    judges: float = 0.0  # the share of the examples, the last of them, that judge

    def tasks(self, X: Any, y: Any, queries: Any, anywhere: bool = False) -> Tasks:
        """Inputs, checked; where a bound was proved, they must lie in its box, unless they may be ``anywhere``."""
        if self.reads == "series":
            width = self.algorithm.y
            if y is not None or queries is not None:
                more = f"there are {'answers' if y is not None else 'queries'}"
                raise DataError(
                    self.learner, "a series alone", more, "Give predict(S): it forecasts each next value."
                )
            return read_series(X, self.lags, width)
        found = read_tasks(X, y, queries, self.algorithm.x, self.algorithm.y, self.labels)
        if self.judges and any(len(task.X) == 1 for task in found.listed[: 1 if found.whole else None]):
            needs = "examples to learn from and examples that judge"
            raise DataError(self.learner, needs, "there is one example in all", "Give at least two, or none.")
        bounded = np.isfinite(self.error_bound) and not anywhere
        if bounded and (found.whole is None or self._outside(found.whole)):
            for task in found.listed:
                self._inside(task)
        return found

    def prompts(self, tasks: Tasks, dtype: Any) -> tuple[Array, Array]:
        """Tokens [B, n, width] of the start state, examples first, and the length of each prompt."""
        a = self.algorithm
        if tasks.whole is not None:
            return self._whole(tasks.whole, dtype)
        listed = tasks.listed
        examples, queries = (
            np.array([len(part) for part in parts]) for parts in zip(*map(_parts, listed), strict=True)
        )
        lengths, places = examples + queries, np.arange((examples + queries).max())
        tokens = np.zeros((len(listed), len(places), len(a.example.outputs)), dtype)
        X, Y = (np.concatenate(parts) for parts in zip(*((t.X, t.Y) for t in listed), strict=True))
        tokens[places < examples[:, None]] = a.tokens("example", X, Y)
        if a.judge is not None:
            learnt = examples - [self.judging(len(t.X)) for t in listed]
            judging = (places >= learnt[:, None]) & (places < examples[:, None])
            kept = np.concatenate([np.arange(len(t.X)) >= n for t, n in zip(listed, learnt, strict=True)])
            tokens[judging] = a.tokens("judge", X[kept], Y[kept])
        if a.query is not None:
            asking = (places >= examples[:, None]) & (places < lengths[:, None])
            tokens[asking] = a.tokens("query", np.concatenate([t.queries for t in listed]))
        return tokens, lengths

    def _whole(self, tasks: Task, dtype: Any) -> tuple[Array, Array]:
        """The same where all tasks are of one size."""
        a, (B, N), m = self.algorithm, tasks.X.shape[:2], tasks.queries.shape[1]
        learnt, tokens = N - self.judging(N), np.empty((B, N + m, len(a.example.outputs)), dtype)
        for name, rows in (("example", slice(learnt)), ("judge", slice(learnt, N))):
            if name == "example" or learnt < N:
                a.tokens(name, tasks.X[:, rows], tasks.Y[:, rows], tokens[:, rows])
        a.tokens("query", tasks.queries, None, tokens[:, N:])
        return tokens, np.full(B, N + m)

    def predict_with_bounds(
        self, transformer: Transformer, X: Any, y: Any = None, queries: Any = None
    ) -> tuple[Any, Any]:
        """Answers, and how far each may be from the exact ridge estimate of its examples; of mesa layers."""
        if not can_bound(transformer):
            needs, found = "a learner that solves: mesa or recurrence", f"this one is {self.learner}"
            raise OptionError(
                "learner", needs, found, "Leave bounds out; error_bound is for all examples of a box."
            )
        tasks = self.tasks(X, y, queries)
        tokens, lengths = self.prompts(tasks, transformer.dtype)
        bounds = []
        for prompt, task, n in zip(tokens, tasks.listed, lengths, strict=True):
            first = len(task.X) if self.algorithm.query is not None else 0
            with refusing_singular(transformer, prompt[None, :n], self.learner):
                out = evaluate(transformer, prompt[None, :n])[0]
            bounds.append(bound_answers(transformer, prompt[:n], out, first))
        return self.predict(transformer, X, y, queries), tasks.shape_like_y(bounds)

    def judging(self, examples: int) -> int:
        """How many of the examples judge: their share, and at least one."""
        return 0 if not self.judges or not examples else max(1, int(self.judges * examples))

    def predict(
        self,
        transformer: Transformer,
        X: Any,
        y: Any = None,
        queries: Any = None,
        *,
        in_order: bool = False,
        anywhere: bool = False,
    ) -> Any:
        """Answers at the queries; of a series, at each value from the first with all its lags, for the next one.
        With ``in_order`` sums have one order on every machine; ``anywhere``, a bound's box is not asked for.
        """
        tasks = self.tasks(X, y, queries, anywhere)
        tokens, lengths = self.prompts(tasks, transformer.dtype)
        alike = (lengths == lengths[0]).all()
        whole = 0 if tasks.whole is None else tasks.whole.X.shape[1]
        # What overflows is reported below.
        with np.errstate(all="ignore"), refusing_singular(transformer, tokens, self.learner):
            if in_order:
                out = evaluate_in_order(transformer, tokens, None if alike else lengths)[:, whole:]
            else:
                out = evaluate(transformer, tokens, None if alike else lengths, first=whole)
        if whole and np.isfinite(out).all():
            return tasks.shape_like_y(out)
        if whole:
            out = np.concatenate([np.zeros((len(out), whole, out.shape[2]), out.dtype), out], axis=1)
        return tasks.shape_like_y(self._answers_asked(tasks, lengths, out, transformer))

    def _answers_asked(self, tasks: Tasks, lengths: Array, out: Array, transformer: Transformer) -> list[Array]:
        found, fine = [], bool(np.isfinite(out).all())
        for i, (task, n) in enumerate(zip(tasks.listed, lengths, strict=True)):
            rows = out[i, len(task.X) if self.algorithm.query is not None else 0 : n]
            if not fine and not np.isfinite(rows).all():
                where = f"a value of task {i}" if tasks.many else "a value"
                needs = f"inputs for which no value of the forward pass leaves the range of {transformer.dtype}"
                raise DataError("data", needs, f"{where} does", "Rescale X and y, or take fewer steps.")
            found.append(rows)
        return found

    def follow(self, X: Any, y: Any = None, queries: Any = None) -> Any:
        """The textbook algorithm in NumPy and float64, as many steps: what the network is compared with."""
        tasks = self.tasks(X, y, queries)
        if self.algorithm.query is not None:
            listed = tasks.listed
            return tasks.shape_like_y(
                [self.algorithm.run(t.X, t.Y, t.queries, self.judging(len(t.X))) for t in listed]
            )
        found = []
        for t in tasks.listed:
            rows = []
            for k in range(1, len(t.X) + 1):
                *_, last = self.algorithm.states(t.X[:k], t.Y[:k], t.queries)
                rows.append(self.algorithm.answers(last, t.X[k - 1 : k], t.Y[k - 1 : k])[0])
            found.append(np.stack(rows))
        return tasks.shape_like_y(found)

    def trace(self, transformer: Transformer, X: Any, y: Any = None, queries: Any = None) -> Trace:
        """Every value of one task's prompt: `loop3.context` holds the tokens after the fourth loop."""
        tasks = self.tasks(X, y, queries)
        tokens, lengths = self.prompts(tasks, transformer.dtype)
        with np.errstate(all="ignore"), refusing_singular(transformer, tokens, self.learner):
            return trace(transformer, tokens, lengths if tasks.many else None)

    def _outside(self, tasks: Task) -> bool:
        """Whether anything is beyond the box."""
        far = max(np.abs(part - (self.low + self.high) / 2).max(initial=0) for part in (tasks.X, tasks.queries))
        return bool(far >= (self.high - self.low) / 2 or np.abs(tasks.Y).max(initial=0) > self.largest)

    def _inside(self, task: Task) -> None:
        """Refuse what the bound does not cover."""
        for name, values, low, high in (
            ("example", task.X, self.low, self.high),
            ("query", task.queries, self.low, self.high),
            ("answer", task.Y, -self.largest, self.largest),
        ):
            out = (values < low) | (values > high)
            if out.any():
                i, c = (int(k[0]) for k in np.nonzero(out))
                needs = f"every {name} in [{low:g}, {high:g}], for which the bound was proved"
                wider = f"largest={abs(values[i, c]):g}" if name == "answer" else f"high={abs(values[i, c]):g}"
                found = f"{name} {i} has {values[i, c]:g} at component {c}"
                remedy = f'Rescale, or compile with {wider}; or ask with outside="answer", without the bound.'
                raise DataError("data", needs, found, remedy)

    def unclaimed(self, _claims: Iterable[Mapping[str, Any]]) -> str:
        """The algorithm must be that of every claim, and the bound one that is claimed for the whole box."""
        listed = list(_claims)
        if any(claim.get("target") != self.algorithm.to_json() for claim in listed):
            return "a claim is about another algorithm"
        for kinds, bound in ((("within", "attends"), self.error_bound), (("rounds",), self.rounding_bound)):
            own = [_read_box(claim) for claim in listed if claim["type"] in kinds]
            fit = any(
                n["bound"] <= bound and n["low"] <= self.low and self.high <= n["high"] and n["y"] >= self.largest
                for n in own
            )
            if not fit and bound < np.inf:
                return f"no claim says that a bound is {bound:.4g} ({' or '.join(kinds)})"
        return ""

    def describe(self) -> str:
        bound = f", within {self.error_bound:.4g} of its limit" if np.isfinite(self.error_bound) else ""
        return f"{self.words}{bound}"

    def to_json(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).hex() for name in NUMBERS}
        plain = {name: getattr(self, name) for name in PLAIN}
        return super().to_json() | numbers | plain | {"algorithm": self.algorithm.to_json()}

    @classmethod
    def from_json(cls, entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> Examples:
        numbers: dict[str, Any] = {name: float.fromhex(entry[name]) for name in NUMBERS}
        plain: dict[str, Any] = {name: entry[name] for name in PLAIN}
        common = cls.common(entry, form, vocabulary)
        return cls(**common, **numbers, **plain, algorithm=Algorithm.from_json(entry["algorithm"]))


def _read_box(claim: Mapping[str, Any]) -> dict[str, float]:
    """The bound of a claim, and the box that it is about; that of x is [-x, x]."""
    found = {k: float.fromhex(claim[k]) for k in ("bound", "y", "x", "low", "high") if k in claim}
    return {"low": -found["x"], "high": found["x"]} | found if "x" in found else found


def _parts(task: Task) -> tuple[Array, Array]:
    return task.X, task.queries


NUMBERS = ("low", "high", "largest", "error_bound", "rounding_bound", "judges")
PLAIN = ("learner", "words", "reads", "labels", "lags", "most_examples")
