"""Hostile folders end with their own line and exit code, in bounded time and memory, and write nothing but text."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from attacks.hostile import Hostile, claim, honest, hostile_folders, plain
from onelayer_checker import __main__ as program
from onelayer_checker.core import budget, separated
from onelayer_checker.core.balls import FLOAT32
from onelayer_checker.core.graph import build
from onelayer_checker.front import EXITS, check
from tests.processes import CHECKER, run_python

FOLDERS = {folder.name: folder for folder in hostile_folders()}
PRINTED = [name for name, folder in FOLDERS.items() if folder.why == "it is printed"]
ON_A_TERMINAL = ("an escape sequence in a tensor that overlaps", "a lone surrogate in a tensor that overlaps")
MEMORY, SECONDS = 2 << 30, 10


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(*arguments) -> subprocess.CompletedProcess[bytes]:
    return run_python(CHECKER, *arguments, limit=limited, text=False)


def judged(hostile: Hostile, code: object, out: bytes) -> None:
    """It ended as it should, with lines of printable ASCII that are not long."""
    lines = out.decode("ascii").split("\n")
    assert (code, lines[-2:]) == (EXITS[hostile.result], [hostile.result, ""]), lines
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 1000
    if hostile.gate == "budget":
        assert re.search(r" in all, \S+ are allowed \(--(budget|memory) \S+\)", "\n".join(lines)), lines
    elif hostile.gate:
        assert lines[-3].startswith(f"{hostile.gate}: "), lines


@pytest.mark.parametrize("name", [name for name in FOLDERS if name not in PRINTED or name in ON_A_TERMINAL])
def test_ends_with_its_verdict(tmp_path, name) -> None:
    hostile = FOLDERS[name]
    hostile.build(tmp_path / "folder")
    options = [option.replace("FOLDER", str(tmp_path / "folder")) for option in hostile.options]
    done = run(tmp_path / "folder", *options)
    judged(hostile, done.returncode, done.stdout)
    assert not done.stderr


@pytest.mark.parametrize("name", PRINTED)
def test_foreign_text_is_printed_as_ascii(tmp_path, monkeypatch, capsysbinary, name) -> None:
    FOLDERS[name].build(tmp_path / "folder")
    monkeypatch.setattr(sys, "argv", ["onelayer_checker", str(tmp_path / "folder")])
    with pytest.raises(SystemExit) as ended:
        program.main()
    judged(FOLDERS[name], ended.value.code, capsysbinary.readouterr().out)


@pytest.mark.parametrize("name", ON_A_TERMINAL)
def test_json_is_ascii_too(tmp_path, name) -> None:
    FOLDERS[name].build(tmp_path / "folder")
    done = run(tmp_path / "folder", "--json")
    assert done.stdout.decode("ascii").rstrip("\n").isprintable()
    assert json.loads(done.stdout)["result"] == "MALFORMED"


def test_a_file_without_permission_is_no_verdict_on_it(tmp_path, monkeypatch) -> None:
    folder = honest().write(tmp_path / "folder")
    assert check(folder).result == "VERIFIED"

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    report = check(folder)
    assert (report.result, report.gate) == ("MALFORMED", "missing")
    assert report.why == "missing: certificate.json cannot be read (Permission denied)"


def test_a_symlink_to_a_file_is_a_file(tmp_path) -> None:
    folder = honest().write(tmp_path / "folder")
    (folder / "model.safetensors").rename(tmp_path / "elsewhere")
    (folder / "model.safetensors").symlink_to(tmp_path / "elsewhere")
    assert check(folder).result == "VERIFIED"


def test_without_a_certificate_nothing_was_proved(tmp_path) -> None:
    done = run(tmp_path)
    assert done.returncode == EXITS["MALFORMED"]
    said = "missing: there is no certificate.json: nothing was proved of this folder"
    assert done.stdout.decode().splitlines() == [said, "MALFORMED"]


def test_an_option_lifts_the_budget(tmp_path) -> None:
    folder = honest().write(tmp_path / "folder")
    for option, unit in (("--budget", "operations"), ("--memory", "bytes of memory")):
        done = run(folder, option, "1")
        assert done.returncode == EXITS["UNKNOWN"]
        found = re.search(
            rf"([0-9.e+]+) {unit} in all, 1 are allowed \({option} ([0-9.e+]+)\)", done.stdout.decode()
        )
        assert found
        assert float(found[2]) >= float(found[1])
    assert run(folder, "--budget", "1e8", "--memory", "1e8").returncode == 0
    assert check(folder, budget=1.0).result == "UNKNOWN"
    assert check(folder, budget=1e8, memory=1e8).result == "VERIFIED"


def network(H: int, w: int, s: int, c: int):
    tensors = {f"attention.W_{name}": np.ones((H, w, s), np.float32) for name in "QKV"}
    tensors |= {"attention.W_O": np.ones((H, s, w), np.float32), "embedding.lift": np.ones((16, w), np.float32)}
    for i, (a, b) in enumerate(((w, c), (c, 2))):
        tensors |= {f"readout.{i}.weight": np.ones((a, b), np.float32), f"readout.{i}.bias": np.ones(b, np.float32)}
    return build(tensors)


def test_an_honest_folder_of_millions_of_answers_has_room() -> None:
    """1.6 million answers in sequences of 16 tokens, of whose work and memory only shapes are looked at here."""
    tokens = np.broadcast_to(np.float32(0), (100_000, 16, 16))
    with budget.limited(None, None):
        budget.allow_bytes("data", tokens.nbytes, 1)
        for _ in range(8):
            budget.spend_on_coordinates(network(1, 32, 4, 4), tokens, np.full(100_000, 16), FLOAT32, last=False)


def test_what_is_asked_for_counts_in_all() -> None:
    """The budget of a folder is one: claims cannot each have it again."""
    tokens, model = np.broadcast_to(np.float32(0), (1000, 100, 16)), network(1, 16, 1, 1)

    def ask(times: int) -> None:
        for _ in range(times):
            budget.spend_on_coordinates(model, tokens, np.full(1000, 100), FLOAT32, last=False)

    with budget.limited(None, None):
        ask(8)
        with pytest.raises(budget.Beyond, match="operations in all"):
            ask(56)


def test_pairs_are_counted_before_they_are_compared(monkeypatch) -> None:
    """As many as are near, however close to the edge: a brute force count is never larger."""
    rng, said = np.random.default_rng(5), []
    monkeypatch.setattr(separated, "spend", lambda what, *_: said.append(what))
    for delta in (2.0**-20, 1.0, 1 / 3):
        t = np.sort(rng.integers(0, 40, 300)) * delta * rng.choice([1 - 2.0**-52, 1.0, 1 + 2.0**-52], 300)
        tokens = np.stack([t, np.arange(300) * 4 * delta + 0.5], axis=1)[:, None]
        bundle = plain(tokens, claim("separated", r=1e6, delta=delta))
        near = int((np.abs(t[:, None] - t) < delta).sum() - 300) // 2
        assert check(bundle.files()).result == "VERIFIED"
        counted = [int(what.split()[0].replace(",", "")) for what in said if "pairs" in what]
        assert near <= counted[-1] <= 2 * near


def inject(fault: str, **options) -> subprocess.CompletedProcess[bytes]:
    """The program, with something going wrong where nothing is expected to."""
    program = f"""
        import sys
        import onelayer_checker.front as front
        from onelayer_checker.__main__ import main
        def broken(*_, **__):
            {fault}
        front.{options.pop("where", "check")} = broken
        sys.argv = ["onelayer_checker", *sys.argv[1:]]
        main()
    """
    return run_python(textwrap.dedent(program), *options.pop("arguments", ["folder"]), text=False)


@pytest.mark.parametrize("fault", ["raise MemoryError", "broken()", "raise ValueError('\x1b[2J')", "assert False"])
@pytest.mark.parametrize("where", ["check", "parse", "decide"])
def test_what_nobody_foresaw_is_no_verdict(tmp_path, fault, where) -> None:
    folder = honest().write(tmp_path / "folder")
    done = inject(fault, where=where, arguments=[folder])
    assert done.returncode == EXITS["UNFIT"], (done.stdout, done.stderr)
    said = (done.stdout + done.stderr).decode("ascii").splitlines()
    assert said[-1] == "UNFIT"
    assert all(line.isprintable() for line in said)


def test_an_interrupt_is_no_verdict() -> None:
    assert inject("raise KeyboardInterrupt").returncode == 130
    assert inject("import os, signal; os.kill(os.getpid(), signal.SIGINT)").returncode == 130


def test_without_numpy_it_says_so() -> None:
    program = """
        import runpy, sys
        sys.modules["numpy"] = None
        sys.argv = ["onelayer_checker", "folder"]
        runpy.run_module("onelayer_checker", run_name="__main__", alter_sys=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == EXITS["UNFIT"]
    assert "numpy" in done.stderr
    assert done.stderr.splitlines()[-1] == "UNFIT"


def test_a_verdict_nobody_could_read_is_none(tmp_path) -> None:
    folder = honest().write(tmp_path / "folder")
    command = [sys.executable, "-m", "onelayer_checker", folder]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == EXITS["UNFIT"]
    assert b"No space left" in done.stderr
