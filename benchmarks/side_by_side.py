"""Networks of one shape trained side by side: small ones spend most of their time between operations.

Parameters are stacked, and every operation is one for all networks. Each has its own first weights and its own
rate; batches are the same for all. Adam, warm-up and cosine are those of `trained`.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from benchmarks.trained import WARM_UP, Make
from onelayer.problems.targets import Target

BATCH = 64


def trained(
    make: Make, width: int, target: Target, members: list[tuple[int, float]], seconds: float, low: float
) -> tuple[list[Any], int]:
    """Networks for pairs of a seed and a rate, after this many CPU seconds for all together, and the steps."""
    import torch
    from torch.func import functional_call, vmap
    from torch.nn.attention import SDPBackend, sdpa_kernel

    nets = []
    for seed, _ in members:
        torch.manual_seed(seed)
        nets.append(make(width, target))
    each = [dict(net.named_parameters()) for net in nets]
    stacked = {name: torch.stack([own[name].detach() for own in each]).requires_grad_() for name in each[0]}
    rates = torch.tensor([rate for _, rate in members])

    def answers(parameters: Any, X: Any) -> Any:
        return functional_call(nets[0], parameters, (X,))

    # A rate for each network: Adam's step at rate 1 is scaled, network by network, before it is taken.
    optimizer = torch.optim.Adam(stacked.values(), 1.0)
    rng, step, start = np.random.default_rng(1), 0, time.process_time()
    with sdpa_kernel(SDPBackend.MATH):  # the one that can be stacked
        while (share := (time.process_time() - start) / seconds) < 1:
            X = rng.uniform(low, 1, (BATCH, target.n, target.d)).astype(np.float32)
            wanted = torch.from_numpy(target.evaluate(X.astype(np.float64)).astype(np.float32))
            found = vmap(answers, in_dims=(0, None))(stacked, torch.from_numpy(X))
            loss = (found - wanted).square().flatten(1).mean(1).sum()
            optimizer.zero_grad()
            loss.backward()
            before = [p.detach().clone() for p in stacked.values()]
            optimizer.step()
            now = rates * (min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * share)) / 2)
            with torch.no_grad():
                for p, old in zip(stacked.values(), before, strict=True):
                    p.copy_(old + (p - old) * now.view(-1, *[1] * (p.dim() - 1)))
            step += 1
    for k, net in enumerate(nets):
        net.load_state_dict({name: p[k].detach() for name, p in stacked.items()})
        net.eval()
    return nets, step
