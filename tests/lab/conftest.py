"""An experiment of a test's own beside those of the lab."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onelayer.lab import experiments
from tests.lab.toy import TOY


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Path:
    """A quick experiment beside the others; gives the file in which it notes every piece that it computes."""
    folder, log = tmp_path / "experiments", tmp_path / "log"
    folder.mkdir()
    (folder / "toy.py").write_text(TOY.replace("LOG", repr(str(log))).replace("PAUSE", "0.01"))
    log.touch()
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "onelayer.lab.experiments.toy", raising=False)
    yield log
    sys.modules.pop("onelayer.lab.experiments.toy", None)
