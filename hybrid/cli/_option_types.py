"""Types of options that several commands share: wrong values are usage errors before any work begins."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from hybrid.core.errors import UsageError, did_you_mean

EMPTY = re.compile(r"(--[a-z-]+)=")
DEVICE = re.compile(r"auto|cpu|mps|cuda|cuda:[0-9]+(?:,cuda:[0-9]+)*")


class Amount(click.ParamType[float]):
    """A finite number above 0: seconds or dollars of a budget."""

    name = "float"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Fails for anything else."""
        try:
            number = float(str(value))
        except ValueError:
            self.fail(f"{value!r} is no number.", param, ctx)
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{value} is no amount above 0.", param, ctx)
        return number


class Device(click.ParamType[str]):
    """`auto`, `cpu`, `mps`, `cuda` or `cuda:N,cuda:M`; `refuse_absent` of `hybrid.serving.loader` checks existence."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word. Fails for any other."""
        if not DEVICE.fullmatch(str(value)):
            self.fail(f"{value!r} is no device: write auto, cpu, mps, cuda or cuda:N,cuda:M.", param, ctx)
        return str(value)


class Listed(click.Option):
    """An option that may be repeated, and accepts several values in one word: `A,B`."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Check and return the values. Fails for an invalid or empty one."""
        if isinstance(value, list | tuple):
            value = tuple(word.strip() for item in value for word in str(item).split(","))
        if value and "" in value:
            raise click.BadParameter("a name is empty", ctx, self)
        return super().type_cast_value(ctx, value)


def refuse_empty(words: Sequence[str]) -> None:
    """Raise `UsageError`, naming the option, if a word is empty or has an empty value: `--split=`, `--split ""`."""
    for previous, word in zip(("", *words), words, strict=False):
        if word == "--":
            return
        if empty := EMPTY.fullmatch(word):
            raise UsageError(f"{empty[1]}: the value is empty")
        if word == "":
            raise UsageError(f"{previous}: the value is empty" if previous.startswith("-") else "an argument is empty")


class FiniteRange(click.FloatRange):
    """A range of numbers that excludes NaN and infinity, which do not compare as expected."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Fails for other text, and outside the range."""
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return super().convert(number, param, ctx)


class RunOrSolver(click.Path):
    """The folder of a run or of one of its solvers; for a missing solver the message lists the existing ones."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the folder. Fails if it does not exist."""
        from hybrid.log.folder import ATTEMPTS
        from hybrid.log.manifest import MANIFEST

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


class AddressType(click.ParamType[str]):
    """`http://HOST[:PORT][/PATH]` or https; the host is not contacted."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address. Fails for anything else."""
        try:
            parts = urlsplit(str(value))
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            self.fail(f"{value!r} is no address: write it as http://127.0.0.1:8000/v1.", param, ctx)
        return str(value)


class OneOf(click.ParamType[str]):
    """The name of a benchmark or of a solver, checked without importing it.

    Args:
        what: the noun.
        package: `hybrid.benchmarks`, or empty for solvers.
    """

    name = "text"

    def __init__(self, what: str, package: str = "") -> None:
        self._what = what
        self._package = package

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; for an unknown one, fail and suggest the closest match."""
        from hybrid.core.repetitions import REPEAT
        from hybrid.plugins.registry import names, solver_names

        all_names = tuple(names(self._package) if self._package else solver_names())
        name = str(value)
        # The names of repetitions are rejected later, with an explanation.
        if name not in all_names and REPEAT not in name:
            self.fail(
                f"no {self._what} {name!r}{did_you_mean(name, all_names)}; there are: {', '.join(all_names)}",
                param,
                ctx,
            )
        return name


BENCHMARK = OneOf("benchmark", "hybrid.benchmarks")
SOLVER = OneOf("solver")
