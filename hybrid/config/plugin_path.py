"""The option that says where things lie besides those of the project. It is no part of a run's configuration.

The code of what is found there is (`hybrid/serving/sources.py`), the folder is not.
"""

from __future__ import annotations

from typing import Final

from hybrid.config.option import Option
from hybrid.plugins import PATH_VARIABLE

PATH: Final = Option(
    "--path",
    "Find tools, solvers, benchmarks, models and statistics in DIR too. DIR has folders tools, graphs, baselines, "
    "benchmarks, models, sections or exports, or is a folder of tools. May be given several times, besides the folders "
    f"of ${PATH_VARIABLE}; --tool-path is its former name.",
    "tools",
    metavar="DIR",
    variable=PATH_VARIABLE,
)
FORMER_NAME: Final = "--tool-path"
