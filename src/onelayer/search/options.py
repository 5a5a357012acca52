"""Refusing options that are unknown or contradict each other, before any work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from onelayer.contexts import averages, lattice, published, rank_one, shared_query, tallies, temperature
from onelayer.contexts.mapping import MAPPINGS
from onelayer.errors import HypothesisError, OptionError
from onelayer.readouts import fit
from onelayer.readouts.method import READOUTS, ReadoutMethod, names_of
from onelayer.search.problem import LOGITS, Problem
from onelayer.statements import CATALOGUE

MAX_RANK = 64
#: These modules register what the options name.
OURS = (temperature, shared_query, lattice, averages, rank_one, published, tallies, *fit.OURS)


def mapping_names() -> list[str]:
    return ["auto", *MAPPINGS]


def readout_names() -> list[str]:
    return ["auto", *READOUTS, LOGITS]


def refuse_unknown(subject: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """An option that is misspelt must not be ignored."""
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            remedy = f"Did you mean {near[0]}?" if near else "Leave it out."
            raise OptionError(subject, f"an option that {subject} has", f"{name}={value!r:.60}", remedy)


def check_options(problem: Problem) -> None:
    """Refuse options that are unknown or contradict each other."""
    _check_name("mapping", problem.mapping, mapping_names())
    _check_name("readout", problem.readout, readout_names())
    mapping, rank, readout = MAPPINGS.get(problem.mapping), problem.rank, READOUTS.get(problem.readout)
    if rank is not None and (type(rank) is not int or not 1 <= rank <= MAX_RANK):
        needs = f"a whole rank of at least 1 and at most {MAX_RANK}"
        raise OptionError("memorize", needs, f"rank={rank!r}", "Leave it out; then it is chosen.")
    if readout is not None:
        _check_readout(problem, readout)
    if mapping is not None:
        mapping.refuse(problem.sequences, problem.dtype)
        if mapping.only_rank not in (None, rank) and rank is not None:
            needs = f"rank {mapping.only_rank}"
            raise OptionError(_tag(mapping.name), needs, f"rank={rank} was asked for", "Leave the rank out.")
    only = 1 if rank == 1 else None if mapping is None else mapping.only_rank
    if readout is not None and only == 1 and not (readout.reads("on_line") or readout.reads("on_lattice")):
        needs = "a rank of at least 2"
        raise OptionError(_tag(readout.name), needs, "rank 1 was asked for", 'Use readout="plateaus".')


def _check_name(what: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        needs = f"a {what} among {', '.join(names)}"
        raise OptionError("memorize", needs, f"{what}={name!r}", "Choose one of them.")


def _check_readout(problem: Problem, readout: type[ReadoutMethod]) -> None:
    """Whether it reads what the mapping writes, and stores what is to be stored."""
    mapping, rank, tag = MAPPINGS.get(problem.mapping), problem.rank, _tag(readout.name)
    line, whole, boxes = (readout.reads(what) for what in ("on_line", "on_lattice", "in_boxes"))
    if line and not whole and not boxes and rank is not None and rank > 1:
        needs, found = "one coordinate, that is rank 1", f"rank={rank} was asked for"
        raise OptionError(tag, needs, found, 'Use readout="boxes".')
    if problem.default is not None and not readout.knows_stored:
        able = " or ".join(f'readout="{name}"' for name, method in READOUTS.items() if method.knows_stored)
        raise OptionError(tag, "a readout that knows what is stored", "a default was given", f"Use {able}.")
    if problem.false_hits is not None and not readout.chooses_false_hits:
        found = f"false_hits={problem.false_hits:g} with readout={problem.readout!r}"
        raise OptionError(tag, "fingerprints, to choose the share of false hits", found, 'Use readout="packed".')
    if mapping is not None and mapping.on_lattice and not whole:
        able = " or ".join(f'"{name}"' for name in names_of("on_lattice"))
        found = f"readout={problem.readout!r}"
        raise OptionError(_tag(mapping.name), "a readout of several coordinates", found, f"Use {able}.")
    wrong = mapping is not None and not mapping.on_lattice
    if whole and not line and (wrong or (rank or readout.least_coordinates) < readout.least_coordinates):
        needs = f"lattice coordinates, at least {readout.least_coordinates} of them"
        found = f"mapping={problem.mapping!r}, rank={rank}"
        raise OptionError(tag, needs, found, 'Use mapping="lattice" and leave the rank out.')
    if readout.only_classes and problem.answers.form.classes is None:
        raise HypothesisError(tag, "classes", "the answers are real numbers", 'Use readout="table".')
    if whole and not boxes and (mapping is None or wrong) and (rank or 1) > 1 and line:
        found = f"mapping={problem.mapping!r}"
        raise OptionError(tag, "other coordinates", found, 'Use mapping="lattice".')


def _tag(name: str) -> str:
    """The statement that is named in an error; what others registered has none of its own."""
    return name if name in CATALOGUE else "memorize"
