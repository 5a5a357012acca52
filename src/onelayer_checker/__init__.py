"""A small checker of certificates about one-layer Transformers. It imports nothing of the library."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy, if it is not there yet: products here are small

if TYPE_CHECKING:
    from onelayer_checker.core.claims import Claim, Verdict
    from onelayer_checker.front import Report, check
    from onelayer_checker.functions.extremes import largest_output
    from onelayer_checker.shards import Shard, check_shard, check_shards, conclude, read_manifest

__all__ = [
    "Claim",
    "Report",
    "Shard",
    "Verdict",
    "check",
    "check_shard",
    "check_shards",
    "conclude",
    "largest_output",
    "read_manifest",
]

#: A model in shards: its manifest, and the folders beside it.
MANIFEST, ROUTER, SHARDS_FORMAT = "shards.json", "router", "onelayer-shards/1"
#: Modules of the names that are not in `front`.
ELSEWHERE = dict.fromkeys(("Shard", "check_shard", "check_shards", "conclude", "read_manifest"), "shards")
ELSEWHERE["largest_output"] = "functions.extremes"


def folder_of(number: int) -> str:
    """Shards have no names of their own: a manifest cannot lead out of its folder, or to one shard twice."""
    return f"shard-{number:05d}"


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: where NumPy is missing, `python -m` must come as far as to say so."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"onelayer_checker.{ELSEWHERE.get(name, 'front')}"), name)
