"""Lines are wrapped to fit a terminal: nothing is lost, and a command can still be pasted."""

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.display.terminal import NARROW, display_width, filled, folded, pasteable

WORDS = st.text(alphabet="ab/_-, 名e\u0301", max_size=120)


@given(WORDS, st.integers(10, 90), st.integers(0, 8))
def test_lines_are_within_their_width_and_lose_nothing(text: str, width: int, hang: int) -> None:
    lines = filled(text, width, hang)
    assert all(display_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(line.startswith(" " * hang) for line in lines[1:])


def test_a_line_breaks_at_a_space_then_after_a_mark_then_anywhere() -> None:
    assert filled("one two three", 8) == ["one two", "three"]
    assert filled("Visual_Correspondence", 12, 2) == ["Visual_", "  Correspond", "  ence"]
    assert filled("  two words", 7, 2) == ["  two", "  words"]
    assert filled("", 5) == [""]
    with pytest.raises(ValueError, match="3 columns are too few"):
        filled("x", 3, 2)


def test_wide_text_is_left_alone() -> None:
    text = "x " * 100 + "\n"
    assert folded(text, "wide") == text
    assert max(map(display_width, folded(text, "narrow").split("\n"))) <= NARROW


@given(st.lists(st.text(alphabet="ab /'\\\\", min_size=1, max_size=50), min_size=1, max_size=8))
def test_a_command_on_several_lines_is_the_same_command(words: list[str]) -> None:
    assert shlex.split(pasteable(words, "narrow").replace("\\\n", " ")) == words
    assert shlex.split(pasteable(words, "wide")) == words


@pytest.mark.system
@pytest.mark.parametrize(("columns", "shape"), [(80, "narrow"), (99, "narrow"), (100, "wide"), (200, "wide")])
def test_auto_is_narrow_in_a_narrow_terminal(columns: int, shape: str) -> None:
    """In a real terminal, `auto` selects the tables' shape by the number of columns."""
    actual, reference = pty.openpty()
    fcntl.ioctl(reference, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    code = "import sys; from hybrid.display.terminal import shape_of; sys.stderr.write(shape_of('auto'))"
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with os.fdopen(actual), os.fdopen(reference, "w") as terminal:
        result = subprocess.run(
            [sys.executable, "-c", code],
            stdout=terminal,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            check=True,
        )
    assert result.stderr == shape
