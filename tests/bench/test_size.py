"""Tests of what `bench.size` counts as a line of code, of data and of a web page."""

from pathlib import Path

from bench import size

SOURCE = '''"""A module."""

import os
from sys import (
    argv,
)

# A reason.
A = """two
lines"""  # beside code
B = 1
"""Docstrings of constants count."""


@dataclass(frozen=True)
class C:
    """Says what it is."""

    def __init__(self) -> None:
        """Does
        nothing."""

    def _one(
        self,
    ) -> int:
        """One."""
        # Why.

        return 1


def two() -> int:
    def inner() -> int:
        return 2
    return inner()
'''


def test_lines_of_code_are_those_with_a_token_that_is_no_import_docstring_or_comment() -> None:
    counts = size.size_of(SOURCE)
    assert counts.code == 2 + 1 + 1 + (2 + 1 + 4) + 4
    assert counts.comments == 2
    assert (counts.functions, counts.private, counts.dataclasses) == (4, 1, 1)
    # __init__ has no body, `_one` has one line (its comment is above it), `two` has three, `inner` one.
    assert counts.of_bodies == 0 + 1 + 3 + 1


def test_a_room_is_a_folder_of_hybrid_or_one_at_the_top(tmp_path: Path) -> None:
    for name in ("hybrid/version.py", "hybrid/cli/run.py", "hybrid/cli/deep/er.py", "tools/rules/one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("A = 1\n")
    rooms = {room: value.code for room, value in size.of_checkout(tmp_path).items()}
    assert rooms == {"hybrid": 1, "hybrid/cli": 2, "tools": 1}
    assert size.sizes([tmp_path / "tools"], by_file=True, root=tmp_path).keys() == {"tools/rules/one.py"}


def test_code_that_moves_into_a_data_file_is_counted_there(tmp_path: Path) -> None:
    for name, text in {
        "hybrid/texts.toml": "a = 1\n\nb = 2\n",
        "hybrid/report/page.js": "let a\n",
        "hybrid/a.png": "x",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert {room: (value.code, value.data, value.web) for room, value in size.of_checkout(tmp_path).items()} == {
        "hybrid": (0, 2, 0),
        "hybrid/report": (0, 0, 1),
    }
