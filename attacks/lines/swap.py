"""A mutant put into a process that has imported the module: the code of the function that differs is replaced.

Whoever imported the function, or wraps it, has the same function object, and runs the new code. What runs when a
module is imported (constants, defaults, bodies of classes) cannot be replaced so: such a mutant is imported again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

Key = tuple[str, int]  # the name of a function and its first line
OPTIMIZED = 1  # the flag of functions; bodies of modules and classes do not have it


def find_changed(before: str, after: str) -> tuple[Key, CodeType] | None:
    """The one function that differs, and its new code; None if anything else does."""
    found = list(_changes(*(compile(text, "module", "exec") for text in (before, after))))
    return found[0] if len(found) == 1 else None


def functions(path: str) -> dict[Key, list[FunctionType]]:
    """The functions of a file that exist, by name and first line."""
    found: dict[Key, list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path:
            found.setdefault((thing.__code__.co_qualname, thing.__code__.co_firstlineno), []).append(thing)
    return found


def put(code: CodeType, old: list[FunctionType]) -> None:
    for function in old:
        function.__code__ = code


def _changes(old: CodeType, new: CodeType) -> Iterator[tuple[Key, CodeType] | None]:
    """Functions that differ, and None where what runs at import does."""
    inner_old, inner_new = _nested_code(old), _nested_code(new)
    if _body(old) != _body(new) or len(inner_old) != len(inner_new):
        yield None
        return
    for a, b in zip(inner_old, inner_new, strict=True):
        if not a.co_flags & OPTIMIZED:
            yield from _changes(a, b)
        elif _all(a) != _all(b):
            fits = a.co_freevars == b.co_freevars and a.co_qualname == b.co_qualname
            yield ((a.co_qualname, a.co_firstlineno), b) if fits else None


def _nested_code(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _body(code: CodeType) -> tuple[object, ...]:
    """What a code object does by itself, wherever its lines are."""
    constants = [repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)
    return code.co_code, constants, counts, names, code.co_exceptiontable


def _all(code: CodeType) -> tuple[object, ...]:
    return (*_body(code), *map(_all, _nested_code(code)))
