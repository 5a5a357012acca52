"""What can go wrong for a person, by what they have to change: a theorem's hypothesis, data, a request, a file."""

from __future__ import annotations

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


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""

    def __init__(self, wanted_for: str, module: str, extra: str) -> None:
        super().__init__(
            f"{wanted_for} needs the package {module!r}, which is not installed. "
            f'Install it with: pip install "onelayer[{extra}]"'
        )
