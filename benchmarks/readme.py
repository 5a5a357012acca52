"""The figures of docs/figures.md and five of the README, taken from benchmarks/results, between their markers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks import readme_hands
from benchmarks.recorded import Figure, results, tables
from benchmarks.text import CONTEXT

ROOT = Path(__file__).parents[1]
PACKED = "float32 packed, 65,536 classes"
#: Of a packed readout, whatever the number of classes and answers: a test counts them in a model.
PACKED_LAYERS = 34
RECALLED = ("Recall in float64", "Recall of real multivariate data")
RUNTIMES = ("NumPy", "PyTorch", "ONNX Runtime")
MARKERS = re.compile(r"(<!-- (?:five )?figures -->\n).*?(<!-- /(?:five )?figures -->\n)", re.DOTALL)


def figures() -> str:
    """Every figure, benchmark by benchmark."""
    return _table([(a, b, name) for name, part in PARTS.items() for a, b in part()])


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Figures, each with the benchmarks that it was taken by (with commas between them), and when."""
    lines = ["| measured | | `python -m benchmarks` |", "|---|---|---|"]
    for what, value, names in rows:
        taken = "; ".join(f"{name} {results(name).get('taken', '')}".strip() for name in names.split(", "))
        lines.append(f"| {what} | {value} | {taken} |")
    return "\n".join(lines) + "\n"


def _recall() -> list[Figure]:
    rows = [row for name in RECALLED for row in tables("recall")[name]]
    answers, wrong = (sum(row[key] for row in rows) for key in ("answers", "wrong"))
    what = (
        f"stored answers of {len(rows)} data sets that are wrong (in float64, of up to 20,000 sequences; 1,000 "
        "classes, those of real data, and real answers)"
    )
    return [(what, f"{wrong} of {answers:,}")]


def _build() -> list[Figure]:
    build = tables("build")
    floor, growth = build["Build against the floor"][0], build["Growth of the build"]
    small = build["In float32, against the same floor in float32"]
    million = next(row for row in small if row["answers"] == 1_600_000)
    return [
        (
            f"building N = {floor['N']:,} in float64 over one NumPy pass of the same softmax averages and a sort",
            f"{floor['median ratio']:.1f} times ({floor['build CPU s (best)']:.2f} CPU s)",
        ),
        (
            f"the same in float32, {million['answers']:,} answers",
            f"{million['build / floor']:.1f} times ({million['build CPU s']:.2f} CPU s)",
        ),
        ("growth of the build from 2,000 to 200,000 sequences", f"exponent {growth[-1]['build CPU s']:.2f}"),
        (
            "peak memory of the build beyond the input",
            f"{max(row['ratio'] for row in build['Peak memory of the build']):.1f} times the input",
        ),
    ]


def _statements() -> list[Figure]:
    statements = tables("statements")
    published, theorem_k, _ = statements["Three tokens in the plane"]
    hardmax = statements["Hardmax is not a contextual mapping"][0]
    return [
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
    rows = [row for row in tables("false_hits")["Unknown inputs that do not get the default"] if "holds" in row]
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
    inputs = next(iter(tables("approximate"))).partition("(")[2].partition(" samples")[0]
    tried = f"{len(built)} models of functions, each tried at {inputs} inputs and by hill climbing: bounds broken"
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
        others = ", ".join(f"{r['model'].split(', width')[0]} {r['largest error']:.2g}" for r in some if r["steps"])
        found.append(
            (
                f"`{target}` of 3 tokens, largest error: constructed, and trained {seconds} s at its size or more",
                f"{built['largest error']:.2g} (proved {built['proved']:.2g}, {built['CPU s']:.1f} s); {others}",
            )
        )
    return found


def _formulas() -> list[Figure]:
    counts = {row["figure"]: row["value"] for row in tables("formulas")["Formulas"]}
    sizes = [row["parameters, 0.01"] for row in tables("formulas")["Sizes at 8 tokens"] if row["parameters, 0.01"]]
    return [
        (
            "formulas, of 8 tokens and to 0.01, in float32: proved, weights of the median and of the largest",
            f"{counts['at n = 8 and 0.01: proved']}, {counts['parameters, median']:.0f}, {max(sizes):,}",
        ),
        (
            f"{counts['formulas x tokens x tolerances']} models of these, of 2 to 512 tokens: proved, errors found "
            "above the proved bound, CPU time at most",
            f"{counts['proved']}, {counts['found above proved']}, {counts['CPU s, largest of all']:.1f} s",
        ),
    ]


PARTS = {
    "recall": _recall,
    "build": _build,
    "statements": _statements,
    "float32": _float32,
    "false_hits": _false_hits,
    "text": _text,
    "density": _density,
    "capacity": _capacity,
    "verdicts": _verdicts,
    "formulas": _formulas,
    "approximate": _approximate,
    "rates": _rates,
    "trained": _trained_figures,
    **readme_hands.PARTS,
}


def five() -> str:
    """For people who read five figures: each with its conditions, from the same tables."""
    verdict = [row for row in tables("verdicts")["Cost of a verdict"] if row["route"] == PACKED][-1]
    shape = next(
        row
        for row in tables("density")["bits for any number of classes"]
        if (row["answers"], row["classes"]) == (verdict["answers"], 65_536)
    )
    (text,), *_ = tables("text").values()
    return _table(
        [
            (*_recall()[0], "recall"),
            (
                f"{verdict['answers']:,} random answers of 65,536 classes in float32, by one head and a readout of "
                f"{PACKED_LAYERS} ReLU layers: CPU time to compile, weights an answer",
                f"{verdict['build, CPU s']:.1f} s, {shape['parameters / answer']:.2f}",
                "verdicts, density",
            ),
            (
                "proof of all of them, for sums in any order: CPU time an answer",
                f"{verdict['us an answer']:.1f} microseconds",
                "verdicts",
            ),
            (
                f"a text of {text['bytes']:,} bytes by heart, in float32: distinct windows of {CONTEXT} bytes "
                "continued as in the text",
                f"{text['right']:,} of {text['deterministic windows']:,}",
                "text",
            ),
            (*_formulas()[0], "formulas"),
        ]
    )


def updated(path: Path) -> str:
    """A page with the figures that the results give."""
    said = five() if path.name == "README.md" else figures()
    return MARKERS.sub(lambda m: m.group(1) + said + m.group(2), path.read_text())


PAGES = (ROOT / "docs" / "figures.md", ROOT / "README.md")


def update() -> None:
    for path in PAGES:
        path.write_text(updated(path))
