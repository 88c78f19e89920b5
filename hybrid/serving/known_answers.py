"""Known answers: easy questions that any sound weights can answer; they check new weights, or run on request.

The tool knows the answers (`Tool.checks`); mistakes in colours, coordinates or training of a network show in the tool's
answers. `hybrid tools check depth` prints them; `check_once(tool, backend, version, device, folder)` raises for weights
that fail a known answer, and records those that pass under `home()/checked`, so that each set of weights is checked
once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.config import FLOAT32
from hybrid.core.errors import ToolError, WeightsError, is_out_of_memory
from hybrid.core.files import write_atomic
from hybrid.core.images import home
from hybrid.core.types import Fault
from hybrid.plugins.weights import weights_sha256
from hybrid.serving.cache import key_of
from hybrid.serving.sources import code_of
from hybrid.serving.threads import one_opencv_thread
from hybrid.tool import Backend, CheckSeries, Evidence, KnownAnswer, Request, Stages, Tool
from hybrid.tool.output_schema import data_mismatch


@dataclass(frozen=True)
class Checked:
    """The result of checking a backend with one known answer.

    `name` is the name of the known answer, `wrong` the backend's mistake, or None, and `seconds` the time that the
    backend took. `unasked` says why these weights do not support the question (a checkpoint that only takes words),
    which is not a mistake. Mistakes within a `series` count only if too few of that series are right.
    """

    name: str
    wrong: str | None
    seconds: float
    unasked: str | None = None
    series: CheckSeries | None = None


def run_checks(tool: Tool, backend: Backend[Any]) -> list[Checked]:
    """Ask a backend that is set up every known-answer question of a tool.

    An exception of the backend counts as its mistake.

    Raises:
        Exception: the device's own error if its memory does not suffice, which says nothing about the weights.
    """
    one_opencv_thread()
    return [_run(tool, backend, check) for check in tool.checks]


def check_once(
    tool: Tool, backend: Backend[Any], version: str, device: str, weights: Path | None, precision: str = FLOAT32
) -> None:
    """Check learned weights, unless the same code has already passed the same checks with them on this kind of device.

    Args:
        tool: the tool whose checks are run.
        backend: the backend with the weights, set up.
        version: the backend's version, as in tool outputs.
        device: `cpu` or `cuda:0`; only its kind counts.
        weights: the directory they were loaded from; None if the backend has no weights of its own.
        precision: the precision of the network, as in tool outputs.

    Raises:
        WeightsError: the failed checks by name, with the mistakes.
    """
    if not tool.checks:
        return
    names = [check.name for check in tool.checks]
    digest = ""
    if weights is not None:
        # Include the configuration, because the normalisation is in a JSON file next to the weights.
        total = hashlib.sha256(weights_sha256(weights).encode())
        for path in sorted(weights.rglob("*.json")):
            total.update(f"{path.relative_to(weights).as_posix()}\x1f".encode() + path.read_bytes() + b"\x1e")
        digest = total.hexdigest()
    kind = device.split(":", maxsplit=1)[0] + ("" if precision == FLOAT32 else f" in {precision}")
    passed = home() / "checked" / f"{key_of(tool.card.name, code_of(tool), version, digest, kind, names)}.json"
    if passed.is_file():
        return
    checked = run_checks(tool, backend)
    if failed := failures(checked):
        raise WeightsError(
            f"{tool.card.name}: the weights {weights or version} fail {len(failed)} of {questions(checked)} "
            f"known answers ({'; '.join(failed)}); `hybrid tools check {tool.card.name}` shows each"
        )
    facts = {"tool": tool.card.name, "version": version, "content_sha256": digest, "device": kind, "passed": names}
    write_atomic(passed, json.dumps(facts, indent=1).encode())


def failures(checked: Sequence[Checked]) -> list[str]:
    """Return one line per failure: the name and mistake of a single answer, the number of right answers of a series."""
    lines = [
        f"{result.name}: {result.wrong}" for result in checked if result.series is None and result.wrong is not None
    ]
    for series in _series(checked):
        of_series = [result for result in checked if result.series == series]
        missed = [result for result in of_series if result.wrong is not None]
        right = len(of_series) - len(missed)
        # Questions that do not apply count as right, so fewer than `least` right answers imply a missed one.
        if right < series.least:
            first = f"{missed[0].name}: {missed[0].wrong}"
            lines.append(f"{series.name}: {right} of {len(of_series)} right, at least {series.least} needed ({first})")
    return lines


def series_counts(checked: Sequence[Checked]) -> list[str]:
    """Return a line for each series: how many questions were asked, how many were right, and how many must be."""
    lines = []
    for series in _series(checked):
        of_series = [result for result in checked if result.series == series]
        answered = [result for result in of_series if result.unasked is None]
        right = sum(result.wrong is None for result in answered)
        lines.append(
            f"series {series.name}: {right} of {len(answered)} asked are right, at least {series.least} needed "
            f"({len(of_series)} in the series, which counts as one)"
        )
    return lines


def questions(checked: Sequence[Checked]) -> int:
    """Return the number of possible failures: single answers and series."""
    return sum(result.series is None for result in checked) + len(_series(checked))


def _series(checked: Sequence[Checked]) -> list[CheckSeries]:
    return list(dict.fromkeys(result.series for result in checked if result.series is not None))


def _schema_fault(tool: Tool, evidence: Evidence) -> str | None:
    """Return how the data of the evidence differ from the tool's declared output; None if they match."""
    return None if tool.output is None else data_mismatch(tool.output, evidence.data)


def _run(tool: Tool, backend: Backend[Any], check: KnownAnswer) -> Checked:
    check_case = check.pose()
    request = Request(check_case.images, tool.args.model_validate(check_case.args), check_case.needs)
    start = time.perf_counter()
    try:
        if check_case.output is None or not isinstance(backend, Stages):
            (evidence,) = backend.run([request])
            wrong = _schema_fault(tool, evidence) or check_case.wrong(evidence)
        else:
            # Check the network's raw output before it is processed.
            prepared = backend.prepare(request)
            (output,) = backend.compute([prepared])
            wrong = check_case.output(output)
            if wrong is None:
                evidence = backend.finish(request, prepared, output)
                wrong = _schema_fault(tool, evidence) or check_case.wrong(evidence)
    except Exception as error:
        # An exception on an easy image is a failed check of the network, unless the device ran out of memory.
        if is_out_of_memory(error):
            raise
        seconds = time.perf_counter() - start
        if isinstance(error, ToolError) and error.fault is Fault.BAD_ARGUMENTS:
            return Checked(check.name, None, seconds, str(error), check.series)
        return Checked(check.name, f"{type(error).__name__}: {str(error)[:200]}", seconds, series=check.series)
    return Checked(check.name, wrong, time.perf_counter() - start, series=check.series)
