"""A learning algorithm as data: a state, what an example contributes, a step, an answer, and what tokens hold.

What `equals` proves of a network is stated in these terms, and `Algorithm.run` computes them in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from onelayer.problems.scripts import Array, Script

Gather = Literal["mean", "sum", "solve", "softmax"]
SCRIPTS = ("term", "step", "answer", "example", "query", "logit")
PANEL = ("judge", "weigh", "judged", "either")


@dataclass(frozen=True)
class Algorithm:
    """Scripts read the groups s (state), x and y (an example, or the x of a query), m (what terms gather to); a
    term may read e too, the example's token.

    ``gather``: the mean or the sum of the terms; the solution of ridge systems, whose terms are keys and values; or
    averages by softmax of ``logit``, which reads q too, the x of the token that asks. With judges, ``answer`` reads
    v, the mean of what they weigh when the last step was taken.
    """

    x: int
    y: int
    m: int
    steps: int
    start: tuple[float, ...]
    gather: Gather
    term: Script
    step: Script
    answer: Script
    example: Script
    query: Script | None = None  # None: every token is an example, and is asked
    logit: Script | None = None
    ridge: tuple[float, ...] = ()
    judge: Script | None = None  # what a judge holds; then the three others are there too
    weigh: Script | None = None  # s, x, y: what it adds to v
    judged: Script | None = None  # s, x, v: what a query holds after the layer of judges
    either: Script | None = None  # s, x: the two answers between which v decides

    @property
    def outputs(self) -> int:
        return len(self.answer.outputs)

    @property
    def reads_tokens(self) -> bool:
        """Whether terms are made of the examples' tokens, the group e."""
        return any(line.startswith("e ") for line in self.term.lines)

    def run(self, X: Array, Y: Array, queries: Array, judges: int = 0) -> Array:
        """Answers [m, outputs] at queries [m, x], after all steps on examples [N, x] and [N, y], in float64; of
        these, this many at the end are judges."""
        learnt = len(X) - judges
        for states in self.states(X[:learnt], Y[:learnt], queries):
            last = states
        if self.weigh is None:
            return self.answers(last, queries)
        groups = {"s": last, "x": list(X[learnt:].T), "y": list(Y[learnt:].T)}
        means = [float(np.sum(u)) / max(judges, 1) for u in self.weigh.run(groups)]
        return self.answers(last, queries, found=means)

    def states(self, X: Array, Y: Array, queries: Array) -> Iterator[list[Any]]:
        """The state before the first step and after each; softmax has one for every query."""
        x, y = list(np.asarray(X, np.float64).T), list(np.asarray(Y, np.float64).T)
        s: list[Any] = [np.float64(value) for value in self.start]
        yield s
        for _ in range(self.steps):
            wide = [np.reshape(value, (-1, 1)) for value in s]
            token = self.example.run({"s": wide, "x": x, "y": y}) if self.reads_tokens else []
            terms = self.term.run({"s": wide, "x": x, "y": y, "e": token})
            columns = [np.broadcast_to(t, (max(np.size(wide[0]) if wide else 1, 1), len(X))) for t in terms]
            s = self.step.run({"s": s, "m": self._gather(wide, x, y, columns, queries)})
            yield s

    def answers(
        self, s: Sequence[Any], queries: Array, Y: Array | None = None, found: Sequence[float] = ()
    ) -> Array:
        groups: dict[str, Any] = {"s": s, "x": list(np.asarray(queries, np.float64).T), "v": found}
        groups |= {} if Y is None else {"y": list(np.asarray(Y, np.float64).T)}
        given = [np.broadcast_to(np.ravel(a), (len(queries),)) for a in self.answer.run(groups)]
        return np.stack(given, axis=-1)

    def _gather(
        self, s: list[Any], x: list[Array], y: list[Array], terms: list[Array], queries: Array
    ) -> list[Any]:
        if self.gather == "solve":
            return self._solve(np.stack([t[0] for t in terms], axis=-1))
        if self.gather == "softmax":
            return self._average(s, x, y, terms, queries)
        count = terms[0].shape[1]
        if count == 0:
            return [0.0] * len(terms)
        return [np.squeeze(t.mean(axis=1) if self.gather == "mean" else t.sum(axis=1)) for t in terms]

    def _average(
        self, s: list[Any], x: list[Array], y: list[Array], terms: list[Array], queries: Array
    ) -> list[Any]:
        assert self.logit is not None
        asking = [column[:, None] for column in np.asarray(queries, np.float64).T]
        logits = self.logit.run({"s": s, "x": x, "y": y, "q": asking})
        if terms[0].shape[1] == 0:
            return [np.zeros(len(queries)) for _ in terms]
        each = len(terms) // len(logits)
        found = []
        for i, term in enumerate(terms):
            l = logits[i // each]
            weights = np.exp(l - l.max(axis=1, keepdims=True))
            found.append((weights * term).sum(axis=1) / weights.sum(axis=1))
        return found

    def _solve(self, terms: Array) -> list[Any]:
        """terms [N, keys and values of each system] to solutions, row by row."""
        size = terms.shape[1] // len(self.ridge)
        rows = next(k for k in range(size - 1, 0, -1) if k * (size - k) == self.m // len(self.ridge))
        found: list[Any] = []
        for i, ridge in enumerate(self.ridge):
            part = terms[:, i * size : (i + 1) * size]
            K, V = part[:, :rows], part[:, rows:]
            found += list(np.linalg.solve(K.T @ K + ridge * np.eye(rows), K.T @ V).ravel())
        return found

    def tokens(self, name: str, X: Array, Y: Array | None = None, out: Array | None = None) -> Array:
        """Tokens [..., width] of examples, queries or judges [..., x] and [..., y] at the start, in ``out``."""
        script = {"query": self.query, "judge": self.judge}.get(name) or self.example
        groups: dict[str, Any] = {"s": self.start, "x": np.moveaxis(np.asarray(X, np.float64), -1, 0)}
        groups |= {} if Y is None else {"y": np.moveaxis(np.asarray(Y, np.float64), -1, 0)}
        found = np.empty((*np.shape(X)[:-1], len(script.outputs))) if out is None else out
        copied = [script.lines[i] for i in script.outputs[: self.x]] == [f"x {i}" for i in range(self.x)]
        if copied:  # all at once
            found[..., : self.x] = X
        for i, value in enumerate(script.run(groups)):
            if not copied or i >= self.x:
                found[..., i] = value
        return found

    def to_json(self) -> dict[str, Any]:
        """As a certificate has it."""
        scripts = {name: getattr(self, name) for name in SCRIPTS + (PANEL if self.judge else ())}
        return {
            "x": self.x,
            "y": self.y,
            "m": self.m,
            "steps": self.steps,
            "start": [value.hex() for value in self.start],
            "gather": self.gather,
            "ridge": [value.hex() for value in self.ridge],
            **{name: None if script is None else script.to_json() for name, script in scripts.items()},
        }

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Algorithm:
        named = SCRIPTS + (PANEL if "judge" in entry else ())
        scripts = {name: None if entry[name] is None else Script.from_json(entry[name]) for name in named}
        numbers: dict[str, Any] = {name: tuple(map(float.fromhex, entry[name])) for name in ("start", "ridge")}
        plain: dict[str, Any] = {name: entry[name] for name in ("x", "y", "m", "steps", "gather")}
        return Algorithm(**plain, **numbers, **scripts)  # type: ignore[arg-type]
