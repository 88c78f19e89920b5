"""`hybrid`: does a multimodal LLM gain from vision specialists? See `hybrid --help`, or these Python functions.

    import hybrid

    hybrid.tool("depth").run("photo.jpg", labels=["A", "B"])
    hybrid.run("blink", data="sample", model="embedded", limit=8)
    hybrid.ask("photo.jpg", "How many cups?", model="openai:gpt-4o")
    hybrid.score("runs/blink-1a2b3c4d5e").to_pandas()
    hybrid.compare("runs/real", "runs/blank", baseline="mllm")
    hybrid.table("runs/blink-1a2b3c4d5e").to_pandas()
    hybrid.runs("runs", sort="score")

Each function except `tool`, `table` and `runs` does the same as the command of its name: it takes the options by name
(`tool_output="blank"` is `--tool-output blank`) and returns what the command prints. `docs/python.md` has examples.
Modules are imported when they are first needed, and each function also works where an event loop is already running, as
in a notebook.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

from hybrid.version import __version__

if TYPE_CHECKING:
    from hybrid.benchmarks.questions.from_python import Question as Question
    from hybrid.cli.from_python import ask as ask
    from hybrid.cli.from_python import run as run
    from hybrid.interface.findings import RunnableTool
    from hybrid.scoring.paths import CompareArguments, ScoreArguments
    from hybrid.scoring.records import QuestionTable
    from hybrid.scoring.reports import ComparisonReport, ScoreReport
    from hybrid.scoring.run_list import RunList, Sort
    from hybrid.tool import Tool

__all__ = ["Question", "__version__", "ask", "compare", "run", "runs", "score", "table", "tool"]


def tool(tool: str | Tool, *, path: str | Path | Sequence[str | Path] = ()) -> RunnableTool:
    """Return a specialist that you can run on images.

    Args:
        tool: a name that `hybrid tools list` prints, or your own tool.
        path: a folder with further tools, as in `--path`.

    Raises:
        UsageError: there is no tool of that name, or a folder does not exist.
    """
    from hybrid.config.python_words import python_errors
    from hybrid.interface.findings import RunnableTool
    from hybrid.plugins.discovery import add_path
    from hybrid.plugins.registry import load

    add_path(path)
    if not isinstance(tool, str):
        return RunnableTool(tool)
    with python_errors():
        return RunnableTool(load("tools", tool))


def score(
    *paths: str | Path, path: str | Path | Sequence[str | Path] = (), **options: Unpack[ScoreArguments]
) -> ScoreReport:
    """Score runs, or predictions that another program saved. No model is called.

    Args:
        paths: runs, folders of solvers inside runs, or predictions (with `benchmark=`).
        path: folder of plug-ins, as with `--path`.
        options: those of `hybrid score --help`: benchmark, data, field, protocol, unanswered, allow_failed, published,
            verdicts, by, out.

    Raises:
        UsageError: a path that is neither a run nor predictions, or options that cannot be combined.
        DataError: a file that cannot be used.
    """
    from hybrid.config.python_words import python_errors
    from hybrid.plugins.discovery import add_path
    from hybrid.scoring.reports import score_paths

    with python_errors():
        add_path(path)
        return score_paths(paths, **options)


def compare(
    *paths: str | Path, path: str | Path | Sequence[str | Path] = (), **options: Unpack[CompareArguments]
) -> ComparisonReport:
    """Compare solvers in pairs, each pair on the questions that both solvers have.

    Args:
        paths: as for `score`.
        path: as for `score`.
        options: those of `hybrid compare --help`: by, benchmark, data, field, protocol, unanswered, baseline, pairs,
            margin, allow_failed, published, only, all.

    Raises:
        UsageError: as for `score`; also if the paths belong to two benchmarks, or different questions have the same id.
        DataError: a file that cannot be used.
    """
    from hybrid.config.python_words import python_errors
    from hybrid.plugins.discovery import add_path
    from hybrid.scoring.reports import compare_paths

    with python_errors():
        add_path(path)
        return compare_paths(paths, **options)


def table(
    *paths: str | Path, path: str | Path | Sequence[str | Path] = (), **options: Unpack[ScoreArguments]
) -> QuestionTable:
    """Return the questions of runs or predictions, one row per question and solver, for your own statistics.

    Args:
        paths: as for `score`.
        path: as for `score`.
        options: the options of `score` that control how answers are read: benchmark, data, field, protocol.

    Raises:
        UsageError: as for `score`.
        DataError: a file that cannot be used.
    """
    from hybrid.config.python_words import python_errors
    from hybrid.plugins.discovery import add_path
    from hybrid.scoring.records import QuestionTable
    from hybrid.scoring.reports import score_paths

    with python_errors():
        add_path(path)
        return QuestionTable(score_paths(paths, **options).solvers)


def runs(
    *folders: str | Path, benchmark: str = "", model: str = "", solver: str = "", state: str = "", sort: Sort = "date"
) -> RunList:
    """Return the runs in these folders (`runs` if none is given), with each solver's score and cost.

    Args:
        folders: where to look, three levels deep.
        benchmark: only runs of this benchmark.
        model: only runs whose model contains this text.
        solver: only this solver.
        state: `finished`, `open`, `being written` or `damaged`.
        sort: `date`, `name`, `score`, `cost` or `n`.

    Raises:
        UsageError: a folder is missing, or no run has this benchmark or solver.
    """
    from hybrid.scoring.run_list import RunFilter, list_scored

    return list_scored(map(Path, folders or ["runs"]), RunFilter(benchmark, model, solver, state), sort)


def __getattr__(name: str) -> Any:
    """On first use, load `Question`, and `run` and `ask`, which take the options of a run."""
    homes = {"ask": "hybrid.cli", "run": "hybrid.cli", "Question": "hybrid.benchmarks.questions"}
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hybrid.plugins.registry import import_submodule

    globals()[name] = getattr(import_submodule(homes[name], "from_python"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return list(__all__)


class _Surface(ModuleType):
    """Module class of this package: importing the module `hybrid.tool` does not replace the function `tool`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "tool" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Surface
