"""The checker stands alone: NumPy only, nothing of the library, and a machine that it has probed."""

from __future__ import annotations

import ast
import ctypes
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import onelayer
import onelayer_checker
from attacks.bundle import read
from onelayer import save
from onelayer_checker.core import judge
from onelayer_checker.core.balls import FLOAT64
from onelayer_checker.core.graph import build
from onelayer_checker.core.samples import read_data
from onelayer_checker.search import cells as plateaus
from onelayer_checker.search.stack import accelerate
from tests.checker.asked import check

memorize = partial(onelayer.memorize, certify=False)

SOURCE = Path(onelayer_checker.__file__).parent
rng = np.random.default_rng(3)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    X, Y = rng.standard_normal((10, 4, 3)), rng.integers(0, 9, (10, 4))
    return save(tmp_path_factory.mktemp("independent") / "bundle", memorize(X, Y), data=(X, Y))


def test_it_imports_only_numpy_and_the_standard_library() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                allowed = {"numpy", "onelayer_checker"} | ({"flint"} if path.parent.name == "arb" else set())
                assert top in allowed or top in sys.stdlib_module_names, f"{path.name}: {name}"


def test_it_runs_with_everything_else_forbidden(bundle) -> None:
    program = textwrap.dedent("""
        import sys
        class Forbid:
            def find_spec(self, name, path=None, target=None):
                top = name.split(".")[0]
                if top in {"onelayer", "safetensors", "rich", "typer", "flint", "scipy", "torch", "sklearn"}:
                    raise ImportError(f"{name} is forbidden")
        sys.meta_path.insert(0, Forbid())
        sys.argv = ["onelayer_checker", sys.argv[1]]
        import runpy
        runpy.run_module("onelayer_checker", run_name="__main__")
    """)
    done = subprocess.run([sys.executable, "-I", "-c", program, bundle], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "VERIFIED"


def test_a_ring_is_entered_only_for_a_claim_of_its_own(bundle) -> None:
    program = textwrap.dedent("""
        import sys
        from onelayer_checker import check
        assert check(sys.argv[1]).result == "VERIFIED"
        own = {name.split(".")[1] for name in sys.modules if name.startswith("onelayer_checker.")}
        assert own == {"core", "front", "search"}, own
        assert "numpy.random" not in sys.modules and "multiprocessing" not in sys.modules
    """)
    done = subprocess.run([sys.executable, "-I", "-c", program, bundle], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_front_door_knows_the_claims_of_every_ring() -> None:
    """In a process of its own: what other tests imported would hide a claim that nobody enters."""
    program = textwrap.dedent("""
        from onelayer_checker import front
        from onelayer_checker.core.claims import KINDS, RINGS, kind_of
        own = set(KINDS)
        import onelayer_checker.core.largest, onelayer_checker.functions, onelayer_checker.looped.kinds
        assert set(RINGS) == set(KINDS) - own, set(RINGS) ^ (set(KINDS) - own)
        for name, module in RINGS.items():
            assert kind_of(name).judge.__module__.startswith(module.rsplit(".kinds")[0]), name
    """)
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_flush_to_zero_in_its_own_thread_is_refused(bundle) -> None:
    """Libraries built for speed switch it on behind everybody's back; the probe must see it."""
    program = textwrap.dedent("""
        import ctypes, sys
        from pathlib import Path
        from tests.checker.asked import check
        # fesetenv with FTZ and DAZ set in MXCSR: the last word of fenv_t on x86-64 glibc
        libm = ctypes.CDLL("libm.so.6")
        env = (ctypes.c_uint32 * 8)()
        libm.fegetenv(env)
        env[7] |= 0x8040
        libm.fesetenv(env)
        print(check(Path(sys.argv[1]))["result"])
    """)
    done = subprocess.run([sys.executable, "-c", program, bundle], capture_output=True, text=True)
    assert done.stdout.strip() == "UNFIT", done.stderr


def test_another_rounding_mode_is_refused(bundle) -> None:
    program = textwrap.dedent("""
        import ctypes, sys
        from pathlib import Path
        from tests.checker.asked import check
        ctypes.CDLL("libm.so.6").fesetround(0x800)  # towards plus infinity
        print(check(Path(sys.argv[1]))["result"])
    """)
    done = subprocess.run([sys.executable, "-c", program, bundle], capture_output=True, text=True)
    assert done.stdout.strip() == "UNFIT", done.stderr


def test_the_library_that_sets_them_is_here() -> None:
    ctypes.CDLL("libm.so.6")


def test_right_in_real_arithmetic_but_not_in_every_float32_order_is_refused(tmp_path) -> None:
    """A coordinate 2^25 + x - 2^25 is x for real numbers, and anything near it in float32."""
    from attacks.bundle import Bundle

    values = np.array([[1.0], [2.0]])
    eye, zero = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32), np.zeros((1, 3, 1), np.float32)
    units = np.array([[[4, 0], [0, -4]]], np.float32).reshape(1, 4)
    model = {
        "embedding.lift": eye,
        "attention.W_Q": zero,
        "attention.W_K": zero,
        "attention.W_V": zero,
        "attention.W_O": np.zeros((1, 1, 3), np.float32),
        "readout.0.weight": np.ones((3, 1), np.float32),
        "readout.0.bias": np.zeros(1, np.float32),
        "readout.1.weight": units,
        "readout.1.bias": np.array([-5, -1, -1, 7], np.float32),  # group 0 up to 1.25, group 1 from 1.75
        "readout.2.weight": np.full((2, 2, 1), -1, np.float32),
        "readout.2.bias": np.ones(2, np.float32),
        "readout.3.weight": values.astype(np.float32),
        "readout.3.bias": np.zeros(1, np.float32),
    }
    data = {
        "tokens": np.array([[[2.0**25, 1, -(2.0**25)]], [[2.0**25, 2, -(2.0**25)]]], np.float32),
        "answers": values,
    }
    from tests.checker.asked import check

    for arith, result in (("real", "VERIFIED"), ("float64", "VERIFIED"), ("float32", "UNKNOWN")):
        claim = {"type": "memorizes", "arith": arith, "scope": "token", "eps": "0x0.0p+0"}
        certificate = {
            "format": "onelayer-certificate/1",
            "graph": {"template": "one-layer/1", "attention": "softmax", "causal": False},
            "profile": "ieee-any-order/1",
            "files": {},
            "claims": [claim],
            "producer": {"name": "test", "version": "0"},
        }
        verdict = check(Bundle(certificate, model, data, {}).write(tmp_path / arith))
        assert verdict["result"] == result, (arith, verdict)
        if result == "UNKNOWN":
            assert verdict["claims"][0]["why"].startswith("sequence 0, token 0:")


def test_a_search_that_contradicts_the_dense_evaluation_is_refused(bundle, monkeypatch) -> None:
    honest = plateaus.Cells.decide
    monkeypatch.setattr(plateaus.Cells, "decide", lambda self, t, A: (honest(self, t, A) + 1) % len(self.on_low))
    network, data = accelerate(build(read(bundle).model)), read(bundle).data
    found = judge.Judge(network, read_data(data, network))
    with pytest.raises(judge.Disagreement, match="search and dense evaluation disagree at sequence 0, token 0"):
        found.compare_ways(found.samples(FLOAT64, "token"), FLOAT64)
    assert judge.Disagreement.gate == "agreement"
    verdict = check(bundle)
    assert (verdict["result"], verdict["gate"]) == ("UNFIT", "agreement")
