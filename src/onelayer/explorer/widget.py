"""The page of a model as a widget of a notebook: the same modules, by anywidget."""

from __future__ import annotations

from functools import cache
from typing import Any

from onelayer.errors import MissingExtraError
from onelayer.explorer.page import Page, read_static, script


def make_widget(page: Page) -> Any:
    """A widget, for notebooks that trust it; `Page` is shown in a frame instead, and needs no extra."""
    return _kind()(packed=page.packed)


@cache
def _kind() -> Any:
    """The class, made when it is first asked for: anywidget is an extra."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingExtraError("a widget", "anywidget", "notebook") from None

    members = {
        "_esm": f"{script()}\nexport default {{ render: renderWidget }};\n",
        "_css": read_static("style.css"),
        "packed": traitlets.Bytes().tag(sync=True),
    }
    return type("Explorer", (anywidget.AnyWidget,), members)
