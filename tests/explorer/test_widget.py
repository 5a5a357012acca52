"""The widget: its module is run by a stand-in for a notebook, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

import onelayer.explorer.widget as widgets
from onelayer.errors import MissingExtraError
from onelayer.model import Model

HOST = """async ([esm, css, packed]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const bytes = Uint8Array.from(packed);
  const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  await module.default.render({ model: { get: () => new DataView(bytes.buffer) }, el: document.body });
}"""


def test_a_notebook_runs_the_same_modules(browser: Any, words: Model) -> None:
    widget, said = words.widget(), []
    page = browser.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.evaluate(HOST, [widget._esm, widget._css, list(widget.packed)])
    stored = words.certificate.data["tokens"][0]  # type: ignore[union-attr]
    sequence = [[words.interface.vocabulary[i] for i in stored]]  # type: ignore[index]
    assert page.locator(".token-box .answer").all_inner_texts() == words.predict(sequence)[0].tolist()
    assert not said
    page.close()


def test_its_style_is_its_own(words: Model) -> None:
    """Every rule begins at the widget, so that no other cell of a notebook changes."""
    rules = words.widget()._css.replace("\n", " ").split("}")
    begun = [rule.split("{")[-2].split("*/")[-1].strip() for rule in rules if "{" in rule]
    assert all(part.strip().startswith(".explorer") for rule in begun for part in rule.split(","))


def test_without_the_extra_it_says_how_to_install_it(words: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    widgets._kind.cache_clear()
    with pytest.raises(MissingExtraError, match="pip install anywidget"):
        words.widget()
    widgets._kind.cache_clear()
