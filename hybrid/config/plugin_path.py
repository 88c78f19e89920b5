"""The option that says where things lie besides those of the project. It is no part of a run's configuration.

The code of what is found there is (`hybrid/serving/sources.py`), the folder is not.
"""

from __future__ import annotations

from typing import Final

from hybrid.config.option import Option

PATH: Final = Option(
    "--path",
    "Find tools, solvers, benchmarks, models and statistics in DIR too. DIR has folders tools, graphs, baselines, "
    "benchmarks, models, sections or exports, or is a folder of tools. May be given several times, besides the folders "
    "of $HYBRID_TOOL_PATH; --tool-path is its former name.",
    "tools",
    metavar="DIR",
    variable="HYBRID_TOOL_PATH",
)
FORMER_NAME: Final = "--tool-path"
