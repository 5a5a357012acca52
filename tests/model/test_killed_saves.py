"""A save that is killed leaves the old bundle or none; the next one clears up, and puts back what was set aside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onelayer import load
from tests.model.models import made

OLD, NEW = "words", "words with positions"
#: Saves a bundle over another and is killed, as by a machine that goes down, at the call of that name and number.
KILLED = """
import os, shutil, signal, sys
from pathlib import Path
import onelayer
new, target, name, number = sys.argv[1:]
model = onelayer.load(new)
module, _, function = name.rpartition(".")
owner = {"os": os, "shutil": shutil, "Path": Path}[module]
plain, count = getattr(owner, function), 0
def counted(*arguments, **options):
    global count
    count += 1
    if count == int(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*arguments, **options)
setattr(owner, function, counted)
model.save(target, overwrite=True)
"""


def killed(folder: Path, name: str, number: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder / "new"), str(folder / "m"), name, str(number)])
    assert done.returncode == -signal.SIGKILL, f"{name} is not called {number} times"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made(NEW).model.save(tmp_path / "new")
    return tmp_path


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"new"}


#: Where it is killed, and whether the folder then holds the old bundle.
MOMENTS = {
    "before the first file": ("os.fsync", 1, True),
    "between files": ("os.fsync", 3, True),
    "before the old bundle is set aside": ("Path.rename", 1, True),
    "while the old bundle is set aside": ("Path.rename", 2, False),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_next_save_clears_up(folder: Path, moment: str) -> None:
    name, number, stays = MOMENTS[moment]
    made(OLD).model.save(folder / "m")
    killed(folder, name, number)
    assert (folder / "m").exists() == stays
    assert len(left(folder)) > stays  # a hidden folder
    if stays:
        assert load(folder / "m") == made(OLD).model
    made(NEW).model.save(folder / "m", overwrite=True)
    assert left(folder) == {"m"}
    assert load(folder / "m") == made(NEW).model


def test_a_killed_first_save_leaves_nothing_after_the_next(folder: Path) -> None:
    killed(folder, "os.fsync", 2)
    assert not (folder / "m").exists()
    assert len(left(folder)) == 1
    made(OLD).model.save(folder / "m")
    assert left(folder) == {"m"}


def test_a_bundle_that_was_set_aside_is_put_back(folder: Path) -> None:
    """Also where the next save then fails, or must not overwrite."""
    made(OLD).model.save(folder / "m")
    killed(folder, "Path.rename", 2)
    assert not (folder / "m").exists()
    with pytest.raises(ValueError, match="exists already"):
        made(NEW).model.save(folder / "m")
    assert load(folder / "m") == made(OLD).model
    assert left(folder) == {"m"}


def test_a_killed_clean_up_is_cleaned_up(folder: Path) -> None:
    """The new bundle is in place, the old one not yet removed: it must not come back."""
    made(OLD).model.save(folder / "m")
    killed(folder, "shutil.rmtree", 1)
    assert load(folder / "m") == made(NEW).model
    assert len(left(folder)) == 2
    made(OLD).model.save(folder / "m", overwrite=True)
    assert left(folder) == {"m"}
    assert load(folder / "m") == made(OLD).model


def test_what_others_keep_beside_it_is_left_alone(folder: Path) -> None:
    """The folder of a save that is still running, of another bundle, and whatever looks similar."""
    kept = {f".m.saving-{os.getppid()}-abc", ".other.saving-1-abc", ".m.saving-me-abc", ".m.saved"}
    for name in kept:
        (folder / name).mkdir()
    made(OLD).model.save(folder / "m")
    assert left(folder) == kept | {"m"}
