"""What a network gives back: a line for every output, and whether there is one for each token."""

from __future__ import annotations

from onelayer.errors import OptionError
from onelayer.problems.targets.networks.values import BATCH, OWN, Tensor, settled, shown
from onelayer.problems.targets.program import Node


def placed_outputs(t: Tensor, per_token: bool) -> tuple[list[Node], str]:
    """The same where tokens have places; an output [B, n] is one for each token if such is asked for."""
    whole, n = settled(t), t.builder.n
    rest = whole.axes[1:]
    if whole.axes[:1] != (BATCH,) or len(rest) > 2 or (len(rest) == 2 and rest[0] != n):
        needs = "an output [sequences, tokens, q] or [sequences, q]"
        raise OptionError("network", needs, f"its output is {shown(whole.axes)}", "Give one of these back.")
    tokenwise = len(rest) == 2 or (rest == (n,) and per_token)
    return list(whole.lines.ravel()), "token" if tokenwise else "sequence"


def outputs_of(t: Tensor) -> tuple[list[Node], str]:
    """Lines of an output [B, n, q], [B, q] or [B], and whether there is one for each token."""
    whole = settled(t)
    if whole.axes[:2] == (BATCH, OWN) and len(whole.axes) <= 3:
        return list(whole.lines.ravel()), "token"
    if whole.axes[:1] == (BATCH,) and len(whole.axes) <= 2 and all(isinstance(a, int) for a in whole.axes[1:]):
        return list(whole.lines.ravel()), "sequence"
    needs = "an output [sequences, tokens, q] or [sequences, q]"
    raise OptionError("network", needs, f"its output is {shown(whole.axes)}", "Give one of these back.")
