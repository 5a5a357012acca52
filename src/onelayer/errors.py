"""What can go wrong for a person, by what they have to change: a theorem's hypothesis, data, a request, a file."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


def visible(text: str) -> str:
    """Text from a file that anybody may have written, fit to be shown: an escape sequence could hide the rest."""
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)


class OnelayerError(ValueError):
    """Four parts: the subject, what it needs, what was found and where, and the smallest remedy."""

    def __init__(self, subject: str, needs: str, found: str, remedy: str) -> None:
        self.subject, self.needs, self.found, self.remedy = subject, needs, found, remedy
        super().__init__(visible(f"[{subject}] needs {needs}; {found}. {remedy}"))

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str, str]]:
        return type(self), (self.subject, self.needs, self.found, self.remedy)

    def having_found(self, found: str) -> Self:
        """The same error with other words about where it was found."""
        return type(self)(self.subject, self.needs, found, self.remedy)


class HypothesisError(OnelayerError):
    """A theorem does not apply: its subject is a statement of the catalogue."""

    @property
    def statement(self) -> str:
        return self.subject


class PrecisionError(HypothesisError):
    """A theorem does not apply in this arithmetic, which has too few bits or too small a range: a larger may do."""


class DataError(OnelayerError):
    """Data that cannot be read as it was given."""


class OptionError(OnelayerError):
    """A request that nothing can meet, whatever the data: an unknown name, a number out of range, a combination."""


class FileError(OnelayerError):
    """A file or folder that is missing, in the way, broken, or cannot be written to."""

    @classmethod
    def of(cls, error: OSError, path: object = None) -> FileError:
        """What the system reported, as a sentence with a remedy; ``path`` if it does not name the file itself."""
        name = error.filename if error.filename is not None else "the output" if path is None else path
        name = name.decode(errors="replace") if isinstance(name, bytes) else name
        found, remedy = REPORTS.get(error.errno or 0, (f"the system reports: {error.strerror or error}", TRY_AGAIN))
        return cls("file", f"to read or write {name}", found, remedy)


TRY_AGAIN = "Try again, or use another folder."
REPORTS = {
    errno.ENOENT: ("there is no such file or folder", "Check the name."),
    errno.EACCES: ("you have no permission to", "Change its permissions, or use another folder."),
    errno.EPERM: ("you have no permission to", "Change its permissions, or use another folder."),
    errno.EROFS: ("it is on a disk that can only be read", "Use another folder."),
    errno.EISDIR: ("it is a folder", "Name a file in it."),
    errno.ENOTDIR: ("a part of that path is a file, not a folder", "Check the name."),
    errno.EEXIST: ("it exists already", "Use another name."),
    errno.ENOSPC: ("the disk is full", "Free some space, or use another disk."),
    errno.EDQUOT: ("your disk quota is used up", "Free some space, or use another disk."),
    errno.EFBIG: ("the file would be larger than the system allows", "Use another disk, or less data."),
    errno.ENAMETOOLONG: ("the name is too long", "Use a shorter one."),
    errno.EMFILE: ("too many files are open", "Close some, or raise the limit (ulimit -n)."),
    errno.EIO: ("the disk or network failed", TRY_AGAIN),
}


@contextmanager
def files_in_words(path: object = None) -> Iterator[None]:
    """What the system reports about files while this runs becomes a `FileError`."""
    try:
        yield
    except BrokenPipeError:
        raise  # no file: whoever read the output went away
    except OSError as error:
        raise FileError.of(error, path) from error


class CastWarning(UserWarning):
    """A network runs in another arithmetic than the one that its answers were built, and proved, for."""

    def __init__(self, subject: str, built: str, runs: str) -> None:
        other = f'memorize(..., dtype="{runs}") builds one for it' if "float16" in runs else f"keep it in {built}"
        super().__init__(
            f"[{subject}] this network needs {built}, for which its answers were built; it runs in {runs}, where "
            f'nothing is proved and answers may be lost. onelayer.cast(model, "{runs}", X, Y) counts what '
            f"survives; {other}."
        )


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message says how it is, for this Python and in a checkout."""

    def __init__(self, wanted_for: str, module: str, extra: str) -> None:
        package = {"sklearn": "scikit-learn"}.get(module, module)
        python = f"{shlex.quote(sys.executable)} -m " if sys.executable else ""  # another `pip` may be on the path
        super().__init__(
            f"{wanted_for} needs the package {module!r}, which is not installed. "
            f'Install it with: {python}pip install {package} (in a checkout of onelayer: pip install ".[{extra}]")'
        )
