"""The figures of docs/figures.md and five of the README, taken from benchmarks/results, between their markers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
Figure = tuple[str, str]
RUNTIMES = ("NumPy", "PyTorch", "ONNX Runtime")
MARKERS = re.compile(r"(<!-- (?:five )?figures -->\n).*?(<!-- /(?:five )?figures -->\n)", re.DOTALL)


def tables(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())["tables"]


def figures() -> str:
    recall = tables("recall")["Recall in float64"] + tables("recall")["Recall of real multivariate data"]
    build, statements = tables("build"), tables("statements")
    floor, growth = build["Build against the floor"][0], build["Growth of the build"]
    published, theorem_k, _ = statements["Three tokens in the plane"]
    hardmax = statements["Hardmax is not a contextual mapping"][0]
    answers, wrong = (sum(row[key] for row in recall) for key in ("answers", "wrong"))
    rows = [
        (
            f"answers asked for over {len(recall)} data sets up to N = 20,000, n = d = 16, float64, rank 1",
            f"{answers:,}, wrong: {wrong}",
        ),
        (
            f"building N = {floor['N']:,} against one NumPy pass of the same softmax averages plus a sort",
            f"{floor['median ratio']:.1f} times ({floor['build CPU s (best)']:.2f} CPU s)",
        ),
        ("growth of the build from 2,000 to 200,000 sequences", f"exponent {growth[-1]['build CPU s']:.2f}"),
        (
            "peak memory of the build beyond the input",
            f"{max(row['ratio'] for row in build['Peak memory of the build']):.1f} times the input",
        ),
        (
            "gap promised by the published constants on three tokens, and that of those weights (ball arithmetic)",
            f"10^{published['log10_delta']:.0f}, 10^{published['log10_gap']:.0f}",
        ),
        (
            "the same for Theorem K, derived here",
            f"10^{theorem_k['log10_delta']:.1f}, 10^{theorem_k['log10_gap']:.1f}",
        ),
        (
            f"random hardmax layers of {hardmax['random hardmax layers']:,} that fail on the witness pair",
            f"{hardmax['that fail on the witness pair']:,}; a softmax head separates it by "
            f"{hardmax['gap of a searched softmax head']:.2f}",
        ),
    ]
    parts = {
        "float32": _float32,
        "false_hits": _false_hits,
        "text": _text,
        "density": _density,
        "capacity": _capacity,
        "checker": _checker,
        "verdicts": _verdicts,
        "approximate": _approximate,
        "rates": _rates,
        "trained": _trained_figures,
    }
    for name, part in parts.items():
        rows += part() if (RESULTS / f"{name}.json").exists() else []
    return "| measured | |\n|---|---|\n" + "".join(f"| {a} | {b} |\n" for a, b in rows)


def _float32() -> list[Figure]:
    built = tables("float32")["float32 at 1.6 million answers"]
    dense = {row["data"]: row for row in tables("float32")["the dense networks"]}
    checked = {row["data"]: row for row in tables("float32")["the checker"]}
    rows = []
    for row in built:
        asked, verdict = dense[row["data"]], checked[row["data"]]
        wrong = sum(asked[f"{name}: {what}"] for name in RUNTIMES for what in ("wrong", "other bits"))
        rows += [
            (
                f"float32, {row['answers']:,} answers, {row['data']} ({row['readout']}): built, parameters",
                f"{row['build s']:.1f} s ({row['build / floor']:.0f} times the floor), "
                f"{row['parameters / answer']:.2f} an answer, {row['bits / parameter']:.1f} bits each",
            ),
            (
                f"the same: wrong by search; wrong or of other bits in {', '.join(RUNTIMES)}; any order",
                f"{row['wrong by search']}; {wrong} of {asked['answers asked']:,} asked; {verdict['verdict']}",
            ),
        ]
    return rows


def _density() -> list[Figure]:
    """Bits a parameter, for each size in one line."""
    rows, found = tables("density")["bits for any number of classes"], []
    for M in dict.fromkeys(row["answers"] for row in rows):
        own = [row for row in rows if row["answers"] == M]
        shown = ", ".join(f"{row['bits / parameter']:.1f} ({row['classes']:,})" for row in own)
        proved = [row["proof CPU us / answer"] for row in own if row["any order"] == "VERIFIED"]
        cost = (
            f"; {len(proved)} of {len(own)} asked, all VERIFIED, {max(proved):.0f} CPU us an answer"
            if proved
            else ""
        )
        wrong = sum(row["wrong by search"] + row["wrong of these"] for row in own)
        found.append(
            (f"{M:,} answers, packed: bits a parameter (classes), wrong, proved", f"{shown}; {wrong}{cost}")
        )
    return found


def _capacity() -> list[Figure]:
    ((title, rows),) = tables("capacity").items()
    best: dict[int, dict[str, float]] = {}
    for row in rows:
        kind, own = str(row["model"]).split(",")[0], best.setdefault(row["classes"], {})
        own[kind] = max(own.get(kind, 0.0), row["bits / parameter"])
    shown = ", ".join(f"{own['compiled']:.1f} and {own['trained']:.1f} ({C:,})" for C, own in best.items())
    limit = title.partition("at most ")[2]
    return [
        (
            f"{rows[0]['answers']:,} answers: bits a parameter, compiled and trained (classes), at most {limit}",
            shown,
        )
    ]


def _false_hits() -> list[Figure]:
    rows = [row for row in tables("false_hits")["Strangers that do not get the default"] if "holds" in row]
    found = []
    for route in dict.fromkeys(row["contexts"] for row in rows):
        some = [row for row in rows if row["contexts"] == route]
        sizes = ", ".join(f"{row['N']:,}" for row in some)
        shares = [row[name] for row in some for name in row if name.endswith(": share")]
        bounds = ", ".join(f"{row['bound']:.2g}" for row in some)
        measured = ", ".join(f"{max(pair):.2g}" for pair in zip(shares[::2], shares[1::2], strict=True))
        found.append(
            (
                f"with a default, {route}, N = {sizes}: bound on false hits; share of 10^6 unknown inputs",
                f"{bounds}; {measured}",
            )
        )
    return found


def _text() -> list[Figure]:
    (row,), *_, (chapter, *_) = tables("text").values()
    return [
        (
            f"Python's reference, {row['bytes']:,} bytes by heart: windows right, build, recital",
            f"{row['right']:,} of {row['deterministic windows']:,}, {row['build s']:.1f} s, "
            f"{row['bytes/s recited']:,.0f} bytes/s",
        ),
        (f"its first {chapter['bytes']:,} bytes: every window, in any order", str(chapter["verdict"])),
    ]


def _checker() -> list[Figure]:
    return [
        (
            f"checking {row['answers']:,} answers: {row['claims']}",
            f"{row['result']}, {row['cpu s']:.1f} CPU-s, {row['peak GB']:.1f} GB",
        )
        for row in tables("checker")["Verification"]
    ]


def _verdicts() -> list[Figure]:
    """On every route the largest size: what a verdict costs, all claims but robust ones."""
    largest = {row["route"]: row for row in tables("verdicts")["Cost of a verdict"]}
    growth = max(row["exponent"] for row in tables("verdicts")["Growth"])
    costs = "; ".join(f"{route}: {row['us an answer']:.1f}" for route, row in largest.items())
    return [
        (f"CPU us an answer for a verdict, {costs}", f"growing with answers by an exponent of at most {growth:.2f}")
    ]


def _approximate() -> list[Figure]:
    asked, zoo = tables("approximate").values()
    built = [row for row in (*asked, *zoo) if "proved bound" in row]
    smallest: dict[tuple[object, ...], Any] = {}
    for row in sorted((row for row in asked if row["kept"] == "yes"), key=lambda row: row["parameters"]):
        smallest.setdefault((row["target"], row["n"], row["tolerance"]), row)
    found = [
        (
            f"`{target}` of {n} tokens to {tolerance} ({row['construction']}): proved, measured, parameters, time",
            f"{row['proved bound']:.3g}, {row['measured']:.2g}, {row['parameters']:,}, "
            f"{row['build and proof s']:.1f} s",
        )
        for (target, n, tolerance), row in smallest.items()
    ]
    broken, worst = sum(r["kept"].startswith("broken") for r in built), max(r["measured / bound"] for r in built)
    tried = f"{len(built)} models of functions, each tried at 10^6 inputs and by hill climbing: bounds broken"
    return [*found, (tried, f"{broken}; measured at most {worst:.2f} of the bound")]


def _rates() -> list[Figure]:
    fits = next(iter(tables("rates").values()))
    away = {name: max(abs(row[name]) for row in fits) for name in fits[0] if name.startswith("deviation")}
    measured, proved = away.values()
    name = f"slope of error against cells, {len(fits)} settings: largest deviation from theory, measured and proved"
    return [(name, f"{measured:.0f}%, {proved:.0f}%")]


def _trained_figures() -> list[Figure]:
    ((title, rows),) = tables("trained").items()
    seconds, found = title.split(", ")[-1].split()[0], []
    for target in dict.fromkeys(row["target"] for row in rows):
        some = [row for row in rows if row["target"] == target]
        built = min((row for row in some if not row["steps"]), key=lambda row: row["parameters"])
        told = ", ".join(f"{r['model'].split(', width')[0]} {r['largest error']:.2g}" for r in some if r["steps"])
        found.append(
            (
                f"`{target}` of 3 tokens, largest error: constructed, and trained {seconds} s at its size or more",
                f"{built['largest error']:.2g} (proved {built['proved']:.2g}, {built['CPU s']:.1f} s); {told}",
            )
        )
    return found


def five() -> str:
    """For people who read five figures: each with its conditions, from the same tables."""
    recall = tables("recall")["Recall in float64"] + tables("recall")["Recall of real multivariate data"]
    answers, wrong = (sum(row[key] for row in recall) for key in ("answers", "wrong"))
    large = tables("float32")["float32 at 1.6 million answers"][0]
    verdicts = [
        row for row in tables("verdicts")["Cost of a verdict"] if row["route"].startswith("float32 retrieval")
    ]
    (text,), *_ = tables("text").values()
    asked = next(iter(tables("approximate").values()))
    sorts = [row for row in asked if row["target"] == "sort" and row["kept"] == "yes"]
    sort = min(sorts, key=lambda row: row["parameters"])
    rows = [
        (
            f"stored answers of {len(recall)} data sets (float64, rank 1, up to 20,000 sequences) that are wrong",
            f"{wrong} of {answers:,}",
        ),
        (
            f"{large['answers']:,} answers of 65,536 classes in float32, one to a cell (readout "
            f"{large['readout']}): time to compile, weights an answer",
            f"{large['build s']:.1f} s, {large['parameters / answer']:.2f}",
        ),
        (
            f"proof of all {verdicts[-1]['answers']:,} of them, so stored, in any order: CPU time an answer",
            f"{verdicts[-1]['us an answer']:.1f} microseconds",
        ),
        (
            f"a text of {text['bytes']:,} bytes by heart: distinct windows continued as in the text",
            f"{text['right']:,} of {text['deterministic windows']:,}",
        ),
        (
            f"`sort` of {sort['n']} numbers to {sort['tolerance']}: proved bound, largest error found, weights",
            f"{sort['proved bound']:.3f}, {sort['measured']:.0e}, {sort['parameters']:,}",
        ),
    ]
    return "| measured | |\n|---|---|\n" + "".join(f"| {a} | {b} |\n" for a, b in rows)


def update() -> None:
    for path, said in ((ROOT / "docs" / "figures.md", figures()), (ROOT / "README.md", five())):
        path.write_text(MARKERS.sub(lambda m, said=said: m.group(1) + said + m.group(2), path.read_text()))
