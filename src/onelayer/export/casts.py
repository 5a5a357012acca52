"""A PyTorch module that says so when it runs in an arithmetic that its answers were not built for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import torch
from torch import Tensor, nn

from onelayer.errors import CastWarning

#: In which dtypes answers that were built for one are exact, too: those that have all of its numbers.
HOLDS = {
    "float64": ("float64",),
    "float32": ("float32", "float64"),
    "float16": ("float16", "float32", "float64"),
    "bfloat16": ("bfloat16", "float32", "float64"),
}


class NoticesCasts(nn.Module):
    """Where ``arithmetic`` is "", nothing was built for it, and no cast is remarked upon."""

    def __init__(self, arithmetic: str) -> None:
        super().__init__()
        self.arithmetic = arithmetic

    def _apply(self, change: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """What `half`, `to` and the like do."""
        before = dtype_of(self)
        found: Any = super()._apply(change, recurse)  # type: ignore[no-untyped-call]
        after = dtype_of(self)
        if after != before:
            self.warn_unless_held(after)
        return found  # type: ignore[no-any-return]

    def notice_casts(self, device: str, layers: Iterable[nn.Module]) -> None:
        """Warn where products are not computed in the dtype of the weights: in 8 bits, or by autocast."""
        if any(not isinstance(layer.weight, Tensor) for layer in layers):
            self.warn_unless_held("int8")
        elif torch.is_autocast_enabled(device):
            self.warn_unless_held(_name(torch.get_autocast_dtype(device)))

    def warn_unless_held(self, runs: str) -> None:
        if self.arithmetic and runs not in HOLDS[self.arithmetic]:
            warnings.warn(CastWarning("to_torch", self.arithmetic, runs), stacklevel=3)


def dtype_of(module: nn.Module) -> str:
    return _name(next(module.parameters()).dtype)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
