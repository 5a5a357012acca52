"""The statements in numbers: the published constants on three tokens, and hardmax against softmax."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from onelayer.comparison import compare
from onelayer.data.tables import example, read_table


def three_tokens() -> list[dict[str, Any]]:
    table = read_table(example("three_tokens"))
    comparison = compare(table.X, table.Y, table.lengths)
    return [{k: "" if v is None else v for k, v in asdict(column).items()} for column in comparison.columns]


def run() -> dict[str, list[dict[str, Any]]]:
    np.random.default_rng(0)
    return {"Three tokens in the plane": three_tokens()}
