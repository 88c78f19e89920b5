"""Known-answer images: do loaded weights see what anybody sees? Run when weights are new to this home, or by hand.

`hybrid tools check depth` prints them; `check_once(tool, backend, version, device, folder)` raises for weights that
fail one and remembers those that pass under `home()/checked`, so that a set of weights costs this once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import ToolError, WeightsError, is_out_of_memory
from hybrid.images import home, write_atomic
from hybrid.serving.cache import key_of
from hybrid.serving.sources import code_of
from hybrid.tool import Backend, KnownAnswer, Request, Tool
from hybrid.types import Fault
from hybrid.weights import weights_sha256


@dataclass(frozen=True)
class Checked:
    """One known answer: its name, what is wrong (None: nothing), and the seconds of the backend's work.

    `unasked` says why these weights do not take the question (a checkpoint that only takes words): nothing is wrong.
    """

    name: str
    wrong: str | None
    seconds: float
    unasked: str | None = None


def run_checks(tool: Tool, backend: Backend[Any]) -> list[Checked]:
    """Put every known-answer image of a tool to a backend that is set up. What it raises is what is wrong with it.

    Raises:
        Exception: the device's own error when its memory does not suffice, which says nothing about the weights.
    """
    import cv2

    cv2.setNumThreads(1)
    return [_run(tool, backend, known) for known in tool.checks]


def check_once(tool: Tool, backend: Backend[Any], version: str, device: str, weights: Path | None) -> None:
    """Check learned weights, unless the same code has passed the same checks with them on this kind of device before.

    Args:
        tool: whose checks are run.
        backend: that of the weights, set up.
        version: of the backend, as findings say it.
        device: `cpu` or `cuda:0`; only its kind counts.
        weights: the directory they were loaded from; None where the backend has none of its own.

    Raises:
        WeightsError: the first checks that failed, by name, and what was wrong.
    """
    if not tool.checks:
        return
    names = [known.name for known in tool.checks]
    digest = _fingerprint(weights) if weights is not None else ""
    kind = device.split(":", maxsplit=1)[0]
    passed = home() / "checked" / f"{key_of(tool.card.name, code_of(tool), version, digest, kind, names)}.json"
    if passed.is_file():
        return
    found = run_checks(tool, backend)
    failed = [f"{one.name}: {one.wrong}" for one in found if one.wrong is not None]
    if failed:
        raise WeightsError(
            f"{tool.card.name}: the weights {weights or version} fail {len(failed)} of {len(found)} known answers "
            f"({'; '.join(failed)}); `hybrid tools check {tool.card.name}` shows each"
        )
    facts = {"tool": tool.card.name, "version": version, "content_sha256": digest, "device": kind, "passed": names}
    write_atomic(passed, json.dumps(facts, indent=1).encode())


def _fingerprint(folder: Path) -> str:
    """One hash over weights and configuration: a wrong normalisation is in a JSON file next to the weights."""
    total = hashlib.sha256(weights_sha256(folder).encode())
    for path in sorted(folder.rglob("*.json")):
        total.update(f"{path.relative_to(folder).as_posix()}\x1f".encode() + path.read_bytes() + b"\x1e")
    return total.hexdigest()


def failures(found: Sequence[Checked]) -> int:
    """How many known answers were missed."""
    return sum(one.wrong is not None for one in found)


def _run(tool: Tool, backend: Backend[Any], known: KnownAnswer) -> Checked:
    posed = known.pose()
    request = Request(posed.images, tool.args.model_validate(posed.args))
    start = time.perf_counter()
    try:
        (evidence,) = backend.run([request])
    except Exception as error:
        # Whatever a wrong network makes of an easy image is the result of its check; a full device is no result.
        if is_out_of_memory(error):
            raise
        seconds = time.perf_counter() - start
        if isinstance(error, ToolError) and error.fault is Fault.BAD_ARGUMENTS:
            return Checked(known.name, None, seconds, str(error))
        return Checked(known.name, f"{type(error).__name__}: {str(error)[:200]}", seconds)
    return Checked(known.name, posed.wrong(evidence), time.perf_counter() - start)
