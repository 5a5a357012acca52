"""The command line as a person or a machine uses it: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onelayer import __version__, load
from onelayer.problems.tables import example, read_table, write_answers
from tests.processes import COMMAND_LINE, WIDE, run_command


def run(*arguments, ok: int = 0, **environment) -> subprocess.CompletedProcess[str]:
    done = run_command(*arguments, ok=ok, env=WIDE | environment)
    assert "\x1b" not in done.stdout  # no colours where nobody looks at a terminal
    return done


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "model"
    command = [sys.executable, "-W", "error", "-c", COMMAND_LINE, "memorize", example("company"), "--out", folder]
    printed = subprocess.run(command, capture_output=True, text=True, env=WIDE, check=True).stdout
    assert "96 of 96 answers reproduced (measured)" in printed
    return folder


def test_memorize_writes_a_model_that_knows_the_table(model) -> None:
    table = read_table(example("company"))
    assert load(model).predict(table.X).tolist() == table.Y.tolist()


def test_memorize_speaks_json(tmp_path) -> None:
    said = json.loads(run("memorize", example("three_tokens"), "--out", tmp_path / "m", "--json").stdout)
    assert (said["right"], said["answers"]) == (6, 6)
    assert {line["name"] for line in said["ledger"]} >= {
        "beta",
        "direction",
        "gap",
        "guard",
        "parameters",
        "bits_needed",
    }


def test_predict_prints_writes_and_checks(model, tmp_path) -> None:
    lines = run("predict", model, example("company")).stdout.splitlines()
    assert [json.loads(line) for line in lines] == list(read_table(example("company")).records())
    run("predict", model, example("company"), "--out", tmp_path / "answers.csv")
    assert read_table(tmp_path / "answers.csv").Y.tolist() == read_table(example("company")).Y.tolist()
    assert "96 of 96" in run("predict", model, example("company"), "--check").stdout
    changed = tmp_path / "changed.jsonl"
    changed.write_text(example("company").read_text().replace('"shore"', '"sand"'))
    assert "95 of 96" in run("predict", model, changed, "--check", ok=1).stdout


def test_predict_says_what_it_does_not_know(model, tmp_path) -> None:
    facts, asked = example("company"), tmp_path / "asked.jsonl"
    words = read_table(facts).X[0]
    asked.write_text(json.dumps({"tokens": list(words)}) + "\n" + json.dumps({"tokens": [words[0], "unheard-of"]}))
    said = run("predict", model, asked, ok=65).stderr
    assert "sequence 1, token 1 is 'unheard-of', which is not in it" in said
    assert "--default" in said
    run("memorize", facts, "--out", tmp_path / "m", "--default", "nobody")
    known, unknown = (json.loads(line) for line in run("predict", tmp_path / "m", asked).stdout.splitlines())
    assert known["answers"] == list(read_table(facts).Y[0])
    assert unknown["answers"] == ["nobody", "nobody"]
    asked.write_text(json.dumps(unknown))
    assert "2 of 2" in run("predict", tmp_path / "m", asked, "--check").stdout


def test_predict_says_which_numbers_are_beyond_the_range(tmp_path) -> None:
    facts, asked = tmp_path / "facts.jsonl", tmp_path / "asked.jsonl"
    facts.write_text(
        '{"tokens": [[1.0], [2.0]], "answers": ["a", "b"]}\n{"tokens": [[2.0], [3.0]], "answers": ["c", "d"]}'
    )
    asked.write_text('{"tokens": [[1.0], [2.0]]}\n{"tokens": [[1.0], [1e200]]}')
    run("memorize", facts, "--out", tmp_path / "m")
    assert "sequence 1, token 1, component 0 is 1e+200" in run("predict", tmp_path / "m", asked, ok=65).stderr
    run("memorize", facts, "--out", tmp_path / "d", "--default", "z")
    answers = [json.loads(line)["answers"] for line in run("predict", tmp_path / "d", asked).stdout.splitlines()]
    assert answers == [["a", "b"], ["z", "z"]]


def test_inspect_shows_and_draws(model, tmp_path) -> None:
    shown = run("inspect", model, "--picture", tmp_path / "gaps.png").stdout
    for words in (
        "right foot of trapezoid 0",
        "head 0 / key 0",
        "beta",
        "Gaps between neighbouring cells",
        "The narrowest gaps",
        "rounding moves it by at most",
    ):
        assert words in shown
    assert (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(run("inspect", model, "--json").stdout)["parameters"] == load(model).n_parameters


@pytest.mark.parametrize("options", [("--rank", "2"), ("--readout", "triangular")])
def test_other_readouts_are_drawn_too(tmp_path, options) -> None:
    run("memorize", example("company"), "--out", tmp_path / "m", *options)
    run("inspect", tmp_path / "m", "--picture", tmp_path / "gaps.svg")
    assert "<svg" in (tmp_path / "gaps.svg").read_text()


def test_a_model_without_a_certificate_is_told_from_a_broken_one(model, tmp_path) -> None:
    shutil.copytree(model, tmp_path / "bare")
    (tmp_path / "bare" / "certificate.json").unlink()
    assert "saved without a certificate: nothing was proved" in run("verify", tmp_path / "bare", ok=3).stdout
    (tmp_path / "empty").mkdir()
    assert "saved without" not in run("verify", tmp_path / "empty", ok=3).stdout


def test_verify_explains_and_refuses(model, tmp_path) -> None:
    assert run("verify", model).stdout.splitlines()[-1] == "VERIFIED"
    both = json.loads(run("verify", model, "--engine", "both", "--json").stdout)
    assert [claim["engine"] for claim in both["claims"]] == ["both", "numpy", "both"]
    assert "the answer at every stored token is exactly the stored one" in run("explain", model).stdout
    assert "there is no certificate.json: nothing was proved" in run("verify", tmp_path, ok=3).stdout
    assert "a certified bundle at" in run("explain", tmp_path, ok=66).stderr


def test_verify_holds_a_model_against_the_data(model, tmp_path) -> None:
    facts = example("company")
    said = run("verify", model, "--data", facts, "--require", "memorizes float32", "--require", "separated").stdout
    assert said.splitlines()[-2:] == [
        "note: the data given: all 32 sequences are certified with these answers",
        "VERIFIED",
    ]
    run("predict", model, facts, "--out", tmp_path / "answers.csv")
    said = run("verify", model, "--data", tmp_path / "answers.csv").stdout
    assert "note: answers.csv was read by onelayer, and its arrays were handed to the checker" in said
    changed = tmp_path / "changed.jsonl"
    changed.write_text(facts.read_text().replace('"shore"', '"sand"', 1))
    for file in (changed, tmp_path / "changed.parquet"):
        if file != changed:
            table = read_table(changed)
            write_answers(file, table, table.Y)
        said = json.loads(run("verify", model, "--data", file, "--json", ok=1).stdout)
        assert (said["result"], said["gate"]) == ("NOT VERIFIED", "data")
        assert "'shore' is certified" in said["why"]
    assert "required and not proved: robust" in run("verify", model, "--require", "robust", ok=2).stdout
    assert "Correct --require." in run("verify", model, "--require", "memorises", ok=64).stderr
    np.savez(tmp_path / "no_answers.npz", X=np.array([["a"]]))
    assert "there are none" in run("verify", model, "--data", tmp_path / "no_answers.npz", ok=65).stderr


def test_a_page_says_what_the_verdict_is_about(model, tmp_path) -> None:
    run("report", model, "--out", tmp_path / "page.html")
    assert (
        "about the 32 sequences stored in the folder, with 63 tokens and 84 classes"
        in (tmp_path / "page.html").read_text()
    )


def test_what_cannot_be_proved_is_written_without_a_certificate_and_said(tmp_path) -> None:
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "d.npz", X=rng.standard_normal((9, 2, 2)), Y=rng.standard_normal((9, 2)))
    asked = ("memorize", tmp_path / "d.npz", "--readout", "triangular", "--out")
    said = run(*asked, tmp_path / "a").stdout
    assert "18 of 18 answers reproduced" in said
    enough = re.search(r"Not certified: .* Pass --tolerance (\S+) if that is enough", said)
    assert enough
    assert not (tmp_path / "a" / "certificate.json").exists()
    assert "it can prove" in json.loads(run(*asked, tmp_path / "b", "--json").stdout)["not_certified"]
    assert "it can prove" in run(*asked, tmp_path / "c", "--certificate", ok=1).stderr
    run(*asked, tmp_path / "d", "--tolerance", enough[1])
    assert "the answers spread over" in run("verify", tmp_path / "d", "--data", tmp_path / "d.npz").stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "d", "d.npz"]


def test_plan_says_what_it_takes_or_why_not(tmp_path) -> None:
    assert "96 answers in 32 sequences" in run("plan", example("company")).stdout
    assert json.loads(run("plan", example("company"), "--json").stdout)["possible"] is True
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"tokens": ["a", "b"], "answers": [1, 2]}\n{"tokens": ["b", "a"], "answers": [2, 3]}\n')
    assert "impossible: [equivariance]" in run("plan", bad, ok=1).stdout
    assert json.loads(run("plan", bad, "--json", ok=1).stdout)["possible"] is False


def test_theorem_compares() -> None:
    columns = json.loads(run("theorem", example("three_tokens"), "--json").stdout)["columns"]
    published, theorem_k, ours = columns
    assert published["log10_delta"] == pytest.approx(-978, abs=0.5)
    assert published["log10_gap"] == pytest.approx(-258, abs=0.5)
    assert theorem_k["log10_delta"] == pytest.approx(-5.9, abs=0.05)
    assert "its claim holds" in published["note"]
    assert "its claim holds" in theorem_k["note"]
    assert ours["log10_gap"] > -3
    table = run("theorem", example("three_tokens")).stdout
    assert "-978.1" in table


def test_theorem_on_words_and_on_data_it_does_not_cover(tmp_path) -> None:
    assert "not run: too many bits or tokens" in run("theorem", example("company")).stdout
    repeated = tmp_path / "repeated.jsonl"
    repeated.write_text('{"tokens": ["a", "a", "b"], "answers": [1, 1, 2]}\n')
    shown = run("theorem", repeated).stdout
    assert "does not apply: [theorem_2] needs the tokens of a sequence to be distinct" in shown
    assert "Add positions, or use [temperature]." in shown


def test_demo_ends_with_a_table_and_a_picture() -> None:
    shown = run("demo").stdout
    assert "What attention writes beside a word" in shown
    assert "96 of 96 answers reproduced" in shown
    assert "VERIFIED" in shown.splitlines()
    _, _, follows = shown.partition("Look next:\n")
    assert "  onelayer explore model  " in follows


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("memorize", "nowhere.jsonl", "--out", "x"), 66, "there is no file nowhere.jsonl"),
        (("predict", "nowhere", "nowhere.jsonl"), 66, "a onelayer bundle at nowhere"),
        (("inspect", "nowhere"), 66, "a onelayer bundle at nowhere"),
        (
            ("memorize", example("company"), "--out", "x", "--rank", "0"),
            64,
            "a whole rank of at least 1 and at most 64; --rank 0",
        ),
        (("verify", "nowhere"), 66, "a folder with a model at nowhere; there is none"),
        (("verify", example("company")), 66, "a folder with a model at "),
        (("report", "nowhere"), 66, "a folder with a model at nowhere; there is none"),
        (("identify", example("company")), 66, "it is neither. Write it by np.savez."),
        (("memorize", example("company"), "--out", "x", "--dtype", "float8"), 64, "float8"),
        (("memorize-text", example("company"), "--out", "x", "--context", "0"), 64, "1 token; --context 0."),
        (("memorize", example("company"), "--out", "."), 66, "exists"),
    ],
)
def test_mistakes_are_answered_in_a_line(tmp_path, arguments, code, words) -> None:
    done = run_command(*arguments, ok=code, cwd=tmp_path)
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_large_files_pass_through(tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", X=rng.standard_normal((300, 5, 4)), Y=rng.integers(0, 9, (300, 5)))
    run("memorize", tmp_path / "d.npz", "--out", tmp_path / "m", "--dtype", "float32")
    assert "1,500 of 1,500" in run("predict", tmp_path / "m", tmp_path / "d.npz", "--check").stdout


def test_sixteen_bits_are_asked_for_by_name(tmp_path) -> None:
    """What they do not hold is said with its remedy; what they hold is proved in them."""
    lines = [{"tokens": tokens, "answer": label} for tokens, label in ((["a", "b"], "x"), (["b", "c"], "y"))]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for dtype in ("float16", "bfloat16"):
        asked = (tmp_path / "d.jsonl", "--dtype", dtype)
        planned = json.loads(run("plan", *asked, "--json").stdout)
        assert (planned["dtype"], planned["bytes"]) == (dtype, 2 * planned["parameters"])
        assert f"all values are numbers of {dtype}" in run("plan", *asked).stdout
        assert f"parameters in {dtype}" in run("memorize", *asked, "--out", tmp_path / dtype).stdout
        assert "VERIFIED" in run("verify", tmp_path / dtype, "--require", f"memorizes {dtype}").stdout
        refused = run("memorize", *asked, "--out", tmp_path / "no", "--logits", ok=64)
        assert "no logits" in refused.stderr
        assert not (tmp_path / "no").exists()


def test_version() -> None:
    assert run("--version").stdout.strip() == __version__


def test_shells_complete_commands_and_options() -> None:
    """As a shell asks, by the name of the installed command."""
    command = Path(sys.executable).parent / "onelayer"
    asked = {"COMP_WORDS": "onelayer verify --req", "COMP_CWORD": "2", "_ONELAYER_COMPLETE": "complete_bash"}
    done = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "--require"


TAGGED = "a\tX\nb\tY\n\nb\tX\na\tY\n\na\tZ\nb\tY\n\n"


def test_conflicts_are_refused_listed_and_settled(tmp_path) -> None:
    corpus, listed = tmp_path / "corpus.conll", tmp_path / "conflicts.jsonl"
    corpus.write_text(TAGGED)
    refused = run("memorize", corpus, "--out", tmp_path / "m", "--conflicts", listed, ok=1).stderr
    assert "1 context has more than one answer, the first: sequence 0, token 0 and sequence 2, token 0" in refused
    assert "--on-conflict vote" in refused
    assert [json.loads(line)["places"] for line in listed.read_text().splitlines()] == [[[0, 0], [2, 0]]]
    assert (
        "exists. Pass --overwrite"
        in run("memorize", corpus, "--out", tmp_path / "m", "--conflicts", listed, ok=66).stderr
    )
    printed = run("memorize", corpus, "--out", tmp_path / "m", "--on-conflict", "first").stdout
    assert "1 context with more than one answer, settled by --on-conflict first: 1 answer changed" in printed
    assert "6 of 6 answers reproduced" in printed
    assert printed.splitlines()[-1].endswith(f"onelayer verify {tmp_path / 'm'}")
    assert run("verify", tmp_path / "m").stdout.splitlines()[-1] == "VERIFIED"
    planned = json.loads(run("plan", corpus, "--on-conflict", "drop", "--json").stdout)
    assert (planned["possible"], planned["conflicts"], planned["sequences"]) == (True, 1, 1)
    assert json.loads(run("plan", corpus, "--json", ok=1).stdout)["conflicts"] == 1


def test_sentences_are_in_order_by_default(tmp_path) -> None:
    corpus = tmp_path / "corpus.conll"
    corpus.write_text(TAGGED.partition("\n\na\tZ")[0])
    run("memorize", corpus, "--out", tmp_path / "m")
    refused = run("memorize", corpus, "--out", tmp_path / "bags", "--no-positions", ok=1).stderr
    assert "--positions if the order matters (no conflict is left then)" in refused
