"""A small checker of certificates about one-layer Transformers. It imports nothing of the library."""

import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy, if it is not there yet: products here are small

if TYPE_CHECKING:
    from onelayer_checker.core.claims import Claim, Verdict
    from onelayer_checker.front import Report, check

__all__ = ["Claim", "Report", "Verdict", "check"]


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: where NumPy is missing, `python -m` must come as far as to say so."""
    if name not in __all__:
        raise AttributeError(name)
    from onelayer_checker import front

    return getattr(front, name)
