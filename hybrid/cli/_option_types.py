"""Types and shell completion of options that several commands share.

Wrong values are usage errors before any work begins. Completion only reads the names of files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from hybrid.config.values import check_address, check_amount, check_benchmark, check_device, check_solver, split_names
from hybrid.core.errors import did_you_mean
from hybrid.log.manifest import MANIFEST
from hybrid.plugins.registry import names, solver_names


class CheckedText(click.ParamType[Any]):
    """A type whose values a function of `hybrid/config/values.py` checks; `name` is its metavar in lower case."""

    def __init__(self, name: str, check: Callable[[object], Any]) -> None:
        self.name = name
        self._check = check

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value. Fails if the check fails."""
        try:
            return self._check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Listed(click.Option):
    """An option that may be repeated, and accepts several values in one word: `A,B`."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Check and return the values. Fails for an invalid or empty value."""
        try:
            words = tuple(word for item in value or () for word in split_names(str(item)))
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, self) from error
        return super().type_cast_value(ctx, words)


class FiniteRange(click.FloatRange):
    """A range of numbers that excludes NaN and infinity, which do not compare as expected."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Fails for other text, and outside the range."""
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return super().convert(number, param, ctx)


class RunOrSolver(click.Path):
    """The folder of a run or of one of its solvers; for a missing solver the message lists the existing solvers."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the folder. Fails if the folder does not exist."""
        from hybrid.log.folder import ATTEMPTS

        path = Path(value)
        if not path.exists() and (path.parent / MANIFEST).is_file():
            solvers = sorted(file.parent.name for file in path.parent.glob(f"*/{ATTEMPTS}"))
            hint = f"{did_you_mean(path.name, solvers)}; it has {', '.join(solvers) or 'no answers yet'}"
            self.fail(f"{path.parent} has no solver {path.name!r}{hint}.", param, ctx)
        return super().convert(value, param, ctx)


class WholeRange(click.IntRange):
    """A range of whole numbers, with a separate message for text that is not a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Fails for other text, and outside the range."""
        return super().convert(click.INT.convert(value, param, ctx), param, ctx)


ANY_PATH: Final = click.Path(path_type=Path)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)
ANY_FILE: Final = click.Path(path_type=Path, dir_okay=False)
EXISTING_PATH: Final = click.Path(path_type=Path, exists=True)
EXISTING_FOLDER: Final = click.Path(path_type=Path, exists=True, file_okay=False)
EXISTING_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
RUN_OR_SOLVER: Final = RunOrSolver()
COUNT: Final = WholeRange(0)
NUMBER: Final = WholeRange(1)
SEVERAL: Final = WholeRange(2)
PORT: Final = WholeRange(0, 65535)
FROM_0: Final = FiniteRange(0)
SHARE_TO_1: Final = FiniteRange(0, 1, min_open=True)
DIFFERENCE: Final = FiniteRange(-1, 1)
SHARE: Final = FiniteRange(0, 1, min_open=True, max_open=True)
AMOUNT: Final = CheckedText("float", check_amount)
DEVICE: Final = CheckedText("text", check_device)
ADDRESS: Final = CheckedText("text", check_address)
BENCHMARK: Final = CheckedText("text", check_benchmark)
SOLVER: Final = CheckedText("text", check_solver)

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]
# Default folder of runs.
RUNS = Path("runs")


def completing(candidates: Callable[[], Iterable[str]], *, comma_separated: bool = False) -> Completer:
    """Return a completer of the known words; with `comma_separated`, it completes the last word of a list: `A,B`."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem[str]]:
        prefix, comma, _ = typed.rpartition(",") if comma_separated else ("", "", "")
        words = (f"{prefix}{comma}{word}" for word in candidates() if word not in prefix.split(","))
        return [CompletionItem(word) for word in words if word.startswith(typed)]

    return complete


benchmarks = completing(lambda: names("hybrid.benchmarks"))
benchmark_lists = completing(lambda: names("hybrid.benchmarks"), comma_separated=True)
solvers, solver_lists = completing(solver_names), completing(solver_names, comma_separated=True)
tools, tool_lists = completing(lambda: names("tools")), completing(lambda: names("tools"), comma_separated=True)


def runs(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem[str]]:
    """Complete the runs in the default folder, newest first; if there are none, complete files."""
    folders = [path.parent for path in RUNS.glob(f"*/{MANIFEST}")]
    youngest = sorted(folders, key=lambda path: (-path.stat().st_mtime, path))
    return completing(lambda: map(str, youngest))(context, parameter, typed) or [CompletionItem(typed, type="file")]
