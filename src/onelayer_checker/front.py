"""The front door: a certified folder in, a report out. It puts the rings together and decides nothing itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import onelayer_checker.core.separated  # noqa: F401  (adds a claim to the core's)
from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.core.claims import RINGS, Claim, Verdict, kind_of
from onelayer_checker.core.files import Malformed, fields, read_folder, shown
from onelayer_checker.core.graph import build
from onelayer_checker.core.judge import Judge, Progress
from onelayer_checker.core.meaning import Given, Required, beside, refuse_empty, same_data
from onelayer_checker.core.names import Names, fit, read_names
from onelayer_checker.core.samples import Data, read_data
from onelayer_checker.search.stack import accelerate

if TYPE_CHECKING:
    from onelayer_checker.arb.engine import Engine
    from onelayer_checker.looped.judge import LoopJudge

#: Claims whose modules are imported when a folder has one; other folders never enter these rings.
FUNCTIONS, LOOPED = "onelayer_checker.functions", "onelayer_checker.looped.kinds"
RINGS |= {"argmax": "onelayer_checker.core.largest"}
RINGS |= dict.fromkeys(("sup_error", "lp_error", "sup_error_everywhere", "formula_error"), FUNCTIONS)
RINGS |= dict.fromkeys(("equals", "selects", "within", "rounds", "minimises", "attends"), LOOPED)
RINGS |= dict.fromkeys(("identifies", "ambiguous"), LOOPED)
EXITS = {"VERIFIED": 0, "NOT VERIFIED": 1, "UNKNOWN": 2, "MALFORMED": 3, "UNFIT": 4}
Name = Literal["numpy", "arb", "both"]


@dataclass(frozen=True)
class Judged:
    """A claim, what is said of it, who says so, and the CPU seconds that took."""

    claim: Claim
    verdict: Verdict
    engine: str
    cpu: float

    def __str__(self) -> str:
        by = "" if self.engine == "numpy" else f" by {self.engine}"
        return f"{self.verdict.outcome:9}{by}  {self.claim}: {self.verdict.why}  [{self.cpu:.2f} s]"

    def beside(self, stored: Data) -> Judged:
        """With what the bound of a claim that is proved should be compared to."""
        if self.verdict.outcome != "proved":
            return self
        return replace(self, verdict=replace(self.verdict, why=self.verdict.why + beside(self.claim, stored)))

    def to_json(self) -> dict[str, Any]:
        return {
            "claim": str(self.claim),
            "type": self.claim.type,
            "arith": self.claim.arith,
            "outcome": self.verdict.outcome,
            "why": self.verdict.why,
            "value": self.verdict.value.hex(),
            "cpu": self.cpu,
            "engine": self.engine,
        }


@dataclass(frozen=True)
class Report:
    """What the checker says of a folder: section 7 of the specification."""

    result: str
    claims: tuple[Judged, ...] = ()
    gate: str = ""  # which rule refused the folder or machine; "data" or "require": what was asked for is not so
    why: str = ""
    notes: tuple[str, ...] = ()  # what the verdict is about, and what it lacks
    judge_with: Judge | LoopJudge | None = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        return EXITS[self.result]

    def judge(self, claim: Claim, sequences: Any = None) -> Verdict:
        """Judge a further claim about the same files; of some sequences only, or some strangers if it rejects."""
        if self.judge_with is None:
            raise ValueError(f"there is nothing to judge: {self.result}, {self.why}")
        judge = self.judge_with
        if sequences is not None and isinstance(judge, Judge):
            rows, data = np.asarray(sequences), judge.data
            if claim.type == "rejects" and data.strangers is not None:
                some = replace(data, strangers=data.strangers.take(rows))
            else:
                some = data.take(rows)
            judge = Judge(judge.network, some, judge.progress, judge.jobs, compare=False)
        return judge.judge(claim)

    def least_bound(self, claim: Claim, enough: float) -> float:
        """A bound worth claiming instead of the claim's own: about the smallest, or one that is ``enough``."""
        assert self.judge_with is not None
        find = kind_of(claim.type).least_bound
        return claim.numbers["bound"] if find is None else find(self.judge_with, claim, enough)

    def to_json(self) -> dict[str, Any]:
        claims = [judged.to_json() for judged in self.claims]
        notes = list(self.notes)
        return {"result": self.result, "gate": self.gate, "why": self.why, "claims": claims, "notes": notes}


def check(
    folder: str | os.PathLike[str] | Mapping[str, bytes],
    *,
    data: Given | None = None,
    require: Iterable[str] = (),
    claims: Iterable[Claim] | None = None,
    engine: Name = "numpy",
    escalate: bool = False,
    dense: bool = False,
    jobs: int = 1,
    bits: int = 128,
    budget: float | None = None,
    memory: float | None = None,
    show: Callable[[Judged], object] = lambda _: None,
    progress: Progress = lambda *_: None,
) -> Report:
    """Judge every claim of a certified folder, or of its files by name; or other ``claims`` instead.

    ``data`` is what a person wants to be certain of: a file of JSON lines, the text of a model that has one by
    heart (a file, or its bytes), or arrays (X, Y) or (X, Y, lengths); every sequence of it must be certified with
    its answers, and these proved. ``require`` lists claims that must be proved, as "memorizes float32 1e-6".
    ``engine`` judges claims in real arithmetic ("both" must agree); with ``escalate`` Arb judges what the kernel
    leaves undecided, beginning with ``bits``. With ``dense`` nothing is searched for. ``jobs`` processes share the
    samples. A claim beyond ``budget``, in operations, or ``memory``, in bytes, is undecided.
    """
    required = [Required.read(text) for text in require]
    try:
        probe()
        with limited(budget, memory):
            network, stored, own, names = parse(folder)
            judge, arb = network, None
            if stored is not None:
                judge = Judge(network if dense else accelerate(network), stored, progress, jobs)
            if (engine != "numpy" or escalate) and stored is not None:
                from onelayer_checker.arb.engine import Engine  # only now: everything else runs on NumPy alone

                arb = Engine(network, stored, jobs, bits)
            asked = own if claims is None else list(claims)
            found: dict[int, Judged] = {}
            for at in sorted(range(len(asked)), key=lambda at: asked[at].arith == "real"):  # others may imply these
                found[at] = within_budget(asked[at], judge, arb, engine)
                if (names is None or names.answers is None) and stored is not None:
                    found[at] = found[at].beside(stored)
                show(found[at])
            listed = [found[at] for at in range(len(asked))]
            same = None if data is None else same_data(data, names, stored, network.dtype)
    except Malformed as error:
        return Report("MALFORMED", (), error.gate, str(error))
    except Beyond as error:
        return Report("UNKNOWN", (), error.gate, f"{error.gate}: {error}")
    except OSError as error:
        return Report("UNFIT", (), getattr(error, "gate", "probe"), str(error))
    except Exception as error:  # a traceback would exit with 1, the code of NOT VERIFIED
        return Report("UNFIT", (), "unforeseen", say_error(error))
    gate, why = missing(listed, required, same)
    verdicts = (*(judged.verdict for judged in listed), same)
    outcomes = {verdict.outcome for verdict in verdicts if verdict is not None}
    proved = outcomes == {"proved"} and listed and not why
    result = "NOT VERIFIED" if "refuted" in outcomes else "VERIFIED" if proved else "UNKNOWN"
    return Report(result, tuple(listed), gate, why, notes(names, listed, stored, same), judge)


def missing(listed: list[Judged], required: list[Required], same: Verdict | None) -> tuple[str, str]:
    """What was asked for and is not so: the rule, and why; empty if everything asked for is."""
    if same is not None and same.outcome != "proved":
        return "data", f"the data given: {same.why}"
    lack = [str(wish) for wish in required if not any(wish.met(found.claim, found.verdict) for found in listed)]
    if lack:
        return "require", f"required and not proved: {', '.join(lack)}"
    bound = 0.0 if same is None else float(np.nextafter(same.value, 0.0))
    wishes = (Required("memorizes", None, bound), Required("argmax"))
    if same is None or any(wish.met(found.claim, found.verdict) for found in listed for wish in wishes):
        return "", ""
    return "data", f"the data given: it is not proved that these answers come back, off by at most {bound:.6g}"


def notes(names: Names | None, listed: list[Judged], stored: Data | None, same: Verdict | None) -> tuple[str, ...]:
    """What the verdict is about, and what it lacks."""
    if stored is None and names is not None and names.scope == "last":
        return ("about the layer, and the sequences stored in the folder",)
    if stored is None:
        return ("about the algorithm that the claims write out, for every prompt; not about any data",)
    if names is None:
        return ("names, scope and meaning of the answers are not certified: version 1",)
    if same is None and listed and all(found.claim.about_function for found in listed):
        return ("about the function that the claims name, on a box; not about any data",)
    about = f"about the {len(stored.lengths):,} sequences stored in the folder, with {names}"
    if same is None:
        return (f"{about}; whether they are your data, --data FILE decides",)
    return (about, f"the data given: {same.why}") if same.outcome == "proved" else (about,)


def probe() -> None:
    """Refuse a machine whose float64 is not IEEE with round to nearest and gradual underflow."""
    one, least = np.ones(1), np.full(1, 2.0**-1074)
    if not ((least * one)[0] > 0 and (np.full(1, 2.0**-1000) * np.full(1, 2.0**-70))[0] > 0):
        raise OSError("subnormal numbers are flushed to zero in this process")
    up, down = one + 2.0**-53, one + 2.0**-53 * 1.5
    if up[0] != 1.0 or down[0] != 1 + 2.0**-52 or (-one - 2.0**-53)[0] != -1.0:
        raise OSError("the rounding mode is not round to nearest")


#: A network, or the judge of a looped one, which has no data; the claims; the names.
Parsed = tuple[Any, Data | None, list[Claim], Names | None]


def parse(folder: str | os.PathLike[str] | Mapping[str, bytes]) -> Parsed:
    """What the folder holds; whatever goes wrong here, it is not what the specification describes."""
    try:
        certificate, weights, tensors, named = read_folder(folder if isinstance(folder, Mapping) else Path(folder))
        _check_constants(certificate)
        if is_looped(certificate["graph"]):
            from onelayer_checker.looped.kinds import read_loop

            names, own = None if named is None else read_names(named), read_claims(certificate)
            return read_loop(weights, tensors, certificate["graph"], names, own), None, own, names
        network = build(weights, certificate["graph"]["causal"])
        claims = read_claims(certificate)
        data, names = read_data(tensors, network), None if named is None else read_names(named)
        if names is not None:
            fit(names, network, data, claims)
        refuse_empty(claims, names, data)
        return network, data, claims, names
    except (Malformed, Beyond, MemoryError):
        raise
    except Exception as error:
        raise Malformed("unforeseen", say_error(error)) from error


def read_claims(certificate: dict[str, Any]) -> list[Claim]:
    return [Claim.read(entry, f"claims[{i}]") for i, entry in enumerate(certificate["claims"])]


def say_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {shown(str(error), 200)}"


def is_looped(graph: Any) -> bool:
    return isinstance(graph, dict) and graph.get("template") == "looped/1"


def within_budget(claim: Claim, judge: Judge | LoopJudge, arb: Engine | None, engine: Name) -> Judged:
    start = sum(os.times()[:4])  # with the processes that were started meanwhile
    try:
        name, verdict = decide(claim, judge, arb, engine)
    except Beyond as error:
        name, verdict = "numpy", Verdict("undecided", str(error), np.inf)
    return Judged(claim, verdict, name, sum(os.times()[:4]) - start)


def decide(claim: Claim, judge: Judge | LoopJudge, arb: Engine | None, engine: Name) -> tuple[str, Verdict]:
    """The verdict on a claim, and whose it is: "numpy", "arb" or "both"."""
    if not isinstance(judge, Judge):
        return judge.decide(claim, engine != "numpy")
    known = claim.scope != "last" and claim.type in ("memorizes", "separated", "robust")
    apart = not known or judge.network.causal or len(judge.network.tensors["attention.W_Q"]) > 1
    if arb is None or claim.arith != "real" or apart:
        verdict = judge.judge(claim)
        limits = "Arb judges stored answers in real arithmetic only, of one head, and nothing causal"
        alone = "" if arb is None else f" ({limits})"
        return "numpy", replace(verdict, why=verdict.why + alone)
    if engine == "arb":
        judge.fits(claim)
        return "arb", arb.judge(claim)
    first = judge.judge(claim)
    if engine == "numpy":
        return ("arb", arb.judge(claim)) if first.outcome == "undecided" else ("numpy", first)
    second = arb.judge(claim)
    t = judge.samples(claim.A, claim.scope, claim.numbers.get("radius", 0.0)).t
    arb.agree(claim, t.m, t.r, first, second)
    if first.outcome == second.outcome:
        return "both", first
    why = f"{second.why} (the kernel alone: {first.outcome}, {first.why})"
    return "arb", replace(second, why=why)


def _check_constants(certificate: dict[str, Any]) -> None:
    graph = certificate["graph"]
    if not is_looped(graph):
        fields(graph, {"template", "attention", "causal"}, "graph")
        plain = (graph["template"], graph["attention"]) == ("one-layer/1", "softmax")
        if not plain or type(graph["causal"]) is not bool:
            raise Malformed("graph", f"unknown graph {shown(graph, 200)}")
    if certificate["profile"] != "ieee-any-order/1":
        raise Malformed("profile", f"unknown profile {shown(certificate['profile'])}")
    fields(certificate["producer"], {"name", "version"}, "producer")
    if not isinstance(certificate["claims"], list) or not 1 <= len(certificate["claims"]) <= 64:
        raise Malformed("claim", "there must be 1 to 64 claims")
