"""Finds reasoning in the text of a reply: in tags, or in a separate channel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TAG: Final = r"(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis)"
_BEGINS: Final = (
    # `<think>`, `<seed:think>`, `<|START_THINKING|>`, `<|begin_of_thought|>`, `◁think▷`, `[THINK]`, Gemma's tokens.
    rf"<(?:\w{{1,20}}:)?{_TAG}>|<\|(?:begin_of_|start_)?{_TAG}\|>|◁{_TAG}▷|\[THINK\]|<unused94>"
    r"|<\|channel\|>analysis<\|message\|>|<\|channel>thought\b"
)
_ENDS: Final = rf"</(?:\w{{1,20}}:)?{_TAG}>|<\|(?:/|end_of_|end_){_TAG}\|>|◁/{_TAG}▷|\[/THINK\]|<unused95>"
_FINAL: Final = r"<\|channel\|>final<\|message\|>"
_BEGINNING: Final = re.compile(_BEGINS, re.IGNORECASE)
_END: Final = re.compile(f"{_ENDS}|{_FINAL}", re.IGNORECASE)
_MARKS: Final = re.compile(
    rf"(?P<begin>{_BEGINS})|(?P<end>{_ENDS})|(?P<channel><\|(?:end|start|channel|call|return)\|>|<channel\|>)",
    re.IGNORECASE,
)


def without_thoughts(text: str) -> str:
    """Return the text after the last closed thought and before a thought that is never closed."""
    *_, end = (0, *(match.end() for match in _END.finditer(text)))
    return _BEGINNING.split(text[end:], maxsplit=1)[0]


def thoughts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans (start, end) of the thoughts in order; a thought that was opened in the prompt starts at 0."""
    opening: re.Match[str] | None = None
    position = 0
    for mark in _MARKS.finditer(text):
        if mark.lastgroup == "begin":
            opening = opening or mark
        elif mark.lastgroup == "end" or (opening is not None and "channel" in opening[0].lower()):
            end = mark.end() if mark.lastgroup == "end" else mark.start()
            yield (opening.start() if opening else position), end
            opening, position = None, end
    if opening is not None:
        yield opening.start(), len(text)


def marks_in(text: str) -> Iterator[str]:
    """Yield the opening and closing marks of thoughts in a text."""
    return (mark[0] for mark in _MARKS.finditer(text) if mark.lastgroup != "channel")
