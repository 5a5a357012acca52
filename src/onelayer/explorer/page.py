"""One HTML file that needs nothing else: the modules of `static/` one after another, a style, and a model."""

from __future__ import annotations

import base64
import re
from functools import cache
from importlib import resources

#: In the order in which they need each other.
MODULES = ("arithmetic", "network", "payload", "scripts", "models", "draw", "line", "steps", "temperature", "inputs")
MODULES += ("reals", "words", "text", "functions", "learners", "main")
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?(const|let|function|class) )", re.MULTILINE)


@cache
def read_static(name: str) -> str:
    return (resources.files("onelayer.explorer") / "static" / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All modules as one: top-level names are unique, which a test looks after."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", read_static(f"{name}.js"))) for name in MODULES)


def render(packed: bytes | None) -> str:
    """The page of a packed model; without one, it asks its server for `model`."""
    data = "" if packed is None else base64.b64encode(packed).decode()
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<link rel=icon href='data:,'><title>onelayer</title><style>{read_static('style.css')}</style>"
        f"<body><main id=explorer></main><script type=application/octet-stream id=model>{data}</script>"
        f"<script type=module>{script()}\nopenPage();</script></body></html>\n"
    )
