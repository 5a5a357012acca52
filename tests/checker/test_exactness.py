"""Radius 0 means one number: every function that may say so, against every machine that section 4 allows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from onelayer_checker.core import balls, exactness, layers
from onelayer_checker.search import parts
from tests.checker import adversary_exact, mutants

MODULES = SimpleNamespace(balls=balls, exactness=exactness, layers=layers, parts=parts)
SOURCES = {name: Path(module.__file__).read_text() for name, module in vars(MODULES).items()}
CHECKS = {check.__name__.removeprefix("check_"): check for check in adversary_exact.CHECKS}
#: How often each function must have said so for its cases to count, of about a thousand.
ENOUGH = 150
FUNCTIONS = {
    "maps": {"linear", "linear, a stream", "exact_products", "whole_products", "Layer.apply"},
    "sums": {"add", "add_numbers", "added rows", "relu"},
    "products": {"added products", "dot", "softmax", "around"},
    "sizes": {"sums_fit", "sums_fit, signed"},
}
#: (check that must notice, module, what is broken, the code, what replaces it)
MUTANTS = [
    ("products", "parts", "a subnormal weight is exact", " & normal(W, A)", ""),
    ("products", "parts", "a subnormal operand is exact", "normal(x.m, A)[:, :, None] & ", ""),
    ("products", "parts", "a subnormal product is exact", " & normal(terms, A)", ""),
    ("products", "parts", "any factor is exact", "is_power(np.ascontiguousarray(W)) |", "(W != 0) |"),
    ("products", "parts", "whole products of any size", "fits = sums_fit(S, A, m)", "fits = S < np.inf"),
    (
        "products",
        "parts",
        "an unknown number is exact",
        ".astype(np.float32)) == 0  # all",
        ".astype(np.float32)) >= 0  # all",
    ),
    ("maps", "exactness", "a subnormal bias", "((b == 0) | normal(b, A)) & ", ""),
    ("maps", "exactness", "subnormal terms", "_count(~point | faint, used) == 0", "_count(~point, used) == 0"),
    ("maps", "exactness", "unknown terms", "_count(~point | faint, used) == 0", "_count(faint, used) == 0"),
    ("maps", "exactness", "products that round", "one = (terms <= 1) & (rounds == 0)", "one = terms <= 1"),
    ("maps", "exactness", "two terms", "one = (terms <= 1)", "one = (terms <= 2)"),
    ("maps", "exactness", "a bias is no term", "_count(live, used) + (b != 0)", "_count(live, used)"),
    (
        "maps",
        "exactness",
        "unknown whole numbers",
        "_count(~point | (x.m != np.rint(x.m))",
        "_count((x.m != np.rint(x.m))",
    ),
    (
        "maps",
        "exactness",
        "halves are whole",
        "_count(~point | (x.m != np.rint(x.m)), used)",
        "_count(~point, used)",
    ),
    ("maps", "exactness", "whole sums of any size", "whole &= sums_fit(", "whole |= sums_fit("),
    ("maps", "exactness", "the bias has no size", "np.abs(W)) + np.abs(b), A", "np.abs(W)), A"),
    ("maps", "exactness", "whole: unknown numbers", "if x.r.any() or (x.m", "if (x.m"),
    ("maps", "exactness", "whole: halves", "if x.r.any() or (x.m != np.rint(x.m)).any():", "if x.r.any():"),
    ("sums", "exactness", "halves are added", " & (y == np.rint(y))", ""),
    ("sums", "exactness", "sums of any size", " & sums_fit(np.abs(x.m) + np.abs(y), A)", ""),
    ("sums", "parts", "subnormal rows", "one = one & ((size == 0) | normal(value, A))", "pass"),
    ("sums", "parts", "a subnormal bias of rows", " & ((b == 0) | normal(b, A))", ""),
    ("sums", "parts", "two rows", "one & (count <= 1)", "one & (count <= 2)"),
    ("sums", "parts", "rows of halves", "every = every & (value == np.rint(value))", "pass"),
    ("sums", "parts", "a bias of halves", " & (b == np.rint(b)) & fits", " & fits"),
    ("sums", "parts", "rows of any size", "fits = sums_fit(S, A, m)", "fits = S < np.inf"),
    ("sums", "parts", "rows have no size", "m, S = m + value, S + size", "m = m + value"),
    ("sums", "parts", "a row of many terms", "(1 if single else 2)", "1"),
    ("sizes", "exactness", "terms of one sign have no limit", " & (size + np.abs(m) <= 2 * A.whole)", ""),
    ("sizes", "exactness", "terms of one sign may be twice as large", "size + np.abs(m) <=", "size - np.abs(m) <="),
    ("sizes", "exactness", "the limit itself", "np.asarray(size) < A.whole", "np.asarray(size) <= A.whole"),
    ("maps", "balls", "linear: a subnormal bias is kept", " | present & (absb - rb < 2 * A.tiny)", ""),
    ("maps", "balls", "linear: subnormal copies are kept", "        if small.any():\n", "        if False:\n"),
    ("maps", "balls", "linear: large weights hide subnormal copies", "np.minimum(ax - x.r, 1.0)", "(ax - x.r)"),
    (
        "maps",
        "balls",
        "linear: large copies hide subnormal weights",
        "initial=1.0)\n        small",
        "initial=np.inf)\n        small",
    ),
    ("maps", "balls", "linear: the bias is no term", "terms + present - 1", "terms - 1"),
    ("maps", "balls", "linear: every product is exact", "- 1, 0) + inexact", "- 1, 0)"),
    (
        "maps",
        "balls",
        "linear: unknown terms are not counted",
        "live = (x.m != 0) | (x.r != 0)",
        "live = x.m * 0 != 0",
    ),
    (
        "sums",
        "balls",
        "add: zero flushes nothing",
        "kept = zero & ((m == 0) | (size - R >= 2 * A.tiny))",
        "kept = zero",
    ),
    ("sums", "balls", "add: one zero is enough to be kept", "zero = ((x.m == 0) & (x.r == 0))", "zero = (m != 0)"),
    (
        "sums",
        "balls",
        "relu: zero when the midpoint is negative",
        "np.minimum(x.m, 0.0) + x.r",
        "np.where(x.m < 0, 0.0, x.r)",
    ),
    (
        "products",
        "balls",
        "dot: underflow is taken for zero",
        "product((ax + x.r > 0) * 1.0, (wy > 0) * 1.0)",
        "product(ax, ay)",
    ),
    (
        "products",
        "balls",
        "dot: an unknown factor is taken for zero",
        "(ax + x.r > 0) * 1.0",
        "(ax - x.r > 1) * 1.0",
    ),
    (
        "products",
        "balls",
        "softmax: what is seen is exact",
        "lost = L + (E + g), 8 * n * (A.tiny + TINY)",
        "lost = 0 * L, 0.0",
    ),
    (
        "products",
        "balls",
        "tokens: a radius is forgotten",
        "if A.u == 0 or radius == 0:\n        return Ball(x, r)",
        "if True:\n        return Ball(x, 0 * r)",
    ),
    ("maps", "exactness", "NORMAL is not looked at in real arithmetic", "4 * (A.tiny + NORMAL)", "4 * A.tiny"),
]
NAMES = [f"{module}: {name}" for _, module, name, _, _ in MUTANTS]


@pytest.mark.parametrize("name", adversary_exact.BITS)
@pytest.mark.parametrize("check", CHECKS)
def test_radius_zero_is_one_number(check, name) -> None:
    seen = CHECKS[check](MODULES, name)
    assert set(seen) == FUNCTIONS[check]
    assert min(seen.values()) >= ENOUGH, seen


@pytest.mark.parametrize(
    ("check", "module", "name", "old", "new"), MUTANTS, ids=[f"{m[1]}: {m[2]}" for m in MUTANTS]
)
def test_a_function_that_claims_too_much_is_caught(monkeypatch, check, module, name, old, new) -> None:
    assert SOURCES[module].count(old) == 1, old
    sources = SOURCES | {module: SOURCES[module].replace(old, new)}
    mutant = mutants.installed(monkeypatch, sources, name)
    rounds = (lambda m, arithmetic=arithmetic: CHECKS[check](m, arithmetic) for arithmetic in adversary_exact.BITS)
    mutants.assert_caught(rounds, mutant)
