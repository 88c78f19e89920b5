"""Types of options that more than one command takes: wrong values are usage errors before anything is begun."""

from __future__ import annotations

import math
import re

import click

DEVICE = re.compile(r"auto|cpu|cuda(?::[0-9]+)?")


class Amount(click.ParamType[float]):
    """A finite number above 0: seconds or dollars of a budget."""

    name = "float"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Fails for anything else."""
        try:
            found = float(str(value))
        except ValueError:
            self.fail(f"{value!r} is no number.", param, ctx)
        if not (math.isfinite(found) and found > 0):
            self.fail(f"{value} is no amount above 0.", param, ctx)
        return found


class Device(click.ParamType[str]):
    """`auto`, `cpu`, `cuda` or `cuda:N`. Whether the machine has it is found out where something is loaded."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word. Fails for any other."""
        if not DEVICE.fullmatch(str(value)):
            self.fail(f"{value!r} is no device: write auto, cpu, cuda or cuda:N.", param, ctx)
        return str(value)
