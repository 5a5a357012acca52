"""Which tests take long: `python tools/seconds.py REPORT.xml`, of `pytest --junitxml REPORT.xml`, lists them.

`make fast` leaves out the tests in tests/seconds.txt, which this writes. A test is listed if one of its cases took
longer than a share of the whole run, so that a slow machine lists the same tests as a fast one.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).parents[1] / "tests" / "seconds.txt"
#: Of the time of all tests together: a tenth of a second of an hour.
SHARE = 2.8e-5


def durations(report: Path) -> dict[str, list[float]]:
    """Seconds of every case of every test, by module::test."""
    found = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        name = re.sub(r"\[.*", "", case.attrib["name"], flags=re.DOTALL)
        found[f"{case.attrib['classname']}::{name}"].append(float(case.attrib["time"]))
    return found


def slow_tests(found: dict[str, list[float]]) -> list[str]:
    total = sum(sum(times) for times in found.values())
    return sorted(name for name, times in found.items() if max(times) > SHARE * total)


if __name__ == "__main__":
    listed = slow_tests(durations(Path(sys.argv[1])))
    LIST.write_text("\n".join(listed) + "\n", encoding="utf-8")
    print(f"{len(listed)} tests take long")
