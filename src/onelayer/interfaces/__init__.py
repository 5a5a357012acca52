"""Interfaces: what goes into a model and what comes out. Each kind is one file, and is tagged in `model.json`."""

from __future__ import annotations

from typing import Any

from onelayer.interfaces.answers import Answers
from onelayer.interfaces.examples import Examples
from onelayer.interfaces.forms import Forms
from onelayer.interfaces.function import Function
from onelayer.interfaces.next_token import NextToken
from onelayer.problems.answers import AnswerForm

Interface = Answers
KINDS: dict[str, type[Answers]] = {kind.kind: kind for kind in (Answers, NextToken, Function, Examples, Forms)}


def interface_from_json(entry: dict[str, Any], form: AnswerForm, vocabulary: Any) -> Answers:
    """The interface that a bundle describes."""
    if entry["kind"] not in KINDS:
        raise ValueError(f"the interface {entry['kind']!r} is not known to this version")
    return KINDS[entry["kind"]].from_json(entry, form, vocabulary)


__all__ = ["KINDS", "Answers", "Examples", "Forms", "Function", "Interface", "NextToken", "interface_from_json"]
