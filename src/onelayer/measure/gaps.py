"""Gaps between neighbouring cells of a readout, and which stored samples lie on both sides of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from onelayer.gadgets.line import Line
from onelayer.gadgets.plateaus import Plateaus
from onelayer.gadgets.stacks import find_search
from onelayer.interfaces import Examples, NextToken
from onelayer.network.blocks import evaluate
from onelayer.network.weights import Array
from onelayer.problems.scopes import answer_places, at_answers
from onelayer.problems.sequences import Sequences

if TYPE_CHECKING:
    from onelayer.model import Model

#: Gaps that are named in all, at least one of each coordinate.
NAMED = 6
#: Characters of a token, of the others in its sequence, of a whole sequence and of an answer; more are cut.
LONGEST_TOKEN, LONGEST_OTHERS, LONGEST_SEQUENCE, LONGEST_ANSWER = 24, 18, 42, 16


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps between the cells of one coordinate, from left to right."""

    part: int  # which gadget of the readout cuts the coordinate into cells
    name: str  # of the cells, such as plateaus or "table 0 / rows"
    at: Array  # [gaps] the middle of the ramp in each gap
    width: Array  # [gaps] from the stored sample on the left to the one on the right; or `width_lower`
    samples: Array | None  # [gaps, 2] the answers' numbers of both samples; None if no samples are stored

    def narrowest(self, count: int) -> Array:
        """The numbers of the narrowest gaps, narrowest first; of equals the leftmost."""
        return np.argsort(self.width, kind="stable")[:count]


@dataclass(frozen=True)
class Gap:
    """One gap, with what lies on both sides in words."""

    at: float
    width: float
    left: str
    right: str
    alike: int  # gaps of that width on the same coordinate, this one included


def gaps_of(model: Model) -> list[Gaps]:
    """Every coordinate that the readout cuts into two cells or more.

    Widths are measured between the stored samples, which the certificate holds. Without a certificate they are
    lower bounds that the weights give.
    """
    if isinstance(model.interface, Examples):  # a learner stores no samples
        return []
    samples, found = stored_samples(model), []
    for i, part in enumerate(model.parts["readout"]):
        lines = {name: line for name, line in part.gadget.lines_of_cells().items() if line.count > 1}
        values = _values_before(model, i, samples) if lines and samples is not None else None
        found += [_gaps(i, name, line, values) for name, line in lines.items()]
    return [gaps for gaps in found if gaps.at.size]  # all samples may lie in one cell


def _gaps(part: int, name: str, line: Line, values: Array | None) -> Gaps:
    slopes = line.weight[:-1, 0].astype(np.float64)
    at = line.ends + 0.5 / slopes
    if values is None:
        return Gaps(part, name, at, width_lower(slopes), None)
    z = values[:, line.coordinate].astype(np.float64)
    order = np.argsort(z, kind="stable")
    above, first = np.unique(np.searchsorted(z[order], at), return_index=True)  # cells may hold no sample
    between = (above > 0) & (above < len(z))
    above, at = above[between], at[first[between]]
    samples = np.stack([order[above - 1], order[above]], axis=1)
    return Gaps(part, name, at, z[samples[:, 1]] - z[samples[:, 0]], samples)


def width_lower(slopes: Array) -> Array:
    """The width of gaps from below: a ramp is at most a quarter as wide as its gap."""
    return np.asarray(4.0 / slopes)


def name_gaps(model: Model, gaps: Gaps, which: Iterable[int]) -> list[Gap]:
    """Some of the gaps, with the stored samples on both sides; if no samples are stored, with the answers of both
    cells, or with what the cells are called if an answer depends on others too."""
    found, samples = [], stored_samples(model)
    for j in map(int, which):
        if gaps.samples is None or samples is None:
            left, right = _cell(model, gaps, j), _cell(model, gaps, j + 1)
        else:
            left, right = (_sample(model, samples, int(answer)) for answer in gaps.samples[j])
        alike = int(np.count_nonzero(gaps.width == gaps.width[j]))
        found.append(Gap(float(gaps.at[j]), float(gaps.width[j]), left, right, alike))
    return found


def stored_samples(model: Model) -> Sequences | None:
    """The sequences that the model's certificate is about; None without a certificate."""
    if model.certificate is None:
        return None
    data, vocabulary = model.certificate.data, model.interface.vocabulary
    if "stream" in data:
        windows = np.lib.stride_tricks.sliding_window_view(data["stream"], int(data["window"][0]))
        return Sequences(windows, None, vocabulary)
    return Sequences(data["tokens"], data.get("lengths"), vocabulary)


def _values_before(model: Model, part: int, samples: Sequences) -> Array:
    """[answers, coordinates] What a gadget of the readout reads, for every sample that has an answer."""
    before = model.parts["readout"][:part]
    layers = model.transformer.readout[: before[-1].covered.stop if before else 0]
    stacks = {**model.evaluator.searches, "readout": find_search(layers, before)}
    h = evaluate(replace(model.transformer, readout=layers), samples.tokens, samples.lengths, stacks)
    values = at_answers(h, model.form.scope, samples.lengths)
    return np.maximum(values, 0) if layers else values


def _sample(model: Model, samples: Sequences, answer: int) -> str:
    """A sample in words: its token, the others of its sequence, and its answer."""
    at = answer_places(model.form.scope, np.array([answer]), samples.n, samples.lengths)
    i, k = int(at[0][0]), int(at[1][0])
    length = samples.n if samples.lengths is None else int(samples.lengths[i])
    one = Sequences(samples.tokens[i : i + 1, :length], None, samples.vocabulary)
    said = _answer(model, model.rows(one)[0, k])
    if isinstance(model.interface, NextToken):
        start = model.interface.tokens.size  # stands before the beginning of the text
        text = model.interface.decode([token for token in one.tokens[0] if token < start])
        return f"{cut(repr(text.decode(errors='replace')), LONGEST_SEQUENCE)} {said}"
    if one.vocabulary is None:
        where = f"{_real(one.tokens[0, k])} in sequence {i}" if model.form.scope == "token" else f"sequence {i}"
        return f"{where} {said}"
    words = [str(one.vocabulary[int(token)]) for token in one.tokens[0]]
    if model.form.scope != "token":
        return f"{cut(' '.join(words), LONGEST_SEQUENCE)} {said}"
    others = cut(" ".join(word for place, word in enumerate(words) if place != k), LONGEST_OTHERS)
    return f"{cut(words[k], LONGEST_TOKEN)} {f'({others}) ' if others else ''}{said}"


def _real(token: Array) -> str:
    shown = [f"{float(x):.3g}" for x in token[:3]]
    return f"({', '.join(shown + ['…'] * (len(token) > 3))})"


def _answer(model: Model, row: Array) -> str:
    if isinstance(model.interface, NextToken):
        return f"→ {model.interface.decode([int(row.argmax())]).decode(errors='replace')!r}"
    if model.form.classes is not None:
        return f"→ {cut(str(model.form.classes[round(float(row[0]))]), LONGEST_ANSWER)}"
    return f"→ {cut(', '.join(f'{float(x):.3g}' for x in row), LONGEST_ANSWER)}"


def _cell(model: Model, gaps: Gaps, j: int) -> str:
    """The answer of a plateau, or what a cell is called if its answer depends on other cells too."""
    gadget = model.parts["readout"][gaps.part].gadget
    if isinstance(gadget, Plateaus) and gaps.part + 1 == len(model.parts["readout"]):
        return _answer(model, gadget.values[j] + gadget.constant)
    return f"{gaps.name.removesuffix('s')} {j}"


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
