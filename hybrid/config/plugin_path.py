"""The option for additional search folders of plug-ins. It is not part of a run's configuration.

The code found there is part of the configuration (`hybrid/serving/sources.py`); the folder is not.
"""

from __future__ import annotations

from typing import Final

from hybrid.config.option import Option
from hybrid.plugins.registry import PATH_VARIABLE

PATH: Final = Option(
    "--path",
    "Also find tools, solvers, benchmarks, models, sections and exports in DIR. DIR contains folders with these names "
    f"(graphs and baselines for solvers), or tools. Repeatable, in addition to ${PATH_VARIABLE}. Formerly --tool-path.",
    "tools",
    metavar="DIR",
    kept=False,
    variable=PATH_VARIABLE,
)
FORMER_NAME: Final = "--tool-path"
