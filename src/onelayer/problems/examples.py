"""Examples and queries as a learner reads them: one task or many, of equal or different numbers of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import DataError

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """Examples [N, d] and [N, q], and queries [m, d]; of a series, its lags and values, and no queries."""

    X: Array
    Y: Array
    queries: Array


@dataclass(frozen=True)
class Tasks:
    """Tasks, and how they were given; ``whole`` has all of them, with an axis before, if they are of one size."""

    given: list[Task]
    many: bool  # more than one was given
    plain: bool  # answers are numbers, not vectors
    whole: Task | None = None

    @cached_property
    def listed(self) -> list[Task]:
        if self.whole is None:
            return self.given
        return [Task(*parts) for parts in zip(self.whole.X, self.whole.Y, self.whole.queries, strict=True)]

    def shape_like_y(self, answers: Sequence[Array] | Array) -> Any:
        """Answers [m, q] of each task in the form in which y was given."""
        if isinstance(answers, np.ndarray):
            return answers[..., 0] if self.plain else answers
        found = [a[:, 0] if self.plain else a for a in answers]
        if not self.many:
            return found[0]
        return np.stack(found) if len({len(a) for a in found}) == 1 else found


def read_whole(X: Any, y: Any, queries: Any, d: int, q: int) -> Tasks | None:
    """Arrays of many tasks of one size; None if they are something else, or if anything is wrong with them."""
    if not all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in (X, y, queries)):
        return None
    (B, N), m = X.shape[:2], queries.shape[-2:-1]
    plain = y.ndim == 2
    fit = X.shape == (B, N, d) and y.shape == ((B, N) if plain else (B, N, q)) and (q == 1 or not plain)
    if not fit or queries.shape not in ((B, *m, d), (*m, d)) or 0 in (B, *m):
        return None
    if not all(np.isfinite(part).all() for part in (X, y, queries)):
        return None
    asked = np.broadcast_to(queries, (B, *m, d)) if queries.ndim == 2 else queries
    return Tasks([], True, plain, Task(X, y.reshape(B, N, q), asked))


def read_tasks(X: Any, y: Any, queries: Any, d: int, q: int, labels: bool = False) -> Tasks:
    """X [N, d], y [N] or [N, q], queries [m, d]; with an axis of tasks before them, or lists of such arrays."""
    if y is None or queries is None:
        missing = "y" if y is None else "queries"
        raise _bad("examples X, their answers y, and queries", f"there are no {missing}", "Give all three.")
    many = _axes(X) == 3
    whole = read_whole(X, y, queries, d, q) if many and not labels else None
    if whole is not None:
        return whole
    tables = [_numbers(part, "X") for part in (X if many else [X])]
    answers = [_numbers(part, "y") for part in (y if many else [y])]
    apart = many and _axes(queries) == 3
    asked = [_numbers(part, "queries") for part in (queries if apart else [queries])]
    asked = asked if apart or not many else asked * len(tables)
    if not len(tables) == len(answers) == len(asked):
        found = f"there are {len(tables)} of X, {len(answers)} of y and {len(asked)} of queries"
        raise _bad("as many tasks in X as in y and queries", found, "Give the same number of each.")
    plain = all(a.ndim == 1 for a in answers)
    listed = []
    fine = all(
        np.isfinite(np.concatenate([part.ravel() for part in parts])).all() for parts in (tables, answers, asked)
    )
    for t, (x, a, b) in enumerate(zip(tables, answers, asked, strict=True)):
        where = f"task {t}, " if many else ""
        x, b = _wide(x, d, f"{where}X"), _wide(b, d, f"{where}queries")
        a = a.reshape(-1, 1) if a.ndim < 2 else a
        if a.shape != (len(x), q):
            needs = f"{len(x)} answers of {q} component{'s' if q > 1 else ''} each"
            raise _bad(needs, f"{where}y has shape {a.shape}", "Give one answer for each example.")
        if len(b) == 0:
            raise _bad("at least one query", f"{where}there is none", "Give at least one query.")
        for name, values in () if fine else (("example", x), ("answer", a), ("query", b)):
            _finite(values, f"{where}{name}")
        if labels and not np.isin(a, (0, 1)).all():
            i = int(np.argmax(~np.isin(a, (0, 1)).all(axis=1)))
            raise _bad("labels 0 and 1", f"{where}answer {i} is {a[i, 0]:g}", "Name one class 1 and the other 0.")
        listed.append(Task(x, a, b))
    return Tasks(listed, many, plain)


def read_series(X: Any, lags: int, width: int) -> Tasks:
    """Values [T], [T, width], or with an axis of series before them: each value with this many before it."""
    values = _numbers(X, "X")
    plain = width == 1 and (values.ndim == 1 or values.shape[-1] != 1)
    values = values[..., None] if plain else values
    if values.ndim not in (2, 3) or values.shape[-1] != width:
        raise _bad(f"values of {width} components", f"X has shape {np.shape(X)}", "Give [T, k], or [B, T, k].")
    many = values.ndim == 3
    series = values if many else values[None]
    if series.shape[1] <= lags:
        needs = f"at least {lags + 1} values, the last of them after {lags}"
        raise _bad(needs, f"there are {series.shape[1]}", "Give a longer series.")
    listed = []
    for i, s in enumerate(series):
        _finite(s, f"series {i}, value" if many else "value")
        before = [s[lags - k - 1 : len(s) - k - 1] for k in range(lags)]
        listed.append(Task(np.concatenate(before, axis=1), s[lags:], np.empty((0, width))))
    return Tasks(listed, many, plain)


def _axes(values: Any) -> int:
    """How many axes an array has, or a list of arrays of different sizes."""
    try:
        return np.ndim(values)
    except ValueError:
        return 1 + max(_axes(part) for part in values)


def _numbers(values: Any, name: str) -> Array:
    try:
        found = np.asarray(values)
        if np.iscomplexobj(found):
            raise TypeError
        return np.asarray(found, np.float64)
    except (TypeError, ValueError):
        raise _bad("numbers", f"{name} holds something else", "Give arrays of numbers.") from None


def _wide(table: Array, d: int, name: str) -> Array:
    table = table.reshape(-1, d) if table.size == 0 else table
    table = table[:, None] if table.ndim == 1 and d == 1 else table
    if table.ndim != 2 or table.shape[1] != d:
        raise _bad(f"vectors of {d} components, as compiled", f"{name} has shape {table.shape}", f"Give [n, {d}].")
    return table


def _finite(values: Array, name: str) -> None:
    if not np.isfinite(values).all():
        i = int(np.argmax(~np.isfinite(values).all(axis=1)))
        c = int(np.argmax(~np.isfinite(values[i])))
        raise _bad(
            "finite numbers", f"{name} {i} has {values[i, c]} at component {c}", "Leave it out, or correct it."
        )


def _bad(needs: str, found: str, remedy: str) -> DataError:
    return DataError("data", needs, found, remedy)
