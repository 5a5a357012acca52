"""Puts the checker into one file that Python runs, with the same bytes every time: dist/onelayer_checker.pyz.

An auditor compares its SHA-256 with the one that others got from the same sources. It depends on nothing but them:
names are sorted, times are fixed, and nothing is compressed (zlib's versions differ).
"""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "onelayer_checker.pyz"
MAIN = b"""import sys

if sys.version_info < (3, 11):
    sys.stderr.write("the checker needs Python 3.11 or newer\\nUNFIT\\n")
    sys.exit(4)

from onelayer_checker.__main__ import main

main()
"""


def content(source: Path = ROOT) -> bytes:
    """The file's bytes."""
    package = source / "src" / "onelayer_checker"
    files = {f"onelayer_checker/{path.relative_to(package).as_posix()}": path for path in package.rglob("*.py")}
    parts = {name: path.read_bytes() for name, path in {**files, "LICENSE": source / "LICENSE"}.items()}
    parts = {"__main__.py": MAIN} | {name: part.replace(b"\r\n", b"\n") for name, part in parts.items()}
    written = io.BytesIO(b"#!/usr/bin/env python3\n")
    written.seek(0, io.SEEK_END)
    with zipfile.ZipFile(written, "a", zipfile.ZIP_STORED) as archive:
        for name in sorted(parts):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # as on Unix, wherever this runs
            archive.writestr(entry, parts[name])
    return written.getvalue()


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist") / NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    made = content()
    target.write_bytes(made)
    target.chmod(0o755)
    print(f"{target}\n{len(made):,} bytes\nsha256 {hashlib.sha256(made).hexdigest()}")


if __name__ == "__main__":
    main()
