"""`python -m onelayer_checker FOLDER`: judge a certificate; exit code 0 only for VERIFIED."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: the products here are too small for threads

import numpy as np

from onelayer_checker.claims import Claim, Judge, Verdict, read_claim
from onelayer_checker.data import Data, read_data
from onelayer_checker.files import Malformed, fields, read_folder
from onelayer_checker.network import Network, build

if TYPE_CHECKING:
    from onelayer_checker.arb_engine import Engine

EXITS = {"VERIFIED": 0, "NOT VERIFIED": 1, "UNKNOWN": 2, "MALFORMED": 3, "UNFIT": 4}
USAGE = 64  # exit code of a command line that is not understood
TOP = {"format", "graph", "profile", "files", "claims", "producer"}


def probe() -> None:
    """Refuse a machine whose float64 is not IEEE with round to nearest and gradual underflow."""
    one, least = np.ones(1), np.full(1, 2.0**-1074)
    if not ((least * one)[0] > 0 and (np.full(1, 2.0**-1000) * np.full(1, 2.0**-70))[0] > 0):
        raise OSError("subnormal numbers are flushed to zero in this process")
    up, down = one + 2.0**-53, one + 2.0**-53 * 1.5
    if up[0] != 1.0 or down[0] != 1 + 2.0**-52 or (-one - 2.0**-53)[0] != -1.0:
        raise OSError("the rounding mode is not round to nearest")


@dataclass(frozen=True)
class Options:
    """Which engine judges claims in real arithmetic; floating point is the kernel's alone."""

    engine: str = "numpy"  # or "arb", or "both": then they must agree on every coordinate and every outcome
    escalate: bool = False  # let Arb judge what the kernel leaves undecided
    jobs: int = 1  # processes for Arb
    bits: int = 128  # its first precision


KERNEL = Options()


def check(
    folder: Path, show: Any = lambda _: None, progress: Any = lambda *_: None, options: Options = KERNEL
) -> dict[str, Any]:
    """The verdict on every claim as plain data: {"result": ..., "claims": [...], "why": ...}."""
    try:
        probe()
        network, data, claims = parse(folder)
        judge, arb = Judge(network, data, progress), None
        if options.engine != "numpy" or options.escalate:
            from onelayer_checker.arb_engine import Engine  # only now: everything else runs on NumPy alone

            arb = Engine(network, data, options.jobs, options.bits)
        listed = []
        for claim in claims:
            start = sum(os.times()[:4])  # with the processes that were started meanwhile
            engine, verdict = decide(claim, judge, arb, options)
            listed.append(_entry(claim, verdict, engine, sum(os.times()[:4]) - start))
            by = "" if arb is None else f" by {engine}"
            show(f"{verdict.outcome:9}{by}  {claim}: {verdict.why}  [{listed[-1]['cpu']:.2f} s]")
    except Malformed as error:
        return {"result": "MALFORMED", "gate": error.gate, "why": str(error), "claims": []}
    except OSError as error:
        return {"result": "UNFIT", "gate": getattr(error, "gate", "probe"), "why": str(error), "claims": []}
    except Exception as error:  # a traceback would exit with 1, the code of NOT VERIFIED
        why = f"{type(error).__name__}: {error}"
        return {"result": "UNFIT", "gate": "unforeseen", "why": why, "claims": []}
    outcomes = {entry["outcome"] for entry in listed}
    result = "NOT VERIFIED" if "refuted" in outcomes else "UNKNOWN" if "undecided" in outcomes else "VERIFIED"
    return {"result": result, "gate": "", "why": "", "claims": listed}


def parse(folder: Path) -> tuple[Network, Data, list[Claim]]:
    """What the folder holds; whatever goes wrong here, it is not what the specification describes."""
    try:
        certificate, weights, tensors = read_folder(folder)
        _check_constants(certificate)
        network = build(weights, certificate["graph"]["causal"])
        claims = [read_claim(entry, f"claims[{i}]") for i, entry in enumerate(certificate["claims"])]
        return network, read_data(tensors, network), claims
    except Malformed:
        raise
    except Exception as error:
        raise Malformed("unforeseen", f"{type(error).__name__}: {error}") from error


def decide(claim: Claim, judge: Judge, arb: Engine | None, options: Options) -> tuple[str, Verdict]:
    """The verdict on a claim, and whose it is: "numpy", "arb" or "both"."""
    known = claim.scope != "last" and claim.type in ("memorizes", "separated", "robust")
    apart = not known or judge.network.causal or len(judge.network.tensors["attention.W_Q"]) > 1
    if arb is None or claim.arith.name != "real" or apart:
        verdict = judge.judge(claim)
        limits = "Arb judges stored answers in real arithmetic only, of one head, and nothing causal"
        alone = "" if arb is None else f" ({limits})"
        return "numpy", replace(verdict, why=verdict.why + alone)
    if options.engine == "arb":
        judge.fits(claim)
        return "arb", arb.judge(claim)
    first = judge.judge(claim)
    if options.engine == "numpy":
        return ("arb", arb.judge(claim)) if first.outcome == "undecided" else ("numpy", first)
    second = arb.judge(claim)
    t = judge.samples(claim.arith, claim.scope, claim.numbers.get("radius", 0.0)).t
    arb.agree(claim, t.m, t.r, first, second)
    if first.outcome == second.outcome:
        return "both", first
    why = f"{second.why} (the kernel alone: {first.outcome}, {first.why})"
    return "arb", replace(second, why=why)


def _entry(claim: Claim, verdict: Verdict, engine: str, cpu: float) -> dict[str, Any]:
    return {
        "claim": str(claim),
        "type": claim.type,
        "arith": claim.arith.name,
        "outcome": verdict.outcome,
        "why": verdict.why,
        "value": verdict.value.hex(),
        "cpu": cpu,
        "engine": engine,
    }


def _check_constants(certificate: dict[str, Any]) -> None:
    fields(certificate, TOP, "certificate")
    if certificate["format"] != "onelayer-certificate/1":
        raise Malformed("format", f"unknown format {certificate['format']!r:.40}")
    fields(certificate["graph"], {"template", "attention", "causal"}, "graph")
    graph = certificate["graph"]
    if (graph["template"], graph["attention"]) != ("one-layer/1", "softmax") or type(graph["causal"]) is not bool:
        raise Malformed("graph", f"unknown graph {graph}")
    if certificate["profile"] != "ieee-any-order/1":
        raise Malformed("profile", f"unknown profile {certificate['profile']!r:.40}")
    fields(certificate["producer"], {"name", "version"}, "producer")
    if not isinstance(certificate["claims"], list) or not 1 <= len(certificate["claims"]) <= 64:
        raise Malformed("claim", "there must be 1 to 64 claims")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.format_usage()}{self.prog}: {message}\n")  # not argparse's 2, which is UNKNOWN


def main() -> None:
    parser = Parser(prog="onelayer_checker", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--engine", choices=("numpy", "arb", "both"), default="numpy", help="for real arithmetic")
    parser.add_argument("--escalate", action="store_true", help="let Arb judge what the kernel leaves undecided")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes for Arb")
    parser.add_argument("--bits", type=int, default=128, help="first precision of Arb, 64 to 8192")
    given = parser.parse_args()
    if given.jobs < 1 or not 64 <= given.bits <= 8192:
        parser.error("--jobs is at least 1, --bits from 64 to 8192")
    options = Options(given.engine, given.escalate, given.jobs, given.bits)
    verdict = check(given.folder, (lambda _: None) if given.json else print, options=options)
    if given.json:
        print(json.dumps(verdict))
    else:
        if verdict["why"]:
            print(verdict["why"])
        print(verdict["result"])
    sys.exit(EXITS[verdict["result"]])


if __name__ == "__main__":
    main()
