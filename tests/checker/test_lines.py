"""Lines of the checker are deleted and altered, and something notices; the tool that does so can be believed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from attacks.lines import aims, argued
from attacks.lines.mutations import mutants
from attacks.lines.workshop import PACKAGE

ROOT = Path(__file__).parents[2]


def test_no_mutant_of_a_sample_survives() -> None:
    """Some of all mutants of the core and the search, chosen by their hash: `make mutants` tries every one."""
    command = [sys.executable, "-m", "attacks.lines", "--ring", "core", "--ring", "search", "--unargued"]
    command += ["--sample", "12", "--jobs", "2", "--no-baseline", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert sum(count["mutants"] for count in found["modules"].values()) == 12
    assert found["survivors"] == found["forgotten"] == found["unaimed"] == []
    assert done.returncode == 0


def test_every_module_of_the_core_and_the_search_is_aimed_at() -> None:
    assert aims.modules_without_aim("core") == aims.modules_without_aim("search") == []
    for tests in aims.AIMS.values():
        assert tests
        assert all((ROOT / test.partition("::")[0]).is_file() for test in tests)


def test_every_argument_is_about_one_mutant() -> None:
    arguments = argued.read()
    functions = {(module, where) for module, where, *_ in arguments}
    made = Counter(
        mutant.key
        for module in sorted({module for module, _ in functions})
        for mutant in mutants(
            module, (PACKAGE / f"{module}.py").read_text(), {where for own, where in functions if own == module}
        )
    )
    assert [key for key in arguments if made[key] != 1] == []


def changes(text: str) -> set[tuple[str, str]]:
    return {(mutant.old, mutant.new) for mutant in mutants("x", textwrap.dedent(text))}


def test_each_kind_of_change_is_made() -> None:
    found = changes("""
        def f(a, b, *, c=2):
            "Says nothing."
            if a < b and c:
                raise ValueError(f"{a + 1}")
            a += 1
            x = [np.nextafter(y, np.inf) for y in b if y]
            return max(a, 4) * ~x + 0.0
    """)
    for old, new in (
        ("def f(a, b, *, c=2):", "def f(a, b, *, c=3):"),
        ("if a < b and c:", "if False:"),
        ("if a < b and c:", "if not (a < b and c):"),
        ("if a < b and c:", "if a <= b and c:"),
        ("if a < b and c:", "if c:"),
        ("if a < b and c:", "if (a < b):"),
        ('raise ValueError(f"{a + 1}")', "pass"),
        ("a += 1", "pass"),
        ("a += 1", "a -= 1"),
        ("a += 1", "a = 1"),
        ("a += 1", "a += 2"),
        ("x = [np.nextafter(y, np.inf) for y in b if y]", "x = [y for y in b if y]"),
        ("x = [np.nextafter(y, np.inf) for y in b if y]", "x = [np.nextafter(y, -np.inf) for y in b if y]"),
        ("x = [np.nextafter(y, np.inf) for y in b if y]", "x = [np.nextafter(y, np.inf) for y in b if False]"),
        ("return max(a, 4) * ~x + 0.0", "return min(a, 4) * ~x + 0.0"),
        ("return max(a, 4) * ~x + 0.0", "return max(a, 8) * ~x + 0.0"),
        ("return max(a, 4) * ~x + 0.0", "return max(a, 4) / ~x + 0.0"),
        ("return max(a, 4) * ~x + 0.0", "return max(a, 4) + 0.0"),
        ("return max(a, 4) * ~x + 0.0", "return (~x) + 0.0"),
        ("return max(a, 4) * ~x + 0.0", "return max(a, 4) * x + 0.0"),
        ("return max(a, 4) * ~x + 0.0", "return (max(a, 4) * ~x)"),
        ("return max(a, 4) * ~x + 0.0", "return max(a, 4) * ~x + 1.0"),
        ("return max(a, 4) * ~x + 0.0", "pass"),
    ):
        assert (old, new) in found, (old, new)
    assert not any("Says" in old for old, _ in found)
    assert not any(old.startswith("raise") and new != "pass" for old, new in found)
    assert ("x = [np.nextafter(y, np.inf) for y in b if y]", "pass") not in found


def test_what_says_something_and_does_nothing_is_left_alone() -> None:
    assert not changes("""
        '''A module.'''
        from __future__ import annotations
        import numpy as np
        __all__ = ["a"]
        if TYPE_CHECKING:
            from x import y
        @dataclass(frozen=True)
        class A:
            '''A class.'''
            x: Literal[1, 2]
    """)


def test_operators_are_found_between_brackets_and_across_lines() -> None:
    found = changes("x = ((a)  <  (b)) | (\n    c\n    not in d\n)\n")
    assert ("x = ((a)  <  (b)) | (", "x = ((a)  <=  (b)) | (") in found
    assert ("c not in d", "c in d") in found
    assert ("x = ((a)  <  (b)) | ( c not in d )", "x = (a)  <  (b))") not in found
    assert {new for _, new in changes("f('ü', 1 <= k)\n")} >= {"f('ü', 1 < k)", "f('ü', 2 <= k)"}


PROGRAM = """
from dataclasses import replace
from attacks.lines.mutations import mutants
from attacks.lines.workshop import PACKAGE, Workshop

own = (PACKAGE / "core/classes.py").read_text()
some = mutants("core/classes", own)[0]
sources = [own, "while True: pass", "raise ValueError", own.replace("result &= k == l", "pass"), own]
sources += [own.replace("n = data", "while True: n = data"), own + "\\nX = 1"]
changed = [replace(some, source=source, statement=range(0)) for source in sources]
tests = ["tests/checker/test_classes.py"]
with Workshop(2) as workshop:
    found = dict(workshop.run(changed, tests))
    unmeasured = dict(workshop.run(changed[:1] + changed[3:4], tests, measure=False))
for outcome in (*(found[index] for index in range(len(sources))), unmeasured[0], unmeasured[1]):
    print(outcome.result, outcome.test)
"""


def test_what_passes_what_fails_and_what_never_ends() -> None:
    before = (PACKAGE / "core/classes.py").read_text()
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    found = [line.strip() for line in done.stdout.splitlines()]
    same, forever, broken, changed, again, endless, imported, first, second = found
    assert same == again == imported == first == "passed"
    assert forever == endless == "out of time"
    assert broken == "failed tests/checker/test_classes.py"
    assert changed.startswith("failed tests/checker/test_classes.py::test_")
    assert second.startswith("failed tests/checker/test_classes.py::test_it_is_the_definition")
    assert (PACKAGE / "core/classes.py").read_text() == before


def test_arguments_are_of_a_known_kind_and_made_once(tmp_path) -> None:
    entry = '[[argued]]\nmodule = "m"\nin = "f"\nline = "x"\nbecomes = ["y", "z"]\neffect = "{}"\nwhy = "w"\n'
    path = tmp_path / "argued.toml"
    path.write_text(entry.format("same"))
    assert argued.read(path)["m", "f", "x", "z"] == argued.Argument("same", "w")
    for wrong in (entry.format("unsound"), entry.format("same") * 2, entry.format("same") + 'more = "x"\n'):
        path.write_text(wrong)
        with pytest.raises(SystemExit):
            argued.read(path)


def test_an_argument_about_nothing_is_forgotten() -> None:
    made = mutants("m", "x = 1\n")
    keys = [mutant.key for mutant in made]
    assert argued.stale(keys, made) == []
    assert argued.stale([("m", "module", "x = 1", "x = 7"), ("other", "f", "x", "y")], made) == [
        "m\nmodule\nx = 1\nx = 7"
    ]
