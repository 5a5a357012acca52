"""What is said of temperatures: where float32 tells draws apart, and of trained heads, where theirs end.

What is drawn of trained heads is here as well.
"""

from __future__ import annotations

import json
from typing import Any

from onelayer.lab.experiment import Row
from onelayer.lab.statistics import Interval, geometric, tally


def say_where_apart(sizes: dict[tuple[int, int, str], dict[float, Interval]]) -> str:
    """At which temperatures float32 tells most draws apart; by size, shares of draws by temperature."""
    said: dict[tuple[str, str], list[str]] = {}
    for (levels, n, spacing), shares in sizes.items():
        if shares:
            where = _where([shares[beta].mean >= 0.5 for beta in sorted(shares)])
            said.setdefault((where, spacing), []).append(f"{n} of {levels}")
    listed = [f"{where} with {spacing} levels ({', '.join(some)})" for (where, spacing), some in said.items()]
    return f"Heads in float32 tell most draws apart {'; '.join(listed)}." if listed else "No window was measured."


def _where(apart: list[bool]) -> str:
    """The hottest temperature comes first, the coldest last."""
    if len(set(apart)) == 1:
        return "at all temperatures tried" if apart[0] else "at no temperature tried"
    ends = {
        (True, True): "but for some temperatures between the hottest and the coldest",
        (True, False): "unless they are too cold",
        (False, True): "unless they are too hot",
        (False, False): "in a window only, neither too hot nor too cold",
    }
    return ends[apart[0], apart[-1]]


def say_where_they_end(trained: list[Row]) -> str:
    """The hypothesis that Adam ends between the edges, judged; whether a head learned is another question."""
    if not trained:
        return ""
    inside, outside = ([row for row in trained if bool(row["inside"]) == wanted] for wanted in (True, False))
    if not outside:
        return (
            " All trained heads, through which alone their networks see a set, end between the edges, wherever "
            f"they started; {_learned(trained)} of {len(trained)} give all answers."
        )
    some, others = _learned(outside), _learned(inside)
    between = f"; {others or 'none'} of the {len(inside)} that end between {'do' if others > 1 else 'does'}"
    return (
        f" Trained heads, through which alone their networks see a set, need not end between the edges: "
        f"{len(outside)} of {len(trained)} end outside, and {some or 'none'} of these "
        f"{'give' if some > 1 else 'gives'} all answers{between if inside else ''}."
    )


def describe_trained(trained: list[Row]) -> list[str]:
    """For each start where heads end, whether they learned, and what ended them."""
    said = []
    for start in sorted({row["start"] for row in trained}):
        some = [row for row in trained if row["start"] == start]
        inside, outside = ([row for row in some if bool(row["inside"]) == wanted] for wanted in (True, False))
        parts = [f"{_learned(inside)} of {len(inside)} that ended inside"] if inside else []
        parts += [f"{_learned(outside)} of {len(outside)} that ended outside"] if outside else []
        hot, cold = some[0]["hot_edge"], some[0]["cold_edge"]
        said.append(
            f"Heads that start at {start:g}, {'inside' if hot <= start <= cold else 'outside'}, end at "
            f"{geometric(row['beta'] for row in some)}, {len(inside)} of {len(some)} inside the window of float32, "
            f"{hot:.2g} to {cold:.3g}; all answers learned by {', '.join(parts)}; what ended them: "
            f"{tally(row['ended_by'] for row in some)}."
        )
    return said


def draw_trained(axes: Any, trained: list[Row]) -> None:
    """Temperatures over training, one colour for each start, and the window between the two edges."""
    for number, start in enumerate(sorted({row["start"] for row in trained})):
        for row in (row for row in trained if row["start"] == start):
            steps, betas = zip(*json.loads(row["path"]), strict=True)
            style = "-" if row["accuracy"] == 1 else ":"
            axes.plot(steps, betas, color=f"C{number}", linestyle=style, linewidth=1)
        axes.plot([], [], color=f"C{number}", label=f"from {start:g}")
    axes.set(xlabel="step of Adam", ylabel="inverse temperature of the trained head", yscale="log")
    axes.set_xscale("symlog", linthresh=20)
    axes.set_xlim(left=0)
    if trained:
        axes.axhspan(trained[0]["hot_edge"], trained[0]["cold_edge"], color="grey", alpha=0.2)
        axes.set_title("grey: the window of float32; dotted: not all learned", fontsize="small")
        axes.legend(fontsize="small")


def _learned(rows: list[Row]) -> int:
    return sum(row["accuracy"] == 1 for row in rows)
