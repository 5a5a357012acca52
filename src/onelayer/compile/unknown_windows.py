"""What a model of a text says of windows that the text does not have: measured while it is built."""

from __future__ import annotations

import numpy as np

from onelayer.ledger import Constant
from onelayer.model import Model
from onelayer.problems.unknown_windows import draw
from onelayer.problems.windows import TextWindows
from onelayer.readouts.false_hits import upper_limit

#: Windows of each kind.
DRAWN = 4096


def unknown_windows(model: Model, text: TextWindows, seed: int) -> list[Constant]:
    """Lines of the ledger for a model that knows what is not stored."""
    known, counts, limits = model.windows, [], [1.0]
    for kind, windows in draw(text, DRAWN, seed).items():
        hits = int(np.count_nonzero(known.look_up(known.sums.of_rows(windows)) != known.nothing))
        counts.append(f"{hits:,} of {len(windows):,} {kind}")
        limits.append(upper_limit(hits, len(windows)))
    share = 1.0 / known.fingerprints
    bound = f"1 of {known.fingerprints:,} fingerprints"
    return [
        Constant("false_hits", share, f"share of windows that are not stored but continued, by chance: {bound}"),
        Constant(
            "false_hits_measured",
            max(limits[1:] or limits),
            f"upper limit, at 95%, of that share among windows drawn at random: {' and '.join(counts)} are",
        ),
    ]
