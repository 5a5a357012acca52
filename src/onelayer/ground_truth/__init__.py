"""Models whose mechanism is known, for the tools that look for mechanisms: made, mixed, proved, and scored.

    case = make("facts", seed=3, gauge="orthogonal")       # a model, its data, and the mechanism as data
    found = find("ica", case)                              # or what your own tool finds: directions [k, width]
    match_directions(found, case)                          # 1: every channel was found, 0: none

Others train models to have a mechanism. These are compiled: the mechanism is what was compiled, and a checker
proves the answers of every one of them. There are as many as you ask for.
"""

from onelayer.ground_truth.baselines import DIRECTIONS, EDGES, find, score_edges
from onelayer.ground_truth.gauge import GAUGES
from onelayer.ground_truth.mechanism import Mechanism
from onelayer.ground_truth.scores import edge_score, match_directions, probe_scores
from onelayer.ground_truth.suite import FAMILIES, Case, load_case, make, save_case

__all__ = [
    "DIRECTIONS",
    "EDGES",
    "FAMILIES",
    "GAUGES",
    "Case",
    "Mechanism",
    "edge_score",
    "find",
    "load_case",
    "make",
    "match_directions",
    "probe_scores",
    "save_case",
    "score_edges",
]
