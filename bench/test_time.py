"""Where the time of the tests goes: seconds of each room and of the slowest tests.

    python -m bench.test_time                              # what `uv run pytest` runs
    python -m bench.test_time -m system tests/hybrid       # any arguments of pytest
    python -m bench.test_time --slowest 40

A test's seconds are those of its setup, call and teardown, on the clock of its process: run it with nothing else
running. A fixture of a module or of the session counts for the first test that asks for it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from hybrid.display.tables import Column, Table, as_text


class Clock:
    """A plugin of pytest that adds up the seconds of each test; the processes of xdist report to it too."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.collected = 0.0
        self._began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        if not self.seconds:
            self.collected = time.monotonic() - self._began - report.duration
        self.seconds[report.nodeid] += report.duration


def room(test: str, depth: int = 3) -> str:
    """The folder, or at most `depth` parts of it, that a test lies in."""
    return "/".join(test.partition("::")[0].split("/")[:-1][:depth])


def by_room(seconds: Counter[str]) -> Table:
    """Tests and seconds of each room, the longest first."""
    total: Counter[str] = Counter()
    count: Counter[str] = Counter(map(room, seconds))
    for test, taken in seconds.items():
        total[room(test)] += taken
    rows = [(name, f"{count[name]:,}", f"{taken:.1f}") for name, taken in total.most_common()]
    return Table(
        "Seconds of each room",
        (Column("room"), Column("tests"), Column("seconds")),
        (*rows, ("all", f"{count.total():,}", f"{total.total():.1f}")),
    )


def slowest(seconds: Counter[str], most: int) -> Table:
    """The tests that take longest, all parameters of one together."""
    total: Counter[str] = Counter()
    for test, taken in seconds.items():
        total[test.partition("[")[0]] += taken
    rows = tuple((name, f"{taken:.2f}") for name, taken in total.most_common(most))
    return Table("The slowest tests", (Column("test"), Column("seconds")), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, print the tables, and end as pytest did."""
    parser = argparse.ArgumentParser(description="Where the time of the tests goes.", epilog="The rest is pytest's.")
    parser.add_argument("--slowest", type=int, default=20, metavar="N", help="tests to name (20)")
    options, rest = parser.parse_known_args(arguments)
    clock, began, before = Clock(), time.monotonic(), os.times()
    code = pytest.main(["-q", "--no-header", *rest], plugins=[clock])
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    print(as_text(by_room(clock.seconds)))
    print(as_text(slowest(clock.seconds, options.slowest)))
    print(f"{time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU; the first test began after {clock.collected:.0f} s")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
