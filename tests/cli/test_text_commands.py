"""`onelayer memorize-text` and `onelayer recite`: what they write, what they say, what they refuse."""

from __future__ import annotations

import json
import subprocess

import pytest

from onelayer import load
from onelayer.compile.text import python_reference
from tests.processes import run_command

TEXT = python_reference().encode()[20_000:24_000]


def run(*arguments, ok: int = 0) -> subprocess.CompletedProcess[bytes]:
    return run_command(*arguments, ok=ok, text=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("text")
    (path / "passage.txt").write_bytes(TEXT)
    (path / "prompt.txt").write_bytes(TEXT[:500])
    said = run("memorize-text", path / "passage.txt", "--out", path / "model", "--context", 32).stdout.decode()
    assert said.startswith("passage.txt\n")
    assert "ambiguous_windows" in said
    assert f"(measured). Written to {path / 'model'}" in said
    return path


def test_a_passage_is_recited(folder) -> None:
    asked = ("recite", folder / "model", "--prompt-file", folder / "prompt.txt", "--length", 60)
    model = load(folder / "model")
    wanted = model.generate(TEXT[:500], 60)
    assert wanted == TEXT[500:560]
    done = run(*asked)
    assert (done.stdout, done.stderr) == (wanted, b"")
    drawn = model.generate(TEXT[:500], 60, sampled=True, seed=4)
    assert run(*asked, "--sample", "--seed", 4).stdout == drawn
    prompt = TEXT[500 - 32 : 500].decode()
    assert run("recite", folder / "model", "--prompt", prompt, "--length", 3).stdout == TEXT[500:503]


def test_a_model_is_held_against_the_text(folder, tmp_path) -> None:
    said = run("verify", folder / "model", "--data", folder / "passage.txt").stdout.decode()
    assert f"all {len(TEXT):,} windows are certified with what follows them" in said
    (tmp_path / "other.csv").write_bytes(TEXT[:100] + b"?" + TEXT[101:])
    said = run("verify", folder / "model", "--data", tmp_path / "other.csv", ok=1).stdout.decode()
    assert f"byte 100 is 63; in the certified text it is {TEXT[100]}" in said


def test_a_short_prompt_is_the_beginning(folder) -> None:
    done = run("recite", folder / "model", "--prompt", TEXT[:4].decode(), "--length", 20)
    assert done.stdout == TEXT[4:24]
    assert b"the prompt has 4 tokens, a window 32: it is read as the text's beginning" in done.stderr


def test_for_machines(folder, tmp_path) -> None:
    asked = (
        "memorize-text",
        folder / "passage.txt",
        "--out",
        tmp_path / "m",
        "--context",
        6,
        "--seed",
        3,
        "--json",
    )
    said = json.loads(run(*asked).stdout)
    ledger = {line["name"]: line["value"] for line in said["ledger"]}
    assert (ledger["context"], ledger["seed"], ledger["windows"]) == (6, 3, len(TEXT))
    assert said["ambiguous"] == said["ambiguous_right"] == ledger["ambiguous_windows"] > 0
    assert said["certain"] == said["certain_right"] == ledger["distinct"] - said["ambiguous"]
    assert b"Choose another folder, or pass --overwrite." in run(*asked, ok=66).stderr
    run(*asked, "--overwrite")


def test_byte_pairs(folder, tmp_path) -> None:
    asked = ("memorize-text", folder / "passage.txt", "--out", tmp_path / "m", "--context", 16)
    run(*asked, "--tokenizer", "bpe", "--vocabulary-size", 280)
    model = load(tmp_path / "m")
    assert model.interface.tokens.size == 280
    (tmp_path / "prompt").write_bytes(model.interface.decode(model.interface.encode(TEXT)[:12]))
    said = run("recite", tmp_path / "m", "--prompt-file", tmp_path / "prompt", "--length", 5).stdout
    assert said == model.interface.decode(model.interface.encode(TEXT)[12:17])
    assert b"Use --tokenizer bpe" in run(*asked, "--overwrite", "--vocabulary-size", 280, ok=64).stderr


def test_mistakes_are_answered_in_a_line(folder, tmp_path) -> None:
    model = folder / "model"
    assert b"there is none. Pass either --prompt" in run("recite", model, ok=64).stderr
    both = run("recite", model, "--prompt", "a", "--prompt-file", folder / "prompt.txt", ok=64)
    assert b"there are two" in both.stderr
    assert b"token 0 of the prompt has the id 1 " in run("recite", model, "--prompt", "\x01", ok=65).stderr
    assert b"a onelayer bundle at" in run("recite", tmp_path, "--prompt", "a", ok=66).stderr
    missing = run("memorize-text", tmp_path / "no.txt", "--out", tmp_path / "m", ok=66)
    assert b"there is no such file" in missing.stderr
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    done = run("memorize-text", empty, "--out", tmp_path / "m", ok=65)
    assert b"[text] needs a text of at least 2 tokens; in empty.txt, the text is empty." in done.stderr
    long = run("memorize-text", folder / "passage.txt", "--out", tmp_path / "m", "--context", 1000, ok=1)
    assert b"Use a context of at most 390." in long.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_without_a_file_it_is_the_language_reference(tmp_path) -> None:
    said = json.loads(run("memorize-text", "--out", tmp_path / "m", "--json").stdout)
    assert said["certain"] == said["certain_right"] > 300_000


def test_a_recital_stops_and_says_so(folder, tmp_path) -> None:
    done = run("recite", folder / "model", "--prompt", TEXT[-60:-20].decode(), "--length", 99)
    assert done.stdout == TEXT[-20:]
    assert done.stderr.decode().strip() == "stopped after 20 tokens: the text ends here"
    asked = ("memorize-text", folder / "passage.txt", "--out", tmp_path / "m", "--context", 32)
    said = run(*asked, "--false-hits", "0.005").stdout.decode()
    assert "false_hits_measured" in said
    done = run("recite", tmp_path / "m", "--prompt", "what nobody ever wrote in this text", ok=1)
    assert done.stdout == b""
    assert "nothing follows this prompt: the text ends here, or this is not in it" in done.stderr.decode()
    asked = ("recite", tmp_path / "m", "--prompt", TEXT[-60:-20].decode(), "--json")
    said = json.loads(run(*asked).stdout)
    assert (said["text"], said["tokens"], said["stopped"]) == (TEXT[-20:].decode(), 20, True)
