"""The options of `hybrid run` and `hybrid.run` that are not part of a run's configuration.

They control where options come from, how answers are counted, and how much is printed; other commands share some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal

from hybrid.config.option import ASK, IDENTITY, NOT_IDENTITY, OUTPUT, Option, OptionField, declare, option_fields
from hybrid.config.run_config import RunConfig
from hybrid.plugins.discovery import PATH_VARIABLE

# The code found in the folders is part of a run's configuration (`hybrid/serving/sources.py`); the folders are not.
PATH: Final = Option(
    "--path",
    "Also find tools, solvers, benchmarks, models, sections and exports in DIR. DIR contains folders with these names "
    f"(graphs and baselines for solvers), or tools. Repeatable, in addition to ${PATH_VARIABLE}. Formerly --tool-path.",
    "tools",
    short="--tool-path",
    metavar="DIR",
    in_manifest=False,
    variable=PATH_VARIABLE,
)

# Keys of `--model-arg` that are passed on to the provider, and that other programs have as options.
PASSED_ON: Final = ("top_p", "top_k", "stop", "frequency_penalty", "presence_penalty")
# Minimum similarity of an unknown option to such a key; it is high because most unknown options are none.
ALIKE: Final = 0.8


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """Options of a command that asks questions. Each option is a field, as in `RunConfig`."""

    config: Path | None = ASK(
        "--config FILE|RUN",
        "Options from a YAML or JSON file, or from a run. A file has a line KEY: VALUE per option; a run is given "
        "by its folder or manifest.",
        None,
        common=True,
        in_manifest=False,
    )
    path: tuple[Path, ...] = declare(PATH, (), NOT_IDENTITY)
    unanswered: Literal["wrong", "guess"] | None = OUTPUT(
        "--unanswered",
        "Score of a question without a readable answer, in every number of the output and for every solver: wrong, "
        "as the  benchmarks' own scripts count, or the expected score of a guess.  [default: wrong]",
        None,
    )
    allow_failed: bool = OUTPUT(
        "--allow-failed", "Test differences even if more than 1 % of the questions failed.", False
    )
    dry_run: bool = OUTPUT(
        "--dry-run", "Only print the planned questions, cost and problems.", False, in_manifest=False
    )
    tables: Literal["wide", "narrow", "auto"] = OUTPUT(
        "--tables",
        "narrow keeps text within 80 columns: long names are folded, and columns are printed in blocks below "
        "each other; auto is narrow in a terminal of fewer than 100 columns.",
        "auto",
        in_manifest=False,
    )
    json: bool = OUTPUT("--json", "One JSON object on stdout, everything else on stderr.", False, in_manifest=False)
    verbose: bool = OUTPUT(
        "--verbose", "Also show retries and tool faults, as in a run's log.txt.", False, in_manifest=False
    )
    quiet: bool = OUTPUT("--quiet", "Show no progress and no note, only results and errors.", False, in_manifest=False)
    debug: bool = OUTPUT(
        "--debug", "Show the traceback of a tool that fails, with file and line.", False, in_manifest=False
    )


BENCHMARK: Final = "benchmark"
# Every option of `hybrid run` by its key, with the benchmark, which the command line takes as an argument.
FIELDS: Final[Mapping[str, OptionField]] = {
    BENCHMARK: OptionField((BENCHMARK,), Option(BENCHMARK), str, optional=False, default=None, identity=IDENTITY),
    **{field.option.key: field for field in (*option_fields(RunConfig), *option_fields(CommandOptions))},
}


def nearest_model_arg(option: str) -> str | None:
    """Return the key of `--model-arg` that an unknown option means (`temperature` for `--temprature`); None if none."""
    keys = (*(field.option.name for field in option_fields(RunConfig, "--model-arg")), *PASSED_ON)
    return next(iter(get_close_matches(option.lstrip("-").replace("-", "_"), keys, n=1, cutoff=ALIKE)), None)
