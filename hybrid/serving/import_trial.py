"""The process in which imports are tried, for code that may never need one: all that it takes is imported with it.

with described_by(describer):                  # hybrid.plugins.registry
    load("baselines", "always_a")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.serving.described import ProcessDescriber


def describer() -> ProcessDescriber:
    """Imports what lies outside of the project in a process of its own: none of it can hang or end the program."""
    from hybrid.serving.described import ProcessDescriber

    return ProcessDescriber()
