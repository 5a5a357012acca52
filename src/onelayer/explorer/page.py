"""One HTML file that needs nothing else: the modules of `static/` one after another, a style, and a model."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onelayer.explorer.payload import pack
from onelayer.explorer.samples import Samples, samples_of, some
from onelayer.explorer.twin import read_twin

if TYPE_CHECKING:
    from onelayer.model import Model
    from onelayer.problems.sequences import Sequences

#: In the order in which they need each other.
MODULES: tuple[str, ...]
MODULES = ("arithmetic", "network", "payload", "scripts", "models", "draw", "line", "plane", "steps", "contexts")
MODULES += (
    "temperature",
    "words",
    "reals",
    "twin",
    "sequences",
    "text",
    "functions",
    "learners",
    "certificate",
    "main",
)
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?(const|let|function|class) )", re.MULTILINE)
#: A page loads nothing from anywhere else, whatever a model's names say.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"
)
#: Of a page that has the window to itself.
WINDOW = ":root { color-scheme: light dark } body { margin: 0; background: light-dark(#f6f7f9, #101317) } "
#: Pixels of a page inside a notebook.
HEIGHT = 900


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
        f'<meta http-equiv=Content-Security-Policy content="{POLICY}">'
        f"<link rel=icon href='data:,'><title>onelayer</title><style>{WINDOW}{read_static('style.css')}</style>"
        f"<body><main id=explorer></main><script type=application/octet-stream id=model>{data}</script>"
        f"<script type=module>{script()}\nopenPage();</script></body></html>\n"
    )


@dataclass(frozen=True, repr=False)
class Page:
    """A model to look at. A notebook shows it; `save` writes one file that opens in any browser, offline."""

    packed: bytes
    samples: Samples  # all of them; the page carries some

    @property
    def html(self) -> str:
        return render(self.packed)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page, all or nothing."""
        target = Path(path)
        part = target.with_name(f".{target.name}.part")
        part.write_text(self.html, encoding="utf-8")
        part.replace(target)
        return target

    def _repr_html_(self) -> str:
        frame = f"width:100%;height:{HEIGHT}px;border:0"
        return f'<iframe srcdoc="{escape(self.html)}" style="{frame}" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        return f"<Page of {len(self.packed):,} bytes: save it to a file, or show it in a notebook>"


def make_page(
    model: Model, given: Sequences | None = None, title: str = "onelayer", race: Mapping[str, Any] | None = None
) -> Page:
    """The page of a model, with the sequences that it stores, or with others; and with the twin of a race."""
    samples = samples_of(model, given)
    twin = None if race is None else read_twin(race, samples)
    return Page(pack(model, some(samples), title, twin), samples)
