"""Models for 16 bits: every answer through PyTorch in that dtype, densely, and the verdict of the checker.

Facts are those of `facts` (four ids of twelve in order, twelve answers), beside torchwright there; real tokens are
Gaussian, rounded to bfloat16 and then to float16, so that both formats hold them. Beside each model stands the one
for float32 of the same data, cast to 16 bits, and to int8 as dynamic quantisation does. torchwright's models of the
same facts, which have no proof to verify, are asked for as many of them as is said; where it is absent, a row says
how to get it. Seconds are of CPU.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.facts import ABSENT, SAMPLE, THEIRS, by_torchwright, draw, recast, wrong
from onelayer import Model, cast, memorize
from onelayer.errors import CastWarning
from onelayer.network.formats import FORMATS, nearest

FACTS, SEQUENCES, PLACES, CLASSES = (1_024, 16_000), 1_000, 16, 10
AT_A_TIME = 250


def cases() -> list[tuple[str, Any, Any, dict[str, Any]]]:
    stored = [draw(count) for count in FACTS]
    found = [
        (f"{len(f.answers):,} facts", f.asked, f.answers, {"positions": True, "scope": "sequence"}) for f in stored
    ]
    rng = np.random.default_rng(0)
    X = nearest(nearest(rng.standard_normal((SEQUENCES, PLACES, PLACES)), "bfloat16"), "float16")
    Y = rng.integers(0, CLASSES, (SEQUENCES, PLACES))
    return [*found, (f"{Y.size:,} answers of real tokens", X, Y, {})]


def torch_wrong(model: Model, dtype: str, X: Any, Y: Any) -> int:
    """Wrong answers of the dense network, weights and all results in the dtype."""
    import torch

    from onelayer import to_torch

    asked = model.ask(X)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CastWarning)  # what it warns of is what is counted
        net = to_torch(model).to(getattr(torch, dtype))
        parts = torch.as_tensor(asked.tokens).split(AT_A_TIME)
        outputs = torch.cat([net(part).float() for part in parts]).nan_to_num(-1.0).numpy()
    return int((np.asarray(model.form.decode(outputs, asked.lengths)) != Y).sum())


def run() -> dict[str, list[dict[str, Any]]]:
    rows = []
    for name, X, Y, options in cases():
        for dtype in FORMATS:
            start = time.process_time()
            model = memorize(X, Y, dtype=dtype, certify=False, **options)
            built = time.process_time()
            proved = memorize(X, Y, dtype=dtype, certify=True, **options)
            verdict = proved.verify(require=[f"memorizes {dtype}"]).result
            plain = memorize(X, Y, dtype="float32", certify=False, **options)
            rows.append(
                {
                    "data": name,
                    "dtype": dtype,
                    "build s": built - start,
                    "parameters": model.n_parameters,
                    "answers": int(np.size(Y)),
                    "wrong in torch, all answers": torch_wrong(model, dtype, X, Y),
                    "verdict": verdict,
                    "parameters of the float32 model": plain.n_parameters,
                    "wrong, float32 model cast": torch_wrong(plain, dtype, X, Y),
                    "right of those asked, float32 model in int8": eight_bits(plain, X, Y),
                }
            )
    return {"Models for 16 bits": rows, "torchwright, the same facts": theirs()}


def eight_bits(model: Model, X: Any, Y: Any) -> str:
    report = cast(model, "int8", X, Y)
    return f"{report.right:,} of {report.asked:,}"


def theirs() -> list[dict[str, Any]]:
    if find_spec("torchwright") is None:
        return [{"data": "facts", "model": "torchwright", "found": ABSENT}]
    import torch

    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchwright's reading of tensors as numbers, transformers' loading
        for count in FACTS:
            stored = draw(count)
            for name, options in THEIRS.items():
                start = time.process_time()
                made = by_torchwright(stored, options)
                built = time.process_time() - start
                asked = min(count, SAMPLE)
                found = {
                    f"wrong, all in {dtype}": wrong(made, stored, recast(made.module, kind, kind), asked)
                    for dtype, kind in ((d, getattr(torch, d)) for d in ("float32", *FORMATS))
                }
                size = sum(p.numel() for p in made.module.parameters())
                row = {"data": f"{count:,} facts", "model": name, "build s": built, "parameters": size}
                rows.append(row | {"asked": asked} | found)
    return rows
