"""A model in shards: a manifest, a router that says whose a sequence is, and a certified folder for each shard.

The verdict is the conjunction of what `check` says of every shard, and of one claim more about each: for all of its
sequences the router gives its number, in the same arithmetic. So no sequence is stored in two shards, and whoever
asks the router finds the shard in which the answers of a stored sequence are proved.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onelayer_checker import MANIFEST, ROUTER, SHARDS_FORMAT, folder_of
from onelayer_checker.core.budget import Beyond, limited
from onelayer_checker.core.claims import Claim, Verdict
from onelayer_checker.core.files import (
    CERTIFICATE,
    DATA,
    MODEL,
    NAMES,
    Malformed,
    fields,
    parse_safetensors,
    read_bytes,
    shown,
    strict_json,
)
from onelayer_checker.core.graph import build
from onelayer_checker.core.judge import Judge
from onelayer_checker.core.meaning import Given
from onelayer_checker.core.samples import read_data
from onelayer_checker.front import Report, check, say_error
from onelayer_checker.search.stack import accelerate

MOST_SHARDS = 100_000
#: What counts most when shards differ.
WORST = ("MALFORMED", "NOT VERIFIED", "UNFIT", "UNKNOWN", "VERIFIED")


@dataclass(frozen=True)
class Entry:
    """The certificate of a shard, and how much it is about."""

    sha256: str
    bytes: int
    sequences: int
    answers: int


@dataclass(frozen=True)
class Manifest:
    digest: str  # of the manifest itself
    router: str  # digest of its weights
    names: str  # digest of the names, which all shards share
    shards: tuple[Entry, ...]


@dataclass(frozen=True)
class Shard:
    """What is said of one shard, and by which manifest it was looked for."""

    number: int
    manifest: str
    report: Report
    sequences: int = 0
    answers: int = 0

    def __str__(self) -> str:
        claims = ", ".join(str(judged.claim) for judged in self.report.claims)
        about = f"{self.sequences:,} sequences, {self.answers:,} answers, and the router sends them here: {claims}"
        return f"{self.report.result:9}  shard {self.number}: {self.report.why or about}"


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    content = read_bytes(Path(folder), MANIFEST)
    given = strict_json(content, MANIFEST)
    fields(given, {"format", "router", "names", "shards", "sequences", "answers"}, MANIFEST)
    if given["format"] != SHARDS_FORMAT:
        raise Malformed("format", f"unknown format {shown(given['format'])}")
    listed = given["shards"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_SHARDS:
        raise Malformed("shards", f"there must be 1 to {MOST_SHARDS} shards")
    names = {"sha256", "bytes", "sequences", "answers"}
    for k, entry in enumerate(listed):
        fields(entry, names, f"shards[{k}]")
        if any(type(entry[name]) is not int or entry[name] < 1 for name in names - {"sha256"}):
            raise Malformed("shards", f"the sizes of shard {k} are not positive whole numbers")
    entries = tuple(Entry(**entry) for entry in listed)
    for digest in (given["router"], given["names"], *(entry.sha256 for entry in entries)):
        if not isinstance(digest, str):
            raise Malformed("digest", f"{shown(digest)} is no digest")
    if len({entry.sha256 for entry in entries}) < len(entries):
        raise Malformed("shards", "a shard is listed twice")
    for name in ("sequences", "answers"):
        if type(given[name]) is not int or given[name] != sum(getattr(entry, name) for entry in entries):
            raise Malformed("shards", f"the {name} of the shards do not add up to {shown(given[name])}")
    return Manifest(hashlib.sha256(content).hexdigest(), given["router"], given["names"], entries)


def check_shard(folder: str | os.PathLike[str], number: int, *, data: Given | None = None, **options: Any) -> Shard:
    """Judge one shard, here or on any machine that sees the folder; ``options`` are those of `check`."""
    folder, manifest = Path(folder), None
    try:
        manifest = read_manifest(folder)
        entry = manifest.shards[number]
        with limited(options.get("budget"), options.get("memory")):
            files, own = _files(folder, number, manifest)
        report = check(files, data=data, **{**options, "require": ["memorizes", *options.get("require", ())]})
        found = Shard(number, manifest.digest, report, entry.sequences, entry.answers)
        if not isinstance(report.judge_with, Judge):  # nobody looked at stored sequences: nothing to be sent
            return replace(found, report=_without_router(report))
        with limited(options.get("budget"), options.get("memory")):
            return replace(found, report=_routed(report, own, number, entry, int(options.get("jobs", 1))))
    except Malformed as error:
        report = Report("MALFORMED", (), error.gate, str(error))
    except Beyond as error:
        report = Report("UNKNOWN", (), error.gate, f"{error.gate}: {error}")
    except Exception as error:  # a traceback would exit with 1, the code of NOT VERIFIED
        report = Report("UNFIT", (), "unforeseen", say_error(error))
    return Shard(number, "" if manifest is None else manifest.digest, report)


def _files(folder: Path, number: int, manifest: Manifest) -> tuple[dict[str, bytes], bytes]:
    """The files of a shard, each read once, as the manifest has them; and the weights of the router."""
    own, entry = folder / folder_of(number), manifest.shards[number]
    router = read_bytes(folder / ROUTER, MODEL)
    if hashlib.sha256(router).hexdigest() != manifest.router:
        raise Malformed("digest", "the router is not the one of the manifest")
    certificate = read_bytes(own, CERTIFICATE, entry.bytes)
    if hashlib.sha256(certificate).hexdigest() != entry.sha256:
        raise Malformed("digest", f"{folder_of(number)} is not the shard of the manifest")
    files = {CERTIFICATE: certificate} | {name: read_bytes(own, name) for name in (MODEL, DATA, NAMES)}
    if hashlib.sha256(files[NAMES]).hexdigest() != manifest.names:
        raise Malformed("names", f"the names of {folder_of(number)} are not those of the manifest")
    return files, router


def _routed(report: Report, weights: bytes, number: int, entry: Entry, jobs: int) -> Report:
    """The report with the claim that the router sends every sequence of the shard to it, and no other way."""
    stored = report.judge_with
    assert isinstance(stored, Judge)
    data, N = stored.data, len(stored.data.lengths)
    if (N, len(data.which)) != (entry.sequences, entry.answers):
        raise Malformed("shards", f"shard {number} has {N} sequences and {len(data.which)} answers")
    router = build(parse_safetensors(weights, ROUTER), False)
    if router.dtype != stored.network.dtype:
        raise Malformed("shards", "the router and the shard run in different arithmetics")
    tensors = {"tokens": data.tokens, "lengths": data.lengths, "which": np.zeros(N, np.int64)}
    sent = Judge(
        accelerate(router), read_data(tensors | {"answers": np.full((1, 1), float(number))}, router), jobs=jobs
    )
    for arith in (str(router.dtype), "real"):
        verdict = sent.judge(Claim("memorizes", arith, "sequence", {"eps": 0.0}))
        if verdict.outcome != "proved":
            return _not_sent(report, number, verdict)
    return report


def _without_router(report: Report) -> Report:
    """What could not be compared with the router is not verified, whatever else is."""
    if report.result != "VERIFIED":
        return report
    return replace(report, result="UNKNOWN", gate="router", why="there are no sequences to ask the router about")


def _not_sent(report: Report, number: int, verdict: Verdict) -> Report:
    why = f"the router does not send all sequences of shard {number} to it: {verdict.why}"
    outcome = "NOT VERIFIED" if verdict.outcome == "refuted" else "UNKNOWN"
    return replace(report, result=min(report.result, outcome, key=WORST.index), gate="router", why=why)


def conclude(folder: str | os.PathLike[str], found: Iterable[Shard]) -> Report:
    """The verdict on all shards; each must have been judged once, by this very manifest."""
    try:
        manifest = read_manifest(folder)
    except Malformed as error:
        return Report("MALFORMED", (), error.gate, str(error))
    shards = sorted(found, key=lambda shard: shard.number)
    worst = min(shards, key=lambda shard: WORST.index(shard.report.result), default=None)
    if worst is not None and worst.report.result != "VERIFIED":
        return replace(worst.report, claims=(), why=f"shard {worst.number}: {worst.report.why}", judge_with=None)
    if [shard.number for shard in shards] != list(range(len(manifest.shards))):
        return Report("UNKNOWN", (), "shards", "not every shard was judged once")
    if {shard.manifest for shard in shards} != {manifest.digest}:
        return Report("UNKNOWN", (), "shards", "the manifest changed meanwhile")
    counted = [sum(getattr(entry, name) for entry in manifest.shards) for name in ("sequences", "answers")]
    about = f"about the {counted[0]:,} sequences, {counted[1]:,} answers, in {len(shards):,} shards of the folder"
    alike = {
        tuple(sorted({f"{one.claim.type} {one.claim.arith}" for one in shard.report.claims})) for shard in shards
    }
    common = sorted(set.intersection(*map(set, alike)))
    return Report(
        "VERIFIED",
        (),
        notes=(about, f"proved of every shard: {', '.join(common)}; the router sends each of its sequences to it"),
    )


def check_shards(
    folder: str | os.PathLike[str], *, show: Callable[[Shard], object] = lambda _: None, **options: Any
) -> Report:
    """Judge every shard, one after another."""
    try:
        count = len(read_manifest(folder).shards)
    except Malformed as error:
        return Report("MALFORMED", (), error.gate, str(error))
    found = []
    for number in range(count):
        shard = check_shard(folder, number, **options)
        show(shard)
        found.append(replace(shard, report=replace(shard.report, judge_with=None)))
    return conclude(folder, found)
