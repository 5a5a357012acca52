"""What `approximate` returns: a one-layer Transformer, the function it stands for, and how far it is from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onelayer.approximation.measure import Box, largest_error
from onelayer.approximation.plan import Plan
from onelayer.certify.certificate import Certificate
from onelayer.errors import HypothesisError
from onelayer.ledger import Ledger
from onelayer.memory import Memory
from onelayer.targets import Target


@dataclass(frozen=True, kw_only=True)
class Approximation(Memory):
    """A one-layer Transformer that approximates a function on a box."""

    target: Target
    construction: str
    low: float
    high: float
    budget: Ledger  # where the error comes from; the entries add up to the bound
    error_bound: float  # on every input of the box, but for a share `left_out` of it; infinite if nothing is proved
    left_out: float
    measured_error: float  # the largest that was found by trying to break the bound
    samples: int  # among so many inputs, and by climbing from the worst
    certificate: Certificate | None  # None: nothing is known of the target that a proof could rest on
    box: Box  # where the bound holds
    compared: tuple[Plan, ...] = ()  # what was planned before one of them was built

    @property
    def proved(self) -> bool:
        """Whether the checker said so, when the model was built; `onelayer verify` asks it again."""
        return self.certificate is not None

    @property
    def assumes(self) -> str:
        """What the proof takes for granted of the target; empty if it is enclosed by the checker itself."""
        entries = () if self.certificate is None else self.certificate.claims
        if not any("lipschitz" in entry["target"] for entry in entries):
            return ""
        symmetric = "" if self.target.kind == "ordered" else f" and {self.target.kind}"
        return f"the target is {self.target.lipschitz:.6g}-Lipschitz{symmetric}"

    def __repr__(self) -> str:
        standing = (
            f"error <= {self.error_bound:.4g} (proved{f' if {self.assumes}' if self.assumes else ''}), measured"
        )
        return (
            f"<Approximation of {self.target.name}: {self.construction}, {self.n_parameters:,} parameters, "
            f"{self.transformer.dtype}, {standing if self.proved else 'not proved, measured error'} "
            f"{self.measured_error:.4g}>"
        )

    def certify(self) -> Certificate:
        """The certificate that was proved when the model was built, for `save`."""
        if self.certificate is None:
            raise HypothesisError(
                "approximate",
                "a bound that the checker proved",
                "this model's error was only measured",
                "Give the target as an expression, or with a Lipschitz constant.",
            )
        return self.certificate

    def measure(self, samples: int = 1_000_000, seed: int = 0) -> float:
        """The largest error found among samples, cell corners among them, and by climbing from the worst."""
        return largest_error(self.errors, self.box, samples, seed)[0]

    def errors(self, X: Any) -> Any:
        """|model - target| at sequences [B, n, d], in the largest component, [B]."""
        wanted = self.target.evaluate(np.asarray(X, np.float64))
        found = self.predict(X).astype(np.float64)
        return np.abs(found - wanted).reshape(len(X), -1).max(axis=1)
