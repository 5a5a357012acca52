"""Rows on disk: one Parquet file per case and seed, written whole or not at all, never overwritten."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from onelayer.errors import FileError, MissingExtraError
from onelayer.lab.experiment import Case, Preset, Row
from onelayer.lab.registry import fingerprint

#: What is recorded of the installation beside the rows.
PACKAGES = ("onelayer", "numpy", "torch", "pyarrow", "joblib", "matplotlib", "python-flint")
META = b"onelayer"
#: Seconds after which a file that was never finished is nobody's any more.
STALE = 3600.0


@dataclass(frozen=True)
class Piece:
    """What one case and seed gave, and about it: code, seconds, versions, machine, and when it was written."""

    case: Case
    seed: int
    rows: list[Row]
    about: dict[str, Any]


class Store:
    """The results of one experiment at one preset."""

    def __init__(self, results: Path, name: str, preset: Preset) -> None:
        self.folder, self.name, self.preset = results / name / preset, name, preset
        self._codes: dict[str, str] = {}

    def code(self, case: Case) -> str:
        """Of what computes this setting."""
        said = json.dumps(case, sort_keys=True)
        if said not in self._codes:
            self._codes[said] = fingerprint(self.name, case)
        return self._codes[said]

    def is_current(self, piece: Piece) -> bool:
        """Whether the code as it is computed this, and not an earlier one."""
        return bool(piece.about.get("code") == self.code(piece.case))

    def path(self, case: Case, seed: int) -> Path:
        """Of the rows that the experiment as it is now gives; what an earlier one gave lies beside them."""
        text = json.dumps({"name": self.name, "code": self.code(case), "case": case, "seed": seed}, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.parquet"

    def has(self, case: Case, seed: int) -> bool:
        return self.path(case, seed).is_file()

    def make(self) -> None:
        """The folder, and whether files can be written there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.folder):
            pass

    def write(self, case: Case, seed: int, rows: list[Row], seconds: float) -> None:
        arrow, parquet = _arrow()
        self.folder.mkdir(parents=True, exist_ok=True)
        table = arrow.Table.from_pylist([{**case, "seed": seed, **row} for row in rows])
        about = {"case": case, "seed": seed, "code": self.code(case), "seconds": seconds, **environment()}
        table = table.replace_schema_metadata({META: json.dumps(about).encode()})
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        os.close(handle)
        try:
            parquet.write_table(table, temporary)
            os.replace(temporary, self.path(case, seed))
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def tidy(self) -> None:
        """Remove what a killed run has left unfinished; another run may be writing next to us."""
        for part in self.folder.glob("*.part"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > STALE:
                    part.unlink()

    def rows(self, cases: list[Case], seeds: int) -> list[Row]:
        """The rows of these cases and seeds, in order; others that lie there are left alone."""
        return [row for piece in self.pieces_of(cases, seeds) for row in piece.rows]

    def pieces_of(self, cases: list[Case], seeds: int) -> list[Piece]:
        """What the code as it is now gave for these, in order."""
        wanted = [self.path(case, seed) for case in cases for seed in range(seeds)]
        return [self._read_piece(path) for path in wanted if path.is_file()]

    def pieces(self) -> list[Piece]:
        """Everything that lies there, whichever code computed it."""
        return [self._read_piece(path) for path in sorted(self.folder.glob("*.parquet"))]

    def put_aside(self) -> Path | None:
        """Move what lies there out of the way; results are never overwritten."""
        if not self.folder.exists():
            return None
        stamp, count = time.strftime("%Y%m%d-%H%M%S"), 0
        while (aside := self.folder.with_name(f"{self.preset}.{stamp}{f'-{count}' if count else ''}")).exists():
            count += 1
        self.folder.rename(aside)
        return aside

    def _read_piece(self, path: Path) -> Piece:
        arrow, parquet = _arrow()
        try:
            table = parquet.read_table(path, use_threads=False)
            about = json.loads(table.schema.metadata[META])
            return Piece(about["case"], about["seed"], table.to_pylist(), about)
        except (arrow.ArrowException, OSError, TypeError, LookupError, ValueError) as error:
            found = f"{path} is damaged, or another program's ({error or type(error).__name__})"
            raise FileError("lab", "files of rows as they were written", found, "Delete it, run again.") from None


def environment() -> dict[str, Any]:
    """Versions and machine, to be stored with the rows."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    return {"versions": versions, "machine": machine, "written": time.strftime("%Y-%m-%dT%H:%M:%S%z")}


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("The lab", "pyarrow", "lab") from None
    return pyarrow, pyarrow.parquet
