"""Text on a terminal: its width in columns, and lines that fit a given width.

filled("a long sentence ...", 80, hang=4)      # a list of lines, all but the first indented by four

No character is lost. A line is broken at a space if there is one; a word is only broken if it alone is too wide,
preferably after one of `/_-`.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import Literal

NARROW = 80  # Width of output for a narrow terminal
WIDE_FROM = 100  # Minimum width of a wide terminal

Shape = Literal["wide", "narrow"]

TEXT = {"wide": "text", "narrow": "narrow"}  # The name of each shape's form in `hybrid.display.tables.RENDERERS`


def shape_of(requested: Literal["wide", "narrow", "auto"]) -> Shape:
    """Return the shape of tables; `auto` is narrow if stdout is a terminal of fewer than `WIDE_FROM` columns."""
    if requested != "auto":
        return requested
    watched = sys.stdout is not None and sys.stdout.isatty()
    return "narrow" if watched and shutil.get_terminal_size().columns < WIDE_FROM else "wide"


def how_many(count: int, what: str = "question", verb: tuple[str, str] | None = None) -> str:
    """Format `1 question`, `2 questions`; with a verb (singular and plural), `1 question is`, `2 questions are`."""
    plural = count != 1
    return f"{count:,} {what}{'s' * plural}{'' if verb is None else ' ' + verb[plural]}"


def one_line(text: str) -> str:
    """Return the text on one line, without characters that control a terminal or change the reading order."""
    joined = " ".join(text.split())
    if joined.isprintable():
        return joined
    return "".join("\ufffd" if unicodedata.category(char).startswith("C") else char for char in joined)


def clipped(text: str, width: int) -> str:
    """Return the text on one line of at most `width` columns (4 or more); a longer text is cut in the middle."""
    line = one_line(text)
    if display_width(line) <= width:
        return line
    head, tail = line[: (width - 1) // 2], line[-(width // 2 - 1) :]
    while display_width(head) + display_width(tail) > width - 1:
        head, tail = head[:-1], tail[1:]
    return f"{head}\u2026{tail}"


def opening(text: str, width: int) -> str:
    """Return the words of a sentence that fit on one line of `width` columns, with an ellipsis if it is longer."""
    first, *rest = filled(text, width)
    return f"{filled(first, width - 1)[0]}\u2026" if rest else first


def display_width(text: str) -> int:
    """Return the number of terminal columns of the text."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    return 1 + (unicodedata.east_asian_width(char) in "WF") - (unicodedata.combining(char) > 0)


def filled(text: str, width: int, hang: int = 0) -> list[str]:
    """Wrap the text to lines of at most `width` columns, all but the first indented by `hang`; at least one line.

    Leading spaces stay; other runs of spaces stay unless the line is broken there. Raises `ValueError` if a wide
    character does not fit beside the indentation.
    """
    if width < hang + 2:
        raise ValueError(f"{width} columns are too few for lines indented by {hang}")
    lines: list[str] = []
    rest = text.rstrip()
    while display_width(rest) > width:
        cut = _cut(rest, width, keep=hang if lines else len(rest) - len(rest.lstrip()))
        lines.append(rest[:cut].rstrip())
        rest = " " * hang + rest[cut:].lstrip()
    return [*lines, rest]


def _cut(text: str, width: int, keep: int) -> int:
    """Return where the first line of a too wide text ends: at a space after `keep` characters, else within a word."""
    used, fitting = 0, 0
    for fitting, char in enumerate(text):  # noqa: B007 - the loop's last position is the result
        used += _char_width(char)
        if used > width:
            break
    space = text.rfind(" ", keep + 1, fitting + 1)
    if space > 0 and text[keep:space].strip():
        return space
    parted = max(text.rfind(mark, keep + 1, fitting) for mark in "/_-")
    return parted + 1 if parted > keep else max(fitting, keep + 1)


def folded(text: str, shape: Shape, hang: int = 2) -> str:
    """Return the text unchanged or, for a narrow terminal, with its lines wrapped to `NARROW` columns.

    A line break at the end of the text stays.
    """
    if shape == "wide":
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        short = display_width(line) <= NARROW
        lines += [line] if short else filled(line, NARROW, min(indent + hang, NARROW // 2))
    return "\n".join(lines)


def pasteable(words: Sequence[str], shape: Shape, prefix: str = "") -> str:
    """Return a command that can be pasted, after `prefix`; if `shape` is narrow, break it between words."""
    if shape == "wide":
        return prefix + shlex.join(words)
    lines = [prefix]
    for word in map(shlex.quote, words):
        # Leave room for a space and the sign that continues the command.
        if lines[-1].strip() and display_width(lines[-1]) + display_width(word) > NARROW - 2 and lines[-1] != prefix:
            lines[-1] += "\\"
            lines.append("    ")
        lines[-1] += f"{word} "
    return "\n".join(line.rstrip() for line in lines)
