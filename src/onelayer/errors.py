"""The one error a person meets: a hypothesis that their data, file or request does not satisfy."""

from __future__ import annotations


def visible(text: str) -> str:
    """Text from a file that anybody may have written, fit to be shown: an escape sequence could hide the rest."""
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)


class HypothesisError(ValueError):
    """Four parts: the statement, what it needs, what was found and where, and the smallest remedy."""

    def __init__(self, statement: str, needs: str, found: str, remedy: str) -> None:
        self.statement, self.needs, self.found, self.remedy = statement, needs, found, remedy
        super().__init__(visible(f"[{statement}] needs {needs}; {found}. {remedy}"))

    def __reduce__(self) -> tuple[type[HypothesisError], tuple[str, str, str, str]]:
        return HypothesisError, (self.statement, self.needs, self.found, self.remedy)


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""

    def __init__(self, wanted_for: str, module: str, extra: str) -> None:
        super().__init__(
            f"{wanted_for} needs the package {module!r}, which is not installed. "
            f'Install it with: pip install "onelayer[{extra}]"'
        )
