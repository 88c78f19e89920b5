"""An output line in a notebook cell that is overwritten in place, for progress bars.

tqdm(total=40, file=line_in_place())      # one output that changes; None (stderr) outside of a notebook

An ordinary stream would save every state of the bar in the notebook: two lines per second.
"""

from __future__ import annotations

import io
import sys
import uuid
from typing import Any


def line_in_place() -> io.TextIOBase | None:
    """Return a text file that displays its last line in the running cell; None outside of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # In a terminal, IPython behaves as any other program.
    return _Line(shell.display_pub) if shell is not None and "IPKernelApp" in shell.config else None


class _Line(io.TextIOBase):
    """A cell output that is updated by its id."""

    encoding = "utf-8"

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._id = uuid.uuid4().hex
        self._shown = ""

    def write(self, text: str) -> int:
        """Replace the displayed text; line ends alone change nothing."""
        line = text.strip("\r\n").rstrip()
        if line and line != self._shown:
            transient = {"display_id": self._id}
            self._publisher.publish({"text/plain": line}, metadata={}, transient=transient, update=bool(self._shown))
            self._shown = line
        return len(text)
