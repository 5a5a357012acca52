"""Logits in other libraries: wrong answers and the least margin in NumPy, PyTorch, ONNX Runtime, Hugging Face and
TransformerLens; a text recited by `generate()`; a corpus labelled by a pipeline; interventions by TransformerLens.

The corpus is the CoNLL file that ONELAYER_CORPUS names, whole; without one, sentences of a small grammar."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import onelayer

#: Answers that are stored, six to a sequence.
SIZES = tuple(N for N in (1_800, 160_000) if 6 * int(os.environ.get("ONELAYER_BENCH_SEQUENCES", "500000")) >= N)
CLASSES, TOKENS, AT_A_TIME = 50, 1_000, 500


def run() -> dict[str, list[dict[str, Any]]]:
    import torch

    torch.set_num_threads(1)
    rows = [row for N in SIZES for row in logits(N)]
    further = {"a text": [recite()], "a corpus": [label()], "TransformerLens": [interventions()]}
    return {"answers as logits, float32": rows, **further}


def logits(answers: int) -> list[dict[str, Any]]:
    import onnxruntime
    import torch
    import transformers

    import onelayer.hf
    from onelayer.export.onnx import build
    from onelayer.export.torch import to_torch

    rng = np.random.default_rng(answers)
    X = np.unique(rng.integers(0, TOKENS, (answers // 6 + 9, 6)), axis=0)[: answers // 6]
    Y = rng.integers(0, CLASSES, X.shape)
    model = onelayer.memorize(X, Y, positions=True, logits=True, dtype="float32")
    small = onelayer.memorize(X, Y, positions=True, dtype="float32", readout="retrieval", certify=False)
    ids, classes = model.read(X).tokens, np.searchsorted(np.asarray(model.form.classes), Y)
    session = onnxruntime.InferenceSession(build(model.transformer).SerializeToString())
    hooked = onelayer.to_transformer_lens(model)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        net = transformers.AutoModelForTokenClassification.from_pretrained(
            onelayer.to_hf(model, Path(folder) / "m")
        )
        torch_net = to_torch(model)
        ways = {
            "NumPy": lambda some: model.outputs(model.read(X[some]), "dense"),
            "PyTorch": lambda some: torch_net(torch.tensor(ids[some])).numpy(),
            "ONNX Runtime": lambda some: session.run(None, {"tokens": ids[some]})[0],
            "Hugging Face": lambda some: net(torch.tensor(ids[some])).logits.numpy(),
            "TransformerLens": lambda some: hooked(torch.tensor(ids[some])).numpy(),
        }
        found = [asked(name, way, classes) for name, way in ways.items()]
    proved = model.certificate is not None and any(c["type"] == "argmax" for c in model.certificate.claims)
    same = {"answers": classes.size, "readout": model.ledger["readout"], "parameters": model.n_parameters}
    same |= {"retrieval without logits": small.n_parameters, "argmax proved": "yes" if proved else "no"}
    return [same | row for row in found]


def asked(name: str, way: Any, classes: Any) -> dict[str, Any]:
    wrong, margin, start = 0, np.inf, time.process_time()
    for first in range(0, len(classes), AT_A_TIME):
        some = slice(first, first + AT_A_TIME)
        out, wanted = np.array(way(some)), classes[some]
        right = np.take_along_axis(out, wanted[..., None], -1)[..., 0]
        np.put_along_axis(out, wanted[..., None], -np.inf, -1)
        ahead = right - out.max(-1)
        wrong, margin = wrong + int((ahead <= 0).sum()), min(margin, float(ahead.min()))
    cpu = time.process_time() - start
    return {"runtime": name, "wrong": wrong, "least margin": margin, "CPU s": cpu}


def recite() -> dict[str, Any]:
    """2,000 bytes by `generate()`, in a fresh process with an empty cache and no network."""
    text = (" ".join(np.random.default_rng(0).choice(["alpha", "beta", "gamma", "delta", "epsilon"], 420)))[:2_000]
    program = (
        "import sys, time, torch, onelayer.hf\n"
        "from transformers import AutoModelForCausalLM as Auto, AutoTokenizer\n"
        "torch.set_num_threads(1)\n"
        "net, words = Auto.from_pretrained(sys.argv[1]), AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "start = time.process_time()\n"
        "said = net.generate(**words(sys.argv[2][:net.config.context], return_tensors='pt'), max_new_tokens=2100)\n"
        "print(words.decode(said[0], skip_special_tokens=True) == sys.argv[2], time.process_time() - start)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        model = onelayer.memorize_text(text)
        onelayer.to_hf(model, Path(folder) / "m")
        alone = {
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": f"{folder}/cache",
            "HOME": folder,
            "PATH": "",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-c", program, f"{folder}/m", text]
        said = subprocess.run(command, env=alone, capture_output=True, text=True, check=True).stdout.split()
    same = {
        "bytes": len(text),
        "parameters": model.n_parameters,
        "recited to its end": "yes" if said[0] == "True" else "no",
    }
    return same | {"CPU s": float(said[1])}


def label() -> dict[str, Any]:
    """Every sentence through `pipeline("token-classification")`, and in batches padded on either side."""
    import torch
    import transformers

    import onelayer.hf
    from onelayer.lab.corpora import LABELS, generate
    from onelayer.problems.tables import read_table

    corpus = os.environ.get("ONELAYER_CORPUS")
    if corpus:
        records = list(read_table(Path(corpus)).records())
        given = [(list(map(str, one["tokens"])), list(map(str, one["answers"]))) for one in records]
    else:
        drawn = generate(500, np.random.default_rng(0))
        given = [(words, [LABELS[i] for i in labels]) for words, labels in drawn]
    sentences = list({tuple(words): (words, labels) for words, labels in reversed(given)}.values())
    X, Y = [words for words, _ in sentences], [labels for _, labels in sentences]
    model = onelayer.memorize(X, Y, positions=True, logits=True)
    proved = model.verify(require=["argmax float32"]).result
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        onelayer.to_hf(model, Path(folder) / "m")
        net = transformers.AutoModelForTokenClassification.from_pretrained(f"{folder}/m")
        words = transformers.AutoTokenizer.from_pretrained(f"{folder}/m")
    start = time.process_time()
    pipe = transformers.pipeline("token-classification", model=net, tokenizer=words, ignore_labels=[])
    said = [[word["entity"] for word in one] for one in pipe([" ".join(x) for x in X])]
    seconds = time.process_time() - start
    wrong = sum(sum(a != b for a, b in zip(y, z, strict=True)) for y, z in zip(Y, said, strict=True))
    return {
        "corpus": Path(corpus).name if corpus else "a small grammar",
        "sentences": len(X),
        "left out: the same words before": len(given) - len(X),
        "words": sum(map(len, Y)),
        "parameters": model.n_parameters,
        "argmax float32": proved,
        "labels of the pipeline that are wrong": wrong,
        **{f"wrong, padded {side}": padded_wrong(net, words, X, Y, side) for side in ("left", "right")},
        "pipeline, CPU s": seconds,
    }


def padded_wrong(net: Any, words: Any, X: list[list[str]], Y: list[list[str]], side: str) -> int:
    import torch

    words.padding_side, wrong = side, 0
    for first in range(0, len(X), 50):
        some, wanted = X[first : first + 50], Y[first : first + 50]
        given = words([" ".join(x) for x in some], return_tensors="pt", padding=True)
        with torch.inference_mode():
            found = net(**given).logits.argmax(-1)
        for out, mask, labels in zip(found, given["attention_mask"], wanted, strict=True):
            ids = [net.config.label2id[one] for one in labels]
            wrong += int((out[mask == 1] != torch.tensor(ids)).sum())
    return wrong


def interventions() -> dict[str, Any]:
    """A head ablated, and the stream of one place patched from another sequence."""
    import torch

    rng = np.random.default_rng(1)
    X, Y = rng.integers(0, 50, (300, 6)), rng.integers(0, 10, (300, 6))
    hooked = onelayer.to_transformer_lens(onelayer.memorize(X, Y, positions=True, logits=True, certify=False))
    tokens = hooked.to_tokens(X)
    logits, cache = hooked.run_with_cache(tokens)
    other = torch.roll(cache["blocks.0.hook_resid_post"], 1, 0)

    def ablate(value: Any, hook: Any) -> Any:  # noqa: ARG001
        return torch.zeros_like(value)

    def patch(value: Any, hook: Any) -> Any:  # noqa: ARG001
        value[:, 2] = other[:, 2]
        return value

    without = hooked.run_with_hooks(tokens, fwd_hooks=[("blocks.0.attn.hook_z", ablate)])
    after = hooked.run_with_hooks(tokens, fwd_hooks=[("blocks.0.hook_resid_post", patch)])
    taken = torch.equal(after[:, 2], torch.roll(logits, 1, 0)[:, 2])
    moved = (after - logits).abs().amax(-1)
    return {
        "hook points": len(cache),
        "answers kept without the head": float((without.argmax(-1) == logits.argmax(-1)).double().mean()),
        "patched place takes the other sequence's logits": "yes" if taken else "no",
        "largest change elsewhere": float(moved[:, [0, 1, 3, 4, 5]].max()),
    }
