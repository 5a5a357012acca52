"""Networks of one shape trained side by side: small ones spend most of their time between operations.

Parameters are stacked, and every operation is one for all networks. Numbers of all tokens of a batch lie side by
side in memory, since these networks are far narrower than their batches: so a step of five networks costs about
what a step of one costs in plain PyTorch. Each has its own first weights, its own rate and its own inputs. Adam,
warm-up and cosine are those of `trained`, and so are the networks: trained weights are put into its modules,
which must then give the same answers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.trained import HEADS, WARM_UP, Make
from onelayer.problems.targets import Target
from onelayer.problems.targets.box import Box

BATCH, BLOCK = 32, 128
KEEP, KEEP_SQUARES, TINY = 0.9, 0.999, 1e-8
#: How far answers of the stacked networks may be from those of their modules, for sums in another order.
SAME = 1e-3
Draw = Callable[[np.random.Generator, Box, int], Any]


def uniform(rng: np.random.Generator, box: Box, count: int) -> Any:
    return rng.uniform(box.low, box.high, (count, box.n, box.d))


def with_edges(rng: np.random.Generator, box: Box, count: int) -> Any:
    """As inputs are drawn where the largest error is looked for."""
    return rng.permutation(box.draw(rng, count))


DRAWS: dict[str, Draw] = {"uniform": uniform, "half at edges": with_edges}


@dataclass(frozen=True)
class Member:
    """One network of the stack."""

    seed: int
    rate: float
    draw: str


def linear(p: dict[str, Any], name: str, h: Any) -> Any:
    """Of numbers [networks, components, tokens]."""
    import torch

    return torch.baddbmm(p[f"{name}.bias"][:, :, None], p[f"{name}.weight"], h)


def norm(p: dict[str, Any], name: str, h: Any) -> Any:
    import torch

    away = h - h.mean(1, keepdim=True)
    one = away * torch.rsqrt(away.square().mean(1, keepdim=True) + 1e-5)
    return torch.addcmul(p[f"{name}.bias"][:, :, None], one, p[f"{name}.weight"][:, :, None])


def attention(p: dict[str, Any], name: str, h: Any, n: int) -> Any:
    import torch

    M, width, tokens = h.shape
    p = p | {f"{name}.in.{part}": p[f"{name}.in_proj_{part}"] for part in ("weight", "bias")}
    parts = linear(p, f"{name}.in", h).view(M, 3, HEADS, width // HEADS, n, tokens // n)
    q, k, v = parts.unbind(1)
    weights = torch.softmax((q[:, :, :, :, None] * k[:, :, :, None]).sum(2) * (width // HEADS) ** -0.5, 3)
    return linear(p, f"{name}.out_proj", (weights[:, :, None] * v[:, :, :, None]).sum(4).reshape(M, width, tokens))


def transformer(p: dict[str, Any], x: Any, n: int, per_token: bool) -> Any:
    layers = sum(name.endswith("in_proj_weight") for name in p)
    h = linear(p, "before.0", x)
    for at in (f"before.{k + 1}" for k in range(layers)):
        h = h + attention(p, f"{at}.self_attn", norm(p, f"{at}.norm1", h), n)
        h = h + linear(p, f"{at}.linear2", linear(p, f"{at}.linear1", norm(p, f"{at}.norm2", h)).relu())
    h = norm(p, f"before.{layers + 1}", h)
    return linear(p, "out", h if per_token else mean_over_tokens(h, n))


def deep_sets(p: dict[str, Any], x: Any, n: int, per_token: bool) -> Any:
    import torch

    h = linear(p, "each.2", linear(p, "each.0", x).relu()).relu()
    mean = mean_over_tokens(h, n)
    h = linear(p, "all.0", torch.cat([h, mean.repeat(1, 1, n)], 1) if per_token else mean).relu()
    return linear(p, "all.4", linear(p, "all.2", h).relu())


def mean_over_tokens(h: Any, n: int) -> Any:
    return h.view(*h.shape[:2], n, -1).mean(2)


def batches(target: Target, box: Box, members: list[Member]) -> Iterator[tuple[Any, Any]]:
    """Fresh inputs [networks, d, tokens] and what is wanted there, without end; many are drawn at a time."""
    import torch

    rng = [np.random.default_rng([1, member.seed]) for member in members]
    while True:
        drawn = [
            DRAWS[member.draw](own, box, BLOCK * BATCH).astype(np.float32)
            for own, member in zip(rng, members, strict=True)
        ]
        wanted = [target.evaluate(X.astype(np.float64)).astype(np.float32) for X in drawn]
        yield from zip(*(in_blocks(torch.from_numpy(np.stack(each))) for each in (drawn, wanted)), strict=True)


def in_blocks(values: Any) -> Iterator[Any]:
    """[networks, sequences, (tokens,) components] as batches of [networks, components, tokens x sequences]."""
    for part in values.split(BATCH, 1):
        yield part.movedim(1, -1).movedim(-2, 1).flatten(2).contiguous()


def trained(
    make: Make, width: int, target: Target, box: Box, members: list[Member], seconds: float
) -> tuple[list[Any], int]:
    """Networks after this many CPU seconds for all together, and the steps that each of them made."""
    import torch

    nets = []
    for member in members:
        torch.manual_seed(member.seed)
        nets.append(make(width, target))
    shapes = {name: each.shape for name, each in nets[0].named_parameters()}
    flat = torch.stack([torch.cat([p.detach().flatten() for p in net.parameters()]) for net in nets])
    flat.requires_grad_()
    answer = deep_sets if any(name.startswith("each") for name in shapes) else transformer

    def parts() -> dict[str, Any]:
        each = flat.split([shape.numel() for shape in shapes.values()], 1)
        named = zip(shapes.items(), each, strict=True)
        return {name: part.view(len(nets), *shape) for (name, shape), part in named}

    rates = torch.tensor([[member.rate] for member in members])
    mean, squares, step, start = torch.zeros_like(flat), torch.zeros_like(flat), 0, time.process_time()
    for X, wanted in batches(target, box, members):
        if (share := (time.process_time() - start) / seconds) >= 1:
            break
        loss = (answer(parts(), X, target.n, target.per == "token") - wanted).square().mean((1, 2)).sum()
        (slope,) = torch.autograd.grad(loss, flat)
        step += 1
        now = rates * (min(1.0, step / WARM_UP) * (1 + math.cos(math.pi * share)) / 2)
        with torch.no_grad():
            mean.lerp_(slope, 1 - KEEP)
            squares.lerp_(slope.square_(), 1 - KEEP_SQUARES)
            root = (squares / (1 - KEEP_SQUARES**step)).sqrt_().add_(TINY)
            flat.sub_(now * mean / root / (1 - KEEP**step))
    own = parts()
    for k, net in enumerate(nets):
        net.load_state_dict({name: p[k].detach() for name, p in own.items()})
        net.eval()
    with torch.no_grad():
        must_agree(answer(own, X, target.n, target.per == "token"), nets, X, target.n)
    return nets, step


def must_agree(found: Any, nets: list[Any], X: Any, n: int) -> None:
    """That the modules answer as the stack does: else errors would be those of networks nobody trained."""
    for own, net, x in zip(found, nets, X, strict=True):
        alone = net(x.view(len(x), n, -1).movedim(2, 0).movedim(1, 2).contiguous())
        wanted = alone.movedim(0, -1).movedim(-2, 0).flatten(1)
        far = (own - wanted).abs().max() / (1 + wanted.abs().max())
        if far > SAME:  # not of NaN: a rate was too high
            raise AssertionError(f"the stacked network and its module differ by {float(far)}")


def seconds_of_a_step_alone(net: Any, target: Target, box: Box, steps: int = 40) -> float:
    """CPU seconds of a step of one network in plain PyTorch, its inputs drawn before: what stacking saves."""
    import torch

    X = torch.from_numpy(uniform(np.random.default_rng(0), box, BATCH).astype(np.float32))
    wanted = torch.from_numpy(target.evaluate(X.double().numpy()).astype(np.float32))
    optimizer, start = torch.optim.Adam(net.parameters()), 0.0
    for step in range(2 * steps):
        start = time.process_time() if step == steps else start
        optimizer.zero_grad()
        (net(X) - wanted).square().mean().backward()
        optimizer.step()
    return (time.process_time() - start) / steps
