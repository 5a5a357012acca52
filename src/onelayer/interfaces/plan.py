"""What a construction of a function would cost, before anything is built."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True)
class Plan:
    """How fine a construction must be, and what that takes; nothing has been built."""

    construction: str
    levels: int  # cells along one component
    error: float  # predicted; if it is not reachable, that of the most levels that are
    cells: int
    parameters: int  # expected
    bytes: float  # of memory while it is built and proved
    seconds: float
    reachable: bool
    provable: bool  # enough is known of the target
    size: str = ""  # in words, where it is not a number of cells

    def __str__(self) -> str:
        size = self.size or f"{self.levels:,} cells a component, {count_with_commas(self.cells)} in all"
        numbers = f"{count_with_commas(self.parameters)} parameters"
        return f"{self.construction}: {size}, about {numbers}, {self.memory}, {self.duration}"

    @property
    def memory(self) -> str:
        for unit, name in UNITS:
            if self.bytes >= unit:
                return f"{self.bytes / unit:.3g} {name}"
        return f"{self.bytes:.0f} bytes"

    @property
    def duration(self) -> str:
        return f"{self.seconds:.2g} s" if self.seconds >= 0.1 else "< 0.1 s"

    def to_json(self) -> dict[str, Any]:
        """JSON knows no infinity: reals are hexadecimal strings."""
        return {name: x.hex() if isinstance(x, float) else x for name, x in asdict(self).items()}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Plan:
        reals = {name: float.fromhex(entry[name]) for name in ("error", "bytes", "seconds")}
        return Plan(**entry | reals)


def count_with_commas(count: int) -> str:
    return f"{count:,}" if count < 10**10 else f"10^{len(str(count)) - 1}"
