"""The process for trial imports; the heavy modules are imported only when a trial is needed.

with described_by(describer):                  # hybrid.plugins.registry
    load("baselines", "always_a")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.serving.described import ProcessDescriber


def describer() -> ProcessDescriber:
    """Return an importer that runs plug-in imports in a separate process, so that none can hang or end the program."""
    from hybrid.serving.described import ProcessDescriber

    return ProcessDescriber()
