"""`python -m onelayer_checker FOLDER [--json]`: judge a certificate; exit code 0 only for VERIFIED."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: the products here are too small for threads

import numpy as np

from onelayer_checker.claims import Claim, Judge, Verdict, read_claim, read_data
from onelayer_checker.files import Malformed, fields, read_folder
from onelayer_checker.network import build

EXITS = {"VERIFIED": 0, "NOT VERIFIED": 1, "UNKNOWN": 2, "MALFORMED": 3, "UNFIT": 4}
TOP = {"format", "graph", "profile", "files", "claims", "producer"}


def probe() -> None:
    """Refuse a machine whose float64 is not IEEE with round to nearest and gradual underflow."""
    one, least = np.ones(1), np.full(1, 2.0**-1074)
    if not ((least * one)[0] > 0 and (np.full(1, 2.0**-1000) * np.full(1, 2.0**-70))[0] > 0):
        raise OSError("subnormal numbers are flushed to zero in this process")
    up, down = one + 2.0**-53, one + 2.0**-53 * 1.5
    if up[0] != 1.0 or down[0] != 1 + 2.0**-52 or (-one - 2.0**-53)[0] != -1.0:
        raise OSError("the rounding mode is not round to nearest")


def check(folder: Path, show: Any = lambda _: None, progress: Any = lambda *_: None) -> dict[str, Any]:
    """The verdict on every claim as plain data: {"result": ..., "claims": [...], "why": ...}."""
    try:
        probe()
        certificate, weights, data_tensors = read_folder(folder)
        fields(certificate, TOP, "certificate")
        _check_constants(certificate)
        network = build(weights)
        data = read_data(data_tensors, network)
        entries = certificate["claims"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= 64:
            raise Malformed("claim", "there must be 1 to 64 claims")
        claims = [read_claim(entry, f"claims[{i}]") for i, entry in enumerate(entries)]
        verdicts: list[tuple[Claim, Verdict, float]] = []
        judge = Judge(network, data, progress)
        for claim in claims:
            start = time.process_time()
            verdict = judge.judge(claim)
            verdicts.append((claim, verdict, time.process_time() - start))
            show(f"{verdict.outcome:9}  {claim}: {verdict.why}  [{verdicts[-1][2]:.2f} s]")
    except Malformed as error:
        return {"result": "MALFORMED", "gate": error.gate, "why": str(error), "claims": []}
    except OSError as error:
        return {"result": "UNFIT", "gate": "probe", "why": str(error), "claims": []}
    outcomes = {verdict.outcome for _, verdict, _ in verdicts}
    result = "NOT VERIFIED" if "refuted" in outcomes else "UNKNOWN" if "undecided" in outcomes else "VERIFIED"
    listed = [
        {
            "claim": str(c),
            "type": c.type,
            "arith": c.arith.name,
            "outcome": v.outcome,
            "why": v.why,
            "value": v.value.hex(),
            "cpu": s,
        }
        for c, v, s in verdicts
    ]
    return {"result": result, "gate": "", "why": "", "claims": listed}


def _check_constants(certificate: dict[str, Any]) -> None:
    if certificate["format"] != "onelayer-certificate/1":
        raise Malformed("format", f"unknown format {certificate['format']!r:.40}")
    fields(certificate["graph"], {"template", "attention", "causal"}, "graph")
    graph = certificate["graph"]
    if (graph["template"], graph["attention"]) != ("one-layer/1", "softmax") or graph["causal"] is not False:
        raise Malformed("graph", f"unknown graph {graph}")
    if certificate["profile"] != "ieee-any-order/1":
        raise Malformed("profile", f"unknown profile {certificate['profile']!r:.40}")
    fields(certificate["producer"], {"name", "version"}, "producer")


def main() -> None:
    parser = argparse.ArgumentParser(prog="onelayer_checker", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    arguments = parser.parse_args()
    verdict = check(arguments.folder, (lambda _: None) if arguments.json else print)
    if arguments.json:
        print(json.dumps(verdict))
    else:
        if verdict["why"]:
            print(verdict["why"])
        print(verdict["result"])
    sys.exit(EXITS[verdict["result"]])


if __name__ == "__main__":
    main()
