"""What is said and drawn of trained heads: where their temperatures end, and whether that is between the edges."""

from __future__ import annotations

import json
from typing import Any

from onelayer.lab.experiment import Row
from onelayer.lab.statistics import geometric, tally


def say_where_they_end(trained: list[Row]) -> str:
    """The hypothesis that Adam ends between the edges, judged; whether a head learned is another question."""
    if not trained:
        return ""
    outside = [row for row in trained if not row["inside"]]
    if not outside:
        return (
            " All trained heads, through which alone their networks see a set, end between the edges, wherever "
            f"they started; {_learned(trained)} of {len(trained)} give all answers."
        )
    return (
        f" Trained heads, through which alone their networks see a set, need not end between the edges: "
        f"{len(outside)} of {len(trained)} end outside, and {_learned(outside)} of these give all answers, as do "
        f"{_learned(trained) - _learned(outside)} of {len(trained) - len(outside)} that end between."
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
