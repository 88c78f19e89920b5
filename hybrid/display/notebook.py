"""A line in a notebook's cell that is written over, for progress bars.

    tqdm(total=40, file=line_in_place())      # one output that changes; None, and so stderr, outside of a notebook

A stream would keep every state of the bar in the saved notebook: twice a second, a line.
"""

from __future__ import annotations

import io
import sys
import uuid
from typing import Any


def line_in_place() -> io.TextIOBase | None:
    """A text file that shows what was written to it last, in the cell that is running; None where there is none."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # In a terminal IPython is as any other program.
    return _Line(shell.display_pub) if shell is not None and "IPKernelApp" in shell.config else None


class _Line(io.TextIOBase):
    """An output with an id, by which it is changed."""

    encoding = "utf-8"

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._id = uuid.uuid4().hex
        self._shown = ""

    def write(self, text: str) -> int:
        """Show the text instead of what is there; ends of lines alone change nothing."""
        line = text.strip("\r\n").rstrip()
        if line and line != self._shown:
            transient = {"display_id": self._id}
            self._publisher.publish({"text/plain": line}, metadata={}, transient=transient, update=bool(self._shown))
            self._shown = line
        return len(text)
