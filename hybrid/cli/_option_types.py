"""Types of options that more than one command takes: wrong values are usage errors before anything is begun."""

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
        """The number. Fails for anything else."""
        try:
            number = float(str(value))
        except ValueError:
            self.fail(f"{value!r} is no number.", param, ctx)
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{value} is no amount above 0.", param, ctx)
        return number


class Device(click.ParamType[str]):
    """`auto`, `cpu`, `mps`, `cuda` or `cuda:N,cuda:M`. `refuse_absent` of `hybrid.serving.loader` looks for them."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word. Fails for any other."""
        if not DEVICE.fullmatch(str(value)):
            self.fail(f"{value!r} is no device: write auto, cpu, mps, cuda or cuda:N,cuda:M.", param, ctx)
        return str(value)


class Listed(click.Option):
    """An option that may be given several times, and takes several values at once: `A,B`."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The values, each checked. Fails for one that does not fit, or is empty."""
        if isinstance(value, list | tuple):
            value = tuple(word.strip() for item in value for word in str(item).split(","))
        if value and "" in value:
            raise click.BadParameter("a name is empty", ctx, self)
        return super().type_cast_value(ctx, value)


def refuse_empty(words: Sequence[str]) -> None:
    """Raise `UsageError`, with the option, where a word of the command line is no value: `--split=`, `--split ""`."""
    for previous, word in zip(("", *words), words, strict=False):
        if word == "--":
            return
        if empty := EMPTY.fullmatch(word):
            raise UsageError(f"{empty[1]}: the value is empty")
        if word == "":
            raise UsageError(f"{previous}: the value is empty" if previous.startswith("-") else "an argument is empty")


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN and infinity, which compare with no end as one thinks."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Fails for what is none, and out of the range."""
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return super().convert(number, param, ctx)


class RunOrSolver(click.Path):
    """The folder of a run or of a solver in one; of a run without that solver the message names those that it has."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder. Fails where there is none."""
        from hybrid.log.folder import ATTEMPTS
        from hybrid.log.manifest import MANIFEST

        path = Path(value)
        if not path.exists() and (path.parent / MANIFEST).is_file():
            solvers = sorted(file.parent.name for file in path.parent.glob(f"*/{ATTEMPTS}"))
            hint = f"{did_you_mean(path.name, solvers)}; it has {', '.join(solvers) or 'no answers yet'}"
            self.fail(f"{path.parent} has no solver {path.name!r}{hint}.", param, ctx)
        return super().convert(value, param, ctx)


class WholeRange(click.IntRange):
    """A range of whole numbers; what is no number is not called a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Fails for what is none, and out of the range."""
        return super().convert(click.INT.convert(value, param, ctx), param, ctx)


class AddressType(click.ParamType[str]):
    """`http://HOST[:PORT][/PATH]` or https. Whether anybody listens there is found out by asking."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The address. Fails for anything else."""
        try:
            parts = urlsplit(str(value))
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            self.fail(f"{value!r} is no address: write it as http://127.0.0.1:8000/v1.", param, ctx)
        return str(value)


class OneOf(click.ParamType[str]):
    """A name of ours: of a benchmark, of a solver. Nothing is imported to know whether there is one.

    Args:
        what: the noun.
        package: `hybrid.benchmarks`, or nothing for solvers.
    """

    name = "text"

    def __init__(self, what: str, package: str = "") -> None:
        self._what = what
        self._package = package

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name. Fails, with the nearest, for one that there is not."""
        from hybrid.core.repetitions import REPEAT
        from hybrid.plugins.registry import names, solver_names

        all_names = tuple(names(self._package) if self._package else solver_names())
        name = str(value)
        # What repetitions are called is refused where they are explained.
        if name not in all_names and REPEAT not in name:
            self.fail(
                f"no {self._what} {name!r}{did_you_mean(name, all_names)}; there are: {', '.join(all_names)}",
                param,
                ctx,
            )
        return name


BENCHMARK = OneOf("benchmark", "hybrid.benchmarks")
SOLVER = OneOf("solver")
