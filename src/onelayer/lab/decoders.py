"""A small GPT as a function of its weights: attention and ReLU units, a layer norm before each, tokens of numbers.

It is trained as all layers that learn from their prompt are (`prompts`), and gives its attention away, for who
looks into it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onelayer.lab.networks import framework
from onelayer.lab.prompts import Weights


@dataclass(frozen=True)
class Decoder:
    """Tokens [B, n, inputs] to answers [B, n, outputs], n at most ``length``."""

    inputs: int
    outputs: int
    length: int
    width: int
    layers: int
    heads: int = 1

    def sizes(self) -> dict[str, tuple[tuple[int, ...], float]]:
        """Shapes and spreads of the first weights: biases begin at 0, what a layer adds and answers begin small."""
        w, inner = self.width, 4 * self.width
        spread, out = w**-0.5, (2 * self.layers * w) ** -0.5
        found: dict[str, tuple[tuple[int, ...], float]] = {
            "embedding": ((self.inputs, w), 1.0),
            "places": ((self.length, w), 0.1),
        }
        for i in range(self.layers):
            found |= {f"{i}.{name}": ((w, w), spread) for name in ("W_Q", "W_K", "W_V")}
            found |= {f"{i}.W_O": ((w, w), out), f"{i}.in": ((w, inner), spread), f"{i}.out": ((inner, w), out / 2)}
            found |= {f"{i}.{name}.bias": ((many,), 0.0) for name, many in (("in", inner), ("out", w))}
        return found | {"head": ((w, self.outputs), spread / 10), "head.bias": ((self.outputs,), 0.0)}

    def run(self, t: Weights, tokens: Any, seen: Any) -> tuple[Any, list[Any]]:
        """Answers, and attention [B, heads, n, n] of each layer; a query sees the keys that ``seen`` [n, n] has."""
        torch, n = framework(), tokens.shape[1]
        h, attention = tokens @ t["embedding"] + t["places"][:n], []
        for i in range(self.layers):
            x = torch.nn.functional.layer_norm(h, (self.width,))
            q, k, v = (self._split(x @ t[f"{i}.{name}"]) for name in ("W_Q", "W_K", "W_V"))
            scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
            attention.append(torch.softmax(scores.masked_fill(~seen, -torch.inf), -1))
            h = h + (attention[-1] @ v).transpose(1, 2).flatten(2) @ t[f"{i}.W_O"]
            x = torch.nn.functional.layer_norm(h, (self.width,))
            h = h + (x @ t[f"{i}.in"] + t[f"{i}.in.bias"]).relu() @ t[f"{i}.out"] + t[f"{i}.out.bias"]
        return h @ t["head"] + t["head.bias"], attention

    def _split(self, x: Any) -> Any:
        return x.unflatten(2, (self.heads, self.width // self.heads)).transpose(1, 2)


def past(n: int) -> Any:
    """[n, n] Every token sees itself and those before it."""
    torch = framework()
    return torch.ones((n, n), dtype=torch.bool).tril()


def examples(count: int, queries: int) -> Any:
    """[n, n] Every token sees the examples, which come first, and a query also itself."""
    torch = framework()
    seen = torch.eye(count + queries, dtype=torch.bool)
    seen[:, :count] = True
    return seen
