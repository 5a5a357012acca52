"""Layers that learn from their prompt, trained on tasks that are drawn anew at every step.

Every task is seen once, so that nothing can be learned by heart: what is left is the algorithm. All twins have Adam
with a warm-up, a cosine to 0, and gradients cut to length 1: loops may blow single tasks up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onelayer.lab.networks import framework, one_thread

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]
Weights = dict[str, Any]
#: Tasks of a batch as tensors.
Draw = Callable[[Any], Any]
Loss = Callable[[Weights, Any], Any]
WARM_UP, LONGEST = 20, 1.0


def start(sizes: dict[str, tuple[tuple[int, ...], float]], seed: int) -> Weights:
    """First weights: normal, of the given shapes and standard deviations."""
    torch = framework()
    generator = torch.Generator().manual_seed(seed)
    drawn = {name: spread * torch.randn(size, generator=generator) for name, (size, spread) in sizes.items()}
    return {name: tensor.requires_grad_() for name, tensor in drawn.items()}


def fit(weights: Weights, loss: Loss, draw: Draw, steps: int, rate: float, seed: int) -> None:
    """Train the weights in place."""
    torch = framework()
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(list(weights.values()), rate, fused=True)
    with one_thread(torch):
        for step in range(steps):
            warm = min(1.0, (step + 1) / WARM_UP)
            optimiser.param_groups[0]["lr"] = rate * warm * (1 + math.cos(math.pi * step / steps)) / 2
            optimiser.zero_grad()
            loss(weights, draw(generator)).backward()
            torch.nn.utils.clip_grad_norm_(weights.values(), LONGEST)
            optimiser.step()


def fresh(draw: Draw, seed: int) -> Any:
    """Tasks of another seed, the same for every layer that is measured."""
    return draw(framework().Generator().manual_seed(seed + 10**6))


def measure(weights: Weights, loss: Loss, tasks: Any) -> float:
    torch = framework()
    with torch.no_grad(), one_thread(torch):
        return float(loss(weights, tasks))


def given(arrays: dict[str, Array]) -> Weights:
    """Constructed weights, to be measured as trained ones are."""
    return {name: framework().from_numpy(np.asarray(array, np.float32)) for name, array in arrays.items()}


def numbers(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().double().numpy())


def cosine(p: Array, other: Array) -> float:
    """Between two layers as coefficient maps."""
    return float((p * other).sum() / math.sqrt((p * p).sum() * (other * other).sum()))
