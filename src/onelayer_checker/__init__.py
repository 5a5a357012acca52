"""A small checker of certificates about one-layer Transformers. It imports nothing of the library."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy, if it is not there yet: products here are small

from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.front import Report, check

__all__ = ["Claim", "Report", "Verdict", "check"]
