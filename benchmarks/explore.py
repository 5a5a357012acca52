"""Pages of `explore` in Debian's Chromium: how large they are, what the first answer costs, whose bits it has."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from onelayer import approximate, learner, memorize, memorize_text
from onelayer.model import Model
from onelayer.problems.tables import example, read_table

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
TEXT = "the quick brown fox jumps over the lazy dog. the slow brown cow jumps over the moon."
INPUTS, FEW = 1000, 20
VIEW = "document.getElementById('explorer').explorer"
ANSWER = f"batch => batch.map(tokens => {VIEW}.model.outputs(tokens))"
LEARN = f"batch => batch.map(task => {VIEW}.model.learn(...task))"


def run() -> dict[str, list[dict[str, Any]]]:
    return {"pages, CPU time of Chromium's main thread, on a busy machine": pages()}


def pages() -> list[dict[str, Any]]:
    from playwright.sync_api import sync_playwright

    rows, rng = [], np.random.default_rng(0)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for name, model in models(rng).items():
            path = model.explore().save(Path(folder) / "page.html")
            page = browser.new_page()
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(path.as_uri())
            page.wait_for_selector("#explorer[data-ready]")
            spent = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
            row = {"model": name, "parameters": model.n_parameters, "bytes": path.stat().st_size}
            row |= {"CPU s to the first answer": round(spent["TaskDuration"], 3)}
            rows.append(row | bits(page, model, rng))
            page.close()
        browser.close()
    return rows


def models(rng: np.random.Generator) -> dict[str, Model]:
    table = read_table(example("company"))
    words = np.array([f"word{i}" for i in range(500)])[rng.integers(0, 500, (1000, 16))]
    X = rng.standard_normal((1000, 16, 8)).astype(np.float32)
    few, classes = rng.standard_normal((50, 3, 2)).astype(np.float32), rng.integers(0, 4, (50, 3))
    return {
        "words: the demo": memorize(table.X, table.Y),
        "words: 16,000 answers": memorize(words, rng.integers(0, 50, (1000, 16)), on_conflict="first"),
        "reals: 150 answers": memorize(few, classes, dtype="float32"),
        "reals: 16,000 answers": memorize(X, rng.integers(0, 10, (1000, 16))),
        "text: 84 bytes": memorize_text(TEXT, context=20),
        "function": approximate("x * exp(-mean((x - y)**2))", n=2, low=0, high=1, tolerance=0.02),
        "learner: gd, 20 steps": learner("gd", d=2, dtype="float32"),
    }


def bits(page: Any, model: Model, rng: np.random.Generator) -> dict[str, Any]:
    """Of 1,000 inputs: which answers are those of `predict`, and which outputs those of its paths, to the bit."""
    if model.interface.kind == "examples":
        X, y, queries = (rng.uniform(-1, 1, shape) for shape in ((INPUTS, 4, 2), (INPUTS, 4, 1), (INPUTS, 1, 2)))
        tasks = [[a.tolist(), b.tolist(), c.tolist()] for a, b, c in zip(X, y, queries, strict=True)]
        expected, seconds = [], []
        for path in ("reference", "auto"):
            began = process_time()
            expected.append(model.predict(X, y, queries, path=path))  # type: ignore[arg-type]
            seconds.append(process_time() - began)
        found = np.asarray(page.evaluate(LEARN, tasks))
        answers = [found.reshape(expected[1].shape).astype(expected[1].dtype), expected[1]]
    else:
        tokens = draw(model, rng)
        vocabulary = model.interface.vocabulary
        given = tokens if vocabulary is None else np.array(vocabulary, object)[tokens].tolist()
        found = np.asarray(page.evaluate(ANSWER, tokens.tolist()))
        # All windows of a text take minutes in the order of the reference.
        counts = {"reference": FEW if model.form.scope == "last" else len(tokens), "auto": len(tokens)}
        expected, seconds = [], []
        for path, count in counts.items():
            sequences = model.read(given[:count])
            began = process_time()
            outputs = model.outputs(sequences, path)  # type: ignore[arg-type]
            seconds.append((process_time() - began) / count)
            expected.append(outputs[:, -1:] if model.form.scope == "last" else outputs)
        shaped = found.reshape((len(found), *expected[1].shape[1:])).astype(expected[1].dtype)
        answers = [np.asarray(model.form.decode(shaped, None)), np.asarray(model.predict(given))]
    found = found.reshape((len(found), *expected[0].shape[1:])).astype(model.transformer.dtype)
    asked = [len(other) for other in expected]
    same = [
        int((found[:n] == other).reshape(n, -1).all(axis=1).sum()) for n, other in zip(asked, expected, strict=True)
    ]
    return {
        "inputs": len(found),
        "answers as predict": f"{int((answers[0] == answers[1]).reshape(len(found), -1).all(axis=1).sum()):,}",
        "outputs as reference": f"{same[0]:,} of {asked[0]:,}",
        "outputs as plain predict": f"{same[1]:,} of {asked[1]:,}",
        "largest difference of outputs": float(np.abs(found.astype(float) - expected[1]).max()),
        "reference over predict, CPU": round(seconds[0] / seconds[1], 1),
    }


def draw(model: Model, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Inputs of which a tenth or more are stored, if any are."""
    data = {} if model.certificate is None else model.certificate.data
    if model.interface.kind == "function":
        return rng.random((INPUTS, 2, 1)).astype(np.float32)
    if model.interface.kind == "next_token":
        stream = data["stream"]
        windows = np.lib.stride_tricks.sliding_window_view(stream, 20)
        return np.concatenate([windows, rng.choice(stream, (INPUTS - len(windows), 20))])
    stored = data["tokens"][: INPUTS // 2]
    shape = (INPUTS - len(stored), *stored.shape[1:])
    if model.interface.vocabulary is None:
        return np.concatenate([stored, rng.standard_normal(shape).astype(stored.dtype)])
    return np.concatenate([stored, rng.integers(0, len(model.interface.vocabulary), shape)])
