"""The documentation site, which `make docs` builds. Its source is the whole repository, so that links between pages
that are read on their own (README, CONTRIBUTING, the results of benchmarks) are the links of the site, too."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
#: Pages call `onelayer` as a command, whose progress bars need a terminal.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ |= {"COLUMNS": "100", "OMP_NUM_THREADS": "1", "TTY_COMPATIBLE": "0"}

from command_help import sections  # noqa: E402
from docstrings import clean_signature, rewrite_docstring  # noqa: E402

import onelayer  # noqa: E402

project, author = "onelayer", "The onelayer authors"
release = version = onelayer.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "proofs/README.md",
    "src/onelayer_checker/README.md",
    "benchmarks/results/*.md",
]
exclude_patterns = [".*", "build", "dist", "tests", "lab-results"]

# Every code cell is executed while the site is built, in a folder of its own; an error stops the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

# What only an extra installs is not needed to read its docstring.
autodoc_mock_imports = ["sklearn", "torch", "onnx", "transformers", "transformer_lens", "distributed", "joblib"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"onelayer {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_additional_pages = {"index": "redirect.html"}
templates_path = ["_templates"]
html_show_copyright = False
pygments_dark_style = "github-dark"


def title_results(_app: Sphinx, page: str, source: list[str]) -> None:
    """A table of results begins with what was measured and how: the docstring of its benchmark."""
    folder, _, name = page.rpartition("/")
    if folder == "benchmarks/results":
        module = ast.parse((ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8"))
        about = ast.get_docstring(module) or ""
        title = name.replace("_", " ").capitalize()
        pictures = [f"![{title}]({path.name})" for path in sorted((ROOT / folder).glob(f"{name}*.png"))]
        command = f"`python -m benchmarks {name}` makes this page."
        source[0] = "\n\n".join([f"# {title}", about, command, *pictures, source[0]])


def list_commands(_app: Sphinx, page: str, source: list[str]) -> None:
    if page == "docs/commands":
        source[0] += f"\n{sections()}\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", title_results)
    app.connect("source-read", list_commands)
    app.connect("autodoc-process-docstring", rewrite_docstring)
    app.connect("autodoc-process-signature", clean_signature)
