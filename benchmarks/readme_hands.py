"""Figures of models in other libraries, in 16 bits, edited, and as ground truth."""

from __future__ import annotations

from typing import Any

from benchmarks.recorded import Figure, tables


def sixteen_bits() -> list[Figure]:
    ours, *others = tables("sixteen_bits").values()
    wrong, answers = (sum(row[key] for row in ours) for key in ("wrong in torch, all answers", "answers"))
    proved = sum(row["verdict"] == "VERIFIED" for row in ours)
    lost = [row["wrong, float32 model cast"] / row["answers"] for row in ours]
    facts = max(ours, key=lambda row: row["answers"] * ("facts" in row["data"]))
    found = [
        (
            f"{len(ours)} models for float16 and bfloat16, of {min(row['answers'] for row in ours):,} to "
            f"{max(row['answers'] for row in ours):,} answers: wrong through PyTorch in that dtype, VERIFIED; lost "
            "by float32 models cast to it",
            f"{wrong} of {answers:,}, {proved} of {len(ours)}; {min(lost):.0%} to {max(lost):.0%}",
        )
    ]
    same = [row for theirs in others for row in theirs if row.get("data") == facts["data"]]
    if same:
        what = f"{facts['data']} in 16 bits: weights, and those of torchwright (wrong in float16, in bfloat16)"
        own = [str(row["wrong in torch, all answers"]) for row in ours if row["data"] == facts["data"]]
        sizes = [_theirs(row) for row in same]
        found.append((what, f"{facts['parameters']:,} ({', '.join(own)}); {'; '.join(sizes)}"))
    return found


def _theirs(row: dict[str, Any]) -> str:
    both = [row[f"wrong, all in {dtype}"] for dtype in ("float16", "bfloat16")]
    of = f" of {row['asked']:,}" if all(isinstance(count, int) for count in both) else ""
    wrong = ", ".join(f"{count:,}{of}" if isinstance(count, int) else "refused" for count in both)
    return f"{row['model'].removeprefix('torchwright, ')} {row['parameters']:,} ({wrong})"


def hands() -> list[Figure]:
    rows = tables("hands")["answers as logits, float32"]
    most = [row for row in rows if row["answers"] == max(r["answers"] for r in rows)]
    one, runtimes = most[0], ", ".join(row["runtime"] for row in most)
    found = [
        (
            f"{one['answers']:,} answers as logits in float32: wrong in {runtimes}; least margin; weights, those "
            "of retrieval without logits",
            f"{sum(row['wrong'] for row in most)}; {min(row['least margin'] for row in most):.0f}"
            f"{', proved' if one['argmax proved'] == 'yes' else ''}; {one['parameters']:,}, "
            f"{one['retrieval without logits']:,}",
        )
    ]
    for corpus in tables("hands").get("a corpus", []):
        wrong = corpus["labels of the pipeline that are wrong"]
        what = f"words of {corpus['corpus']} that a pipeline of Hugging Face labels wrong"
        found.append((what, f"{wrong} of {corpus['words']:,} ({corpus['argmax float32']})"))
    return found


def edits() -> list[Figure]:
    rows = tables("edits")["edits"]
    counts = ", ".join(f"{row['changed']:,}" for row in rows)
    weights = ", ".join(f"{row['weights that differ']:,}" for row in rows)
    ratio = ", ".join(f"{row['with its proof, s'] / row['with its proof, s ']:.2f}" for row in rows)
    verdicts = ", ".join(sorted({row["proved: exactly these"] for row in rows}))
    return [
        (
            f"{counts} of {rows[0]['answers']:,} answers edited: weights that differ; CPU time with the proof over "
            "that of a new build with its proof; that exactly these changed",
            f"{weights}; {ratio}; {verdicts}",
        )
    ]


def ground_truth() -> list[Figure]:
    (made,) = tables("ground_truth")["200 models, made and verified"]
    return [
        (
            f"{made['models']} models of known mechanism made: VERIFIED, wrong answers, CPU time",
            f"{made['VERIFIED']}, {made['wrong']} of {made['answers']:,}, {made['CPU s']:.0f} s",
        )
    ]


PARTS = {"sixteen_bits": sixteen_bits, "hands": hands, "edits": edits, "ground_truth": ground_truth}
