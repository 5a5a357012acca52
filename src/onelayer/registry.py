"""Classes by their names: what `auto`, the options, the documents and the tests iterate over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, TypeVar


class Named(Protocol):
    name: ClassVar[str]
    order: ClassVar[int]


T = TypeVar("T", bound=Named)


class Registry(dict[str, type[T]]):
    """In the order that the classes state. ``register`` is a decorator."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def register(self, cls: Any) -> Any:
        if self.get(cls.name, cls) is not cls:
            raise ValueError(f"there is a {self.what} {cls.name!r} already")
        self[cls.name] = cls
        for name in sorted(self, key=lambda name: self[name].order):
            self[name] = self.pop(name)
        return cls

    @contextmanager
    def hold(self, cls: type[T]) -> Iterator[None]:
        """With this class registered, if it was not, for as long as the block runs."""
        new = cls.name not in self
        self.register(cls)
        try:
            yield
        finally:
            if new:
                del self[cls.name]
