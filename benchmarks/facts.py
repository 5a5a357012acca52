"""Facts about token ids, side by side with torchwright, a compiler of Python graphs into a decoder's weights.

A fact is a sequence of four ids of a vocabulary of twelve and the id that answers it; order matters. torchwright
(github.com/physicsrob/torchwright, PyPI) has no call that stores a table of facts, but the parts of one: one-hot
tokens, heads that read the ids before, and a lookup of one hidden unit per fact. It is measured three times: with
its defaults, which give a stock Phi-3 checkpoint; with the constant of its norm at 2^15, the smallest it takes for
this graph and the largest that float16 holds (already 16 ids in four places need more); and on its own ReLU model
without norm. It is no requirement of this project: where it is absent, its rows say how to get it. All rows need
torch, and run on one core.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.throughput import one_core
from onelayer import memorize, to_torch

SIZES = (64, 256, 1_024, 4_096, 16_000)
VOCABULARY, PLACES = 12, 4
#: How many facts are asked for in 16 bits, which is slow on a CPU, and how many sequences that are not stored.
SAMPLE = 1_000
BLOCK = 200
ABSENT = 'not installed: pip install "torchwright[hf]"'

#: Residual width and head size of torchwright's decoder: the smallest power of two that holds this graph.
WIDTH, HEAD = 64, 16
THEIRS: dict[str, dict[str, Any]] = {
    "torchwright, stock Phi-3, defaults": {},
    "torchwright, stock Phi-3, norm constant 2^15": {"rms_norm_const_exp": 15},
    "torchwright, its ReLU model without norm": {"architecture": "custom", "rms_norm": False},
}
OURS: dict[str, dict[str, Any]] = {
    "onelayer, float32": {"dtype": "float32"},
    "onelayer, float64": {"dtype": "float64"},
}


@dataclass(frozen=True)
class Facts:
    asked: Any  # [M, PLACES] ids
    answers: Any  # [M]
    others: Any  # [SAMPLE, PLACES] sequences that are not stored


@dataclass(frozen=True)
class Compiled:
    module: Any  # torch.nn.Module
    ask: Callable[[Any, Any], Any]  # (module, ids) to answers, -1 where the outputs are not finite
    knows: Callable[[Any], Any] | None  # ids to whether the model says that it stores them, if it can say so


def draw(count: int) -> Facts:
    rng = np.random.default_rng(0)
    codes = rng.permutation(VOCABULARY**PLACES)[: count + SAMPLE]
    ids = np.stack([codes // VOCABULARY**k % VOCABULARY for k in range(PLACES)], 1)
    return Facts(ids[:count], rng.integers(0, VOCABULARY, count), ids[count:])


def in_blocks(module: Any, ids: Any) -> Any:
    import torch

    with torch.no_grad():
        return torch.cat([module(part) for part in torch.as_tensor(ids).split(BLOCK)])


def by_onelayer(facts: Facts, options: dict[str, Any]) -> Compiled:
    model = memorize(facts.asked, facts.answers, positions=True, scope="sequence", certify=False, **options)

    def ask(module: Any, ids: Any) -> Any:
        asked = model.read(ids)
        outputs = in_blocks(module, asked.tokens).double().numpy()
        finite = np.isfinite(outputs).all((1, 2))
        return np.where(finite, model.form.decode(np.nan_to_num(outputs), asked.lengths), -1)

    return Compiled(to_torch(model), ask, None)


def by_torchwright(facts: Facts, options: dict[str, Any]) -> Compiled:
    import torch
    from torchwright.compiler import compile_to_hf
    from torchwright.graph import Linear
    from torchwright.ops.attention_ops import attend_to_offset
    from torchwright.ops.inout_nodes import create_onehot_embedding, create_rope_config
    from torchwright.ops.linear import concat

    if "architecture" in options:
        from torchwright.ops.relu.onehot_table import onehot_lookup
    else:
        from torchwright.ops.swiglu.onehot_table import onehot_lookup

    embedding = create_onehot_embedding([f"t{i}" for i in range(VOCABULARY)])
    rope = create_rope_config(d_head=HEAD, max_positions=16)
    places = [attend_to_offset(rope, embedding, i - PLACES + 1) for i in range(PLACES)]
    unit = torch.eye(VOCABULARY)
    table = dict(zip(unit[facts.asked].flatten(1), unit[facts.answers], strict=True))
    answer = onehot_lookup(concat(places), table, torch.zeros(VOCABULARY))
    output = Linear(answer, unit, name="answer")  # the last step has to be linear, says the compiler
    sizes: dict[str, Any] = {"d": WIDTH, "d_head": HEAD, "d_hidden": len(facts.answers) + 1, "max_seq_len": 16}
    module = compile_to_hf(output, embedding, bos_token=None, eos_token=None, **sizes, **options)

    def logits(module: Any, ids: Any) -> Any:
        return in_blocks(lambda part: module(part, use_cache=False).logits[:, -1].float(), ids)

    def ask(module: Any, ids: Any) -> Any:
        found = logits(module, ids)
        return torch.where(found.isfinite().all(-1), found.argmax(-1), -1).numpy()

    return Compiled(module, ask, lambda ids: (logits(module, ids).amax(-1) > 0.5).numpy())


def recast(module: Any, dtype: Any, run_in: Any) -> Any:
    """A copy whose weights are rounded to one type and which computes in another."""
    return copy.deepcopy(module).to(dtype).to(run_in)


def wrong(compiled: Compiled, facts: Facts, module: Any, count: int) -> int | str:
    try:
        found = compiled.ask(module, facts.asked[:count])
    except RuntimeError as refusal:  # torchwright's own model declines to compute in anything but float32
        return "refused: " + str(refusal).split(";")[0]
    return int((found != facts.answers[:count]).sum())


def measure(name: str, build: Callable[[], Compiled], facts: Facts) -> dict[str, Any]:
    import torch

    count, seconds = len(facts.answers), np.inf
    for _ in range(2):
        start = time.perf_counter()
        compiled = build()
        seconds = min(seconds, time.perf_counter() - start)
    module, few = compiled.module, min(count, SAMPLE)
    weights = list(module.parameters())
    own, half, brain, single = weights[0].dtype, torch.float16, torch.bfloat16, torch.float32
    casts = {
        "wrong in float32": (own, single),
        "wrong, weights rounded to float16": (half, own),
        "wrong, weights rounded to bfloat16": (brain, own),
        "wrong, all in float16": (half, half),
        "wrong, all in bfloat16": (brain, brain),
    }
    unknown = (
        "cannot say" if compiled.knows is None else f"{int((~compiled.knows(facts.others)).sum())} of {SAMPLE}"
    )
    return {
        "facts": count,
        "model": name,
        "compile s (best of 2)": seconds,
        "parameters": sum(p.numel() for p in weights),
        "not zero": sum(int(torch.count_nonzero(p)) for p in weights),
        "largest weight": max(float(p.detach().abs().max()) for p in weights),
        "wrong of all": wrong(compiled, facts, module, count),
        "asked again": few,
        **{title: wrong(compiled, facts, recast(module, *types), few) for title, types in casts.items()},
        "unstored sequences it declines": unknown,
    }


def side_by_side(count: int) -> Iterator[dict[str, Any]]:
    """Ours in float32 comes first: the others are compared with it."""
    facts = draw(count)
    rows = [measure(name, lambda o=options: by_onelayer(facts, o), facts) for name, options in OURS.items()]  # type: ignore[misc]
    if find_spec("torchwright") is None or find_spec("transformers") is None:
        rows += [{"facts": count, "model": name, "compile s (best of 2)": ABSENT} for name in THEIRS]
    else:
        for name, options in THEIRS.items():
            rows.append(measure(name, lambda o=options: by_torchwright(facts, o), facts))  # type: ignore[misc]
    for row in rows:
        if "parameters" in row:
            row["parameters, times ours"] = row["parameters"] / rows[0]["parameters"]
            row["compile, times ours"] = row["compile s (best of 2)"] / rows[0]["compile s (best of 2)"]
        yield row


def run() -> dict[str, list[dict[str, Any]]]:
    import torch  # noqa: F401  # before its threads are limited

    with warnings.catch_warnings(), one_core():
        warnings.simplefilter("ignore")  # torchwright's reading of tensors as numbers, transformers' loading
        return {"Facts about token ids": [row for count in SIZES for row in side_by_side(count)]}
