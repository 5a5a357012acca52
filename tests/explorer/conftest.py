"""A real browser, and one model of each kind. A machine without Chromium gets a loud message."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer.model import Model
from onelayer.problems.tables import example, read_table

#: As root, and without a word to anybody's servers.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
TEXT = "the quick brown fox jumps over the lazy dog. the slow brown cow jumps over the moon."
Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if os.environ.get("ONELAYER_NO_BROWSER") == "1":
        pytest.skip("NO PAGE WAS OPENED: ONELAYER_NO_BROWSER=1 says that there is no Chromium")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("there is no Chromium: apt-get install chromium, or set ONELAYER_NO_BROWSER=1 to go without")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a model's page from a file; a word on the console, or a request to anywhere else, is a failure."""
    said: list[str] = []
    pages = []

    def open_one(model: Model | str, width: int = 1400, race: Any = None, **options: Any) -> Any:
        address = model
        if isinstance(model, Model):
            path = model.explore(title="a model", race=race).save(tmp_path / f"page{len(pages)}.html")
            address = path.as_uri()
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        here = str(address)
        page.on(
            "request", lambda request: request.url.startswith((here, "blob:", "data:")) or said.append(request.url)
        )
        page.goto(here)
        page.wait_for_selector("#explorer[data-ready]")
        return page

    yield open_one
    for page in pages:
        page.close()
    assert not said


@pytest.fixture(scope="session")
def words() -> Model:
    table = read_table(example("company"))
    return onelayer.memorize(table.X, table.Y)


@pytest.fixture(scope="session")
def reals() -> Model:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 3, 2)).astype(np.float32), rng.integers(0, 4, (20, 3))
    return onelayer.memorize(X, Y, dtype="float32").certify(X, Y)


@pytest.fixture(scope="session")
def text() -> Model:
    return onelayer.memorize_text(TEXT, context=20)


@pytest.fixture(scope="session")
def function() -> Model:
    return onelayer.approximate("x * exp(-mean((x - y)**2))", n=2, low=0, high=1, tolerance=0.05)


@pytest.fixture(scope="session")
def learner() -> Model:
    return onelayer.learner("gd", d=2, steps=6, dtype="float32")
