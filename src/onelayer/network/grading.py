"""Graded attention: every component of the stream is multiplied by a number of its own before the projections.

Statement  a graded layer is a plain one with other rows of W_Q, W_K and W_V; by powers of two, to the bit.
Gives      the plain network, or the component whose weights would leave the range of the dtype.
Rests on   nothing: every product x 2^q w is the same real number before it is rounded, in any order of summation.
Why        grading adds no function; what it changes is the rate at which training moves each row.
Differs    other factors than powers of two give the same real numbers, and other bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onelayer.errors import OptionError, PrecisionError
from onelayer.network.weights import Transformer
from onelayer.statements import CATALOGUE

STATEMENT = CATALOGUE["grading"]
Array = NDArray[Any]


def absorb(network: Transformer, grades: Sequence[int]) -> Transformer:
    """The plain network that is the same function as this one with component i graded by 2^grades[i].

    ``network`` has one layer, as the ``transformer`` of a model; one that is repeated is graded in each loop.

    Scaling the components of data before they are compiled is another matter: by powers of two it leaves the margin
    the same to the bit with the mappings ``temperature``, ``shared_query``, ``lattice`` and ``averages`` (tested,
    not proved), and not with ``rank_one``, which chooses among directions of the tokens as they come.
    """
    if network.further:
        found = f"the network has {len(network.further)} further layer{'s' * (len(network.further) > 1)}"
        raise OptionError("grading", "one layer", found, "Grade each layer by itself.")
    a, factors = network.attention, powers_of_two(grades, network.dtype)
    width = int(a.W_Q.shape[1])
    if len(factors) != width:
        found = f"{len(factors)} grades for a stream of width {width}"
        raise OptionError("grading", "a grade for every component", found, "Give 0 to those that stay as they are.")
    made = {}
    for name in ("W_Q", "W_K", "W_V"):
        weights = getattr(a, name)
        with np.errstate(over="ignore", under="ignore"):
            scaled = weights * factors[:, None]
        lost = ~np.isfinite(scaled) | (scaled / factors[:, None] != weights)
        if lost.any():
            component = int(np.argwhere(lost)[0][1])
            found = f"{name} times 2^{grades[component]} at component {component} is not among them"
            raise PrecisionError("grading", f"weights that {network.dtype} holds", found, "Choose smaller grades.")
        made[name] = scaled
    return replace(network, attention=replace(a, **made))


def powers_of_two(grades: Sequence[int], dtype: Any) -> Array:
    """2^grade for every component, in the dtype; the Lipschitz constant of the grading is the largest of them."""
    limits = np.finfo(dtype)
    for i, grade in enumerate(grades):
        if grade != int(grade) or not limits.minexp <= grade < limits.maxexp:
            needs = f"whole grades from {limits.minexp} to {limits.maxexp - 1} in {np.dtype(dtype)}"
            raise OptionError("grading", needs, f"grade {grade} of component {i}", "Lower its size, or round it.")
    return np.ldexp(np.ones(len(grades), dtype), np.asarray(grades, np.int64))
