"""Models for 16 bits: every answer through PyTorch in that dtype, densely, and the verdict of the checker.

Facts are those of `facts` (four ids of twelve in order, twelve answers), beside torchwright there; real tokens are
Gaussian, rounded to bfloat16 and then to float16, so that both formats hold them. Beside each model stands the one
for float32 of the same data, cast to 16 bits. Seconds are of CPU.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.facts import draw
from onelayer import Model, memorize
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

    asked, net = model.ask(X), to_torch(model).to(getattr(torch, dtype))
    with torch.no_grad():
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
                }
            )
    return {"Models for 16 bits": rows}
