"""The options of `hybrid run` and `hybrid.run` that are not part of a run's configuration.

They control where options come from, how answers are counted, and how much is printed; other commands share some.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from hybrid.config.option import ASK, OUTPUT
from hybrid.config.plugin_path import PATH


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """Options of a command that asks questions. Each option is a field, as in `RunConfig`."""

    config: Annotated[
        Path | None,
        ASK(
            "--config FILE|RUN",
            "Options from a YAML or JSON file, or from a run. A file has a line KEY: VALUE per option; a run is given "
            "by its folder or manifest.",
            common=True,
            kept=False,
        ),
    ] = None
    path: Annotated[tuple[Path, ...], PATH] = ()
    unanswered: Annotated[
        Literal["wrong", "guess"] | None,
        OUTPUT(
            "--unanswered",
            "Score of a question without a readable answer, in every number of the output and for every solver: wrong, "
            "as the  benchmarks' own scripts count, or the expected score of a guess.  [default: wrong]",
            varied=False,
        ),
    ] = None
    allow_failed: Annotated[
        bool,
        OUTPUT(
            "--allow-failed",
            "Test differences even if more than 1 % of the questions failed.",
            varied=False,
        ),
    ] = False
    dry_run: Annotated[
        bool,
        OUTPUT("--dry-run", "Only print the planned questions, cost and problems.", kept=False),
    ] = False
    tables: Annotated[
        Literal["wide", "narrow", "auto"],
        OUTPUT(
            "--tables",
            "narrow keeps text within 80 columns: long names are folded, and columns are printed in blocks below "
            "each other; auto is narrow in a terminal of fewer than 100 columns.",
            kept=False,
        ),
    ] = "auto"
    json: Annotated[bool, OUTPUT("--json", "One JSON object on stdout, everything else on stderr.", kept=False)] = False
    verbose: Annotated[
        bool, OUTPUT("--verbose", "Also show retries and tool faults, as in a run's log.txt.", kept=False)
    ] = False
    quiet: Annotated[bool, OUTPUT("--quiet", "Show no progress and no note, only results and errors.", kept=False)] = (
        False
    )
    debug: Annotated[
        bool, OUTPUT("--debug", "Show the traceback of a tool that fails, with file and line.", kept=False)
    ] = False
