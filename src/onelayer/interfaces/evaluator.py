"""From sequences to outputs: by search where there is one, with an eye on the range of the dtype."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np

from onelayer.errors import DataError, OptionError
from onelayer.gadgets.logits import Logits
from onelayer.gadgets.stacks import Covered, Parts, find_search, read_parts
from onelayer.network.blocks import Stacks, apply_stack, evaluate
from onelayer.network.range import safe_sizes, watch_range
from onelayer.network.reference import evaluate_in_order
from onelayer.network.weights import Array, Transformer
from onelayer.problems.blocks import blocks
from onelayer.problems.sequences import Sequences

#: "reference" has the same bits on every machine, for any number of inputs; of a large model it is slow.
Evaluation = Literal["auto", "dense", "fast", "reference"]
#: Numbers of outputs that are held at a time, where only the largest of each token is asked for.
HELD = 1 << 24


@dataclass(frozen=True)
class Evaluator:
    """Runs a transformer; sequences that have no answer get the default, or are an error."""

    transformer: Transformer
    default: tuple[float, ...] | None = None
    gadgets: tuple[Covered, ...] = ()  # a hint
    in_order: bool = False  # "auto" is the reference, too

    @cached_property
    def parts(self) -> Parts:
        """The gadgets as the weights bear them out."""
        return read_parts(self.transformer, self.gadgets)

    def outputs(self, sequences: Sequences, path: Evaluation = "auto") -> Array:
        """What the last layer gives, [N, n, q]."""
        ordered = path == "reference" or (path == "auto" and self.in_order)
        run = evaluate_in_order if ordered else partial(evaluate, stacks=self._stacks(path))
        far = self._far(sequences)
        if not far.any():
            return self._settle(run(self.transformer, sequences.tokens, sequences.lengths), sequences)
        watching = self._watch(sequences, far)
        out = np.empty((sequences.N, *watching.shape[1:]), watching.dtype)
        out[far] = watching
        if not far.all():
            near, lengths = ~far, sequences.lengths
            lengths = None if lengths is None else lengths[near]
            out[near] = run(self.transformer, sequences.tokens[near], lengths)
        return self._settle(out, sequences)

    def largest(self, sequences: Sequences, path: Evaluation = "auto") -> Array:
        """[N, n, 1] the number of the largest output, of the first if there are several.

        Behind logits that is the class number that they are made of, wherever it is that of a class."""
        found = self._before_logits
        if found is None or path in ("dense", "reference"):
            step = max(1, HELD // (sequences.n * self.transformer.output_width))
            parts = (self.outputs(some, path) for some in sequences.in_blocks(step))
            return np.concatenate([out.argmax(axis=2)[..., None] for out in parts])
        before, logits = found
        out = before.outputs(sequences, path)
        number = out.reshape(-1, 1)
        unsure = ~logits.is_class(number[:, 0])
        number[unsure] = apply_stack(logits.dense, np.maximum(number[unsure], 0)).argmax(axis=1)[:, None]
        return out

    @cached_property
    def _before_logits(self) -> tuple[Evaluator, Logits] | None:
        """What gives the class number, and the logits behind it; None if the network does not end in logits."""
        last = self.parts["readout"][-1] if self.parts["readout"] else None
        if last is None or not isinstance(last.gadget, Logits) or not last.covered.start:
            return None
        shorter = replace(self.transformer, readout=self.transformer.readout[: last.covered.start])
        return Evaluator(shorter, self.default, self.gadgets), last.gadget

    def _default_output(self, dtype: np.dtype[Any]) -> Array:
        """Of a default that is a class, its logits, where the network gives logits."""
        row, found = np.array(self.default, dtype), self._before_logits
        return row if found is None else found[1].search(row[None])[0]

    def check_outputs(self, outputs: Any, sequences: Sequences) -> Array:
        """What another runtime computed, with the default where this one has it."""
        out, far = np.array(outputs), self._far(sequences)
        if far.any():
            out[far] = np.where(np.isfinite(self._watch(sequences, far)), out[far], np.nan)
        return self._settle(out, sequences)

    @cached_property
    def searches(self) -> Stacks:
        return {stack: find_search(getattr(self.transformer, stack), parts) for stack, parts in self.parts.items()}

    @cached_property
    def safe_sizes(self) -> Array:
        return safe_sizes(self.transformer)

    def _stacks(self, path: Evaluation) -> Stacks | None:
        if path not in get_args(Evaluation):
            needs = f"a path among {get_args(Evaluation)}"
            raise OptionError("memorize", needs, f"path={path!r}", "Choose one of them.")
        if path == "fast" and not any(self.searches.values()):
            raise OptionError(
                "plateaus",
                "a readout of enough plateaus for a search to pay off",
                "this model's readout is small or of another kind",
                'Use path="auto" or path="dense".',
            )
        return None if path == "dense" else self.searches

    def _watch(self, sequences: Sequences, some: Array) -> Array:
        """Outputs of some sequences; NaN for a sequence with a value that is not finite."""
        lengths = None if sequences.lengths is None else sequences.lengths[some]
        out, finite = watch_range(self.transformer, sequences.tokens[some], lengths)
        return np.where(finite[:, None, None], out, np.nan).astype(out.dtype)

    def _far(self, sequences: Sequences) -> Array:
        """[N] Which sequences are too large for it to be sure that they do not overflow."""
        far = np.zeros(sequences.N, bool)
        if not sequences.is_real:
            return far
        low, high = sequences.low, sequences.high
        if low is None or high is None or (np.maximum(np.abs(low), np.abs(high)) > self.safe_sizes).any():
            for rows in blocks(sequences.tokens):
                far[rows] = np.any(np.abs(sequences.tokens[rows]) > self.safe_sizes, axis=(1, 2))
        return far

    def _settle(self, out: Array, sequences: Sequences) -> Array:
        """The default for sequences that have no answer, or an error."""
        finite = np.isfinite(out)
        bad = np.zeros(sequences.N, bool) if sequences.unknown is None else sequences.unknown.copy()
        if not finite.all():
            lost, valid = np.any(~finite, axis=2), sequences.valid()
            bad |= np.any(lost if valid is None else lost & valid, axis=1)
        if bad.any():
            if self.default is None:
                raise self._out_of_range(sequences, int(np.argmax(bad)))
            out[bad] = self._default_output(out.dtype)
        return out

    def _out_of_range(self, sequences: Sequences, i: int) -> DataError:
        """Names the component that is furthest beyond what is safe, of a sequence that overflows."""
        needs = f"inputs for which no value of the forward pass leaves the range of {self.transformer.dtype}"
        found = f"sequence {i} has one that does"
        if sequences.is_real:
            length = sequences.n if sequences.lengths is None else int(sequences.lengths[i])
            with np.errstate(all="ignore"):
                beyond = np.abs(sequences.tokens[i, :length].astype(np.float64)) / self.safe_sizes
            k, c = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
            found = f"sequence {i}, token {k}, component {c} is {float(sequences.tokens[i, k, c]):.6g}"
            found += f", and that component is safe up to {self.safe_sizes[c]:.3g}"
        remedy = "Rescale that sequence or leave it out, or memorise with default=, which it then gets."
        return DataError("data", needs, found, remedy)
