"""The ledger: every constant that went into a model, with its formula or meaning, and what was compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Value = float | int | str | bool | tuple[float, ...]


@dataclass(frozen=True)
class Constant:
    """One line of the ledger."""

    name: str
    value: Value
    meaning: str


@dataclass(frozen=True)
class Ledger(Mapping[str, Value]):
    """Read like a dict of values; ``lines`` keeps the order and the meanings."""

    lines: tuple[Constant, ...]

    def __getitem__(self, name: str) -> Value:
        for line in self.lines:
            if line.name == name:
                return line.value
        raise KeyError(f"no constant {name!r}; the ledger has {', '.join(self)}")

    def number(self, name: str) -> float:
        """A constant that is a number."""
        value = self[name]
        if isinstance(value, str | tuple):
            raise TypeError(f"the constant {name!r} is {value!r}, not a number")
        return float(value)

    def meaning(self, name: str) -> str:
        return next(line.meaning for line in self.lines if line.name == name)

    def __iter__(self) -> Iterator[str]:
        return (line.name for line in self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{line.name:<{width}}  {show(line.value):<14}  {line.meaning}" for line in self.lines)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain JSON, which knows no infinity: it is written as a hexadecimal float is."""
        return [{"name": c.name, "value": _to_json(c.value), "meaning": c.meaning} for c in self.lines]

    @staticmethod
    def from_json(lines: list[dict[str, Any]]) -> Ledger:
        values = [_from_json(c["value"]) for c in lines]
        return Ledger(tuple(Constant(c["name"], v, c["meaning"]) for c, v in zip(lines, values, strict=True)))


def _to_json(value: Value) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": value.hex()}
    return [_to_json(x) for x in value] if isinstance(value, tuple) else value


def _from_json(value: Any) -> Value:
    if isinstance(value, dict):
        return float.fromhex(value["real"])
    if value == "infinity":  # as it was written before
        return math.inf
    return tuple(map(_real, value)) if isinstance(value, list) else value


def _real(value: Any) -> float:
    return float.fromhex(value["real"]) if isinstance(value, dict) else float(value)


def show(value: Value) -> str:
    """A value for a table: floats to four digits, long vectors shortened."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    shown = ", ".join(f"{x:.3g}" for x in value[:3])
    return f"({shown}{', ...' if len(value) > 3 else ''})"
