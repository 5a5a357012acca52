"""Hostile manifests: whatever is exchanged, missing, given twice or forged, no folder of shards is VERIFIED."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onelayer import memorize
from onelayer_checker import MANIFEST, check_shard, check_shards, conclude, folder_of, shards
from onelayer_checker.front import EXITS
from onelayer_checker.shards import MOST_SHARDS
from tests.processes import CHECKER, run_python

rng = np.random.default_rng(3)
X, Y = rng.standard_normal((90, 4, 3), dtype=np.float32), rng.integers(0, 5, (90, 4))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shards") / "model"
    return memorize(X, Y, cluster=1, folder=folder, shard_answers=120, certify=False).folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


def said(folder: Path) -> dict:
    return json.loads((folder / MANIFEST).read_text())


def write(folder: Path, manifest: object) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest))


def resigned(folder: Path) -> dict:
    """The manifest with the digests that the files now have."""
    manifest = said(folder)
    for k, entry in enumerate(manifest["shards"]):
        content = (folder / folder_of(k) / "certificate.json").read_bytes()
        entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest["router"] = hashlib.sha256((folder / "router" / "model.safetensors").read_bytes()).hexdigest()
    return manifest


def test_an_honest_folder_is_verified(folder) -> None:
    seen = []
    report = check_shards(folder, show=seen.append)
    assert (report.result, len(seen)) == ("VERIFIED", 3)
    assert "90 sequences, 360 answers, in 3 shards" in report.notes[0]
    assert "proved of every shard: memorizes float32, memorizes real" in report.notes[1]
    assert str(seen[0]).startswith("VERIFIED   shard 0: ")


def missing(folder: Path) -> None:
    shutil.rmtree(folder / folder_of(1))


def left_out(folder: Path) -> None:
    """The manifest does not know the last shard, to which the router sends sequences; their number stays."""
    write(folder, said(folder) | {"shards": said(folder)["shards"][:-1]})


def swapped(folder: Path) -> None:
    one, other = folder / folder_of(0), folder / folder_of(1)
    one.rename(folder / "aside")
    other.rename(one)
    (folder / "aside").rename(other)


def swapped_and_signed(folder: Path) -> None:
    """With digests and sizes rewritten, only the router knows."""
    swapped(folder)
    manifest = said(folder)
    manifest["shards"][:2] = manifest["shards"][1::-1]
    write(folder, manifest)


def twice(folder: Path) -> None:
    manifest = said(folder)
    manifest["shards"][1] = manifest["shards"][0]
    write(folder, manifest)


def copied(folder: Path) -> None:
    """A shard in the place of another, with its digest and sizes, and one digit of its certificate changed."""
    shutil.rmtree(folder / folder_of(1))
    shutil.copytree(folder / folder_of(0), folder / folder_of(1))
    path = folder / folder_of(1) / "certificate.json"
    path.write_bytes(path.read_bytes() + b" ")
    manifest = resigned(folder)
    manifest["shards"][1] |= {name: manifest["shards"][0][name] for name in ("sequences", "answers")}
    for name in ("sequences", "answers"):
        manifest[name] = sum(entry[name] for entry in manifest["shards"])
    write(folder, manifest)


def digest(folder: Path) -> None:
    path = folder / folder_of(2) / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b'"producer"', b'"Producer"'))


def weights(folder: Path) -> None:
    path = folder / folder_of(2) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")


def other_router(folder: Path) -> None:
    path = folder / "router" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def no_router(folder: Path) -> None:
    shutil.rmtree(folder / "router")


def wrong_router(folder: Path) -> None:
    """The network of a shard as the router, with its digest."""
    shutil.copy(folder / folder_of(0) / "model.safetensors", folder / "router" / "model.safetensors")
    write(folder, resigned(folder))


def counts(folder: Path) -> None:
    manifest = said(folder)
    for name in ("sequences", "answers"):
        manifest["shards"][0][name] += 1
        manifest[name] += 1
    write(folder, manifest)


def totals(folder: Path) -> None:
    write(folder, said(folder) | {"answers": 361})


def leaves(folder: Path) -> None:
    manifest = said(folder)
    manifest["shards"][1]["folder"] = "../elsewhere"
    write(folder, manifest)


def names(folder: Path) -> None:
    write(folder, said(folder) | {"names": "0" * 64})


def other_names(folder: Path) -> None:
    """Two classes exchanged in one shard, and every digest of it rewritten."""
    shard = folder / folder_of(1)
    content = json.loads((shard / "names.json").read_text())
    content["answers"][:2] = content["answers"][1::-1]
    (shard / "names.json").write_text(json.dumps(content))
    certificate = json.loads((shard / "certificate.json").read_text())
    raw = (shard / "names.json").read_bytes()
    certificate["files"]["names.json"] = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
    (shard / "certificate.json").write_text(json.dumps(certificate))
    write(folder, resigned(folder))


def claims(folder: Path) -> None:
    """A shard that claims something true, and not that its answers come back."""
    shard = folder / folder_of(1)
    certificate = json.loads((shard / "certificate.json").read_text())
    least = {"r": (2.0**1000).hex(), "delta": (2.0**-200).hex()}
    certificate["claims"] = [{"type": "separated", "arith": "real", "scope": "token", **least}]
    (shard / "certificate.json").write_text(json.dumps(certificate))
    write(folder, resigned(folder))


ATTACKS = {
    "MALFORMED": [missing, left_out, swapped, twice, digest, weights, other_router, no_router, counts,
                  totals, leaves, names, other_names],
    "NOT VERIFIED": [swapped_and_signed, copied, wrong_router],
    "UNKNOWN": [claims],
}  # fmt: skip


@pytest.mark.parametrize(("result", "attack"), [(r, attack) for r, listed in ATTACKS.items() for attack in listed])
def test_what_is_forged_is_refused(folder, result, attack) -> None:
    attack(folder)
    assert check_shards(folder).result == result


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {},
        {"format": "onelayer-shards/2"},
        {"shards": []},
        {"shards": {}},
        {"shards": [3]},
        {"shards": [{"sha256": "0", "bytes": True, "sequences": 1, "answers": 1}]},
        {"shards": [{"sha256": "0", "bytes": 1, "sequences": 0, "answers": 1}]},
        {"shards": [{"sha256": None, "bytes": 1, "sequences": 90, "answers": 360}]},
        {"router": 7},
        {"names": None},
        {"sequences": True},
        {"shards": [{}] * (MOST_SHARDS + 1)},
    ],
)
def test_manifests_that_are_none_are_malformed(folder, manifest) -> None:
    write(folder, said(folder) | manifest if manifest else manifest)
    assert check_shards(folder).result == "MALFORMED"
    assert check_shard(folder, 0).report.result == "MALFORMED"


def test_a_shard_that_is_not_there_and_verdicts_that_do_not_belong_together(folder) -> None:
    shards = [check_shard(folder, k) for k in range(3)]
    assert conclude(folder, shards).result == "VERIFIED"
    assert conclude(folder, shards[:2]).result == "UNKNOWN"
    assert conclude(folder, [*shards, shards[0]]).result == "UNKNOWN"
    assert check_shard(folder, 3).report.result == "UNFIT"
    write(folder, said(folder))  # the same, in other bytes
    assert conclude(folder, shards).result == "UNKNOWN"
    (folder / MANIFEST).unlink()
    assert conclude(folder, shards).result == "MALFORMED"


def test_work_beyond_the_budget_is_undecided(folder) -> None:
    assert check_shards(folder, budget=1e3).result == "UNKNOWN"
    assert check_shards(folder, memory=1e3).result == "UNKNOWN"


def test_the_program_alone_judges_a_folder_of_shards(folder) -> None:
    done = run_python(CHECKER, folder, "--jobs", "1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (EXITS["VERIFIED"], "VERIFIED")
    assert done.stdout.count("the router sends them here") == 3
    assert run_python(CHECKER, folder, "--data", "x.jsonl").returncode == 64


def test_what_the_router_was_not_asked_about_is_not_verified(folder, monkeypatch) -> None:
    """A shard without stored sequences could not be compared with the router: no verdict passes it by."""
    honest = check_shard(folder, 0)
    assert honest.report.result == "VERIFIED"
    for result, wanted in (("VERIFIED", "UNKNOWN"), ("NOT VERIFIED", "NOT VERIFIED")):
        bare = replace(honest.report, result=result, judge_with=None)
        monkeypatch.setattr(shards, "check", lambda *_, bare=bare, **__: bare)
        assert check_shard(folder, 0).report.result == wanted
