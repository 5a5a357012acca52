"""A missing package is installed for the Python that misses it, wherever the command is given."""

from __future__ import annotations

import shlex
import sys

import pytest

from onelayer.errors import MissingExtraError


def test_a_missing_package_is_installed_where_the_user_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for where, command in (
        ("/opt/my env/bin/python", "'/opt/my env/bin/python' -m pip install scikit-learn"),
        (sys.executable, f"{shlex.quote(sys.executable)} -m pip install scikit-learn"),
        ("", "pip install scikit-learn"),
    ):
        monkeypatch.setattr(sys, "executable", where)
        said = str(MissingExtraError("an estimator", "sklearn", "sklearn"))
        assert f"Install it with: {command} (" in said
