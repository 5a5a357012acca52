"""What a statement is: a key, its words, its source, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Standing = Literal["published", "recalled", "ours"]
STANDINGS: dict[Standing, str] = {
    "published": "the statement is in the paper's abstract, reviews or public listing",
    "recalled": "the published statement as remembered; wording and numbering not verified against the text",
    "ours": "derived here and tested numerically; not claimed as a first result",
}


@dataclass(frozen=True)
class Statement:
    """One statement. ``source`` is a key of references.bib, or "" for what was derived here."""

    key: str
    label: str
    source: str
    standing: Standing
    says: str
    rests_on: tuple[str, ...] = ()
    differs: str = ""  # where what is built is not what is published
