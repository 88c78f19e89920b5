"""Finished runs: asked from their configuration, or written from known replies.

folder = finished(RunConfig("blink", solvers=("specialist",), data="sample", out=out))
folder = written(out, questions, {"mllm": attempts}, {"tool_output": "blank"})
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from hybrid.config import RunConfig
from hybrid.core.types import Attempt, Json, Question
from hybrid.log.attempts import Unfinished, attempt_line
from hybrid.log.codec import to_json
from hybrid.log.folder import QUESTIONS, RunFolder, attempts_of
from hybrid.running.resolve import prepare
from hybrid.running.run import ProgressCallback, ask_run

# Number of attempts that are appended together.
GROUP = 1_000


def finished(config: RunConfig, progress: ProgressCallback = lambda *_: None) -> RunFolder:
    """Ask every question of a run; return its folder.

    Raises:
        HybridError: the run cannot be prepared, or it stopped.
        SystemExit: a question could not be finished; a table without it would cover other questions.
    """
    plan = prepare(config)
    failures = asyncio.run(ask_run(plan, progress))
    if failures:
        raise SystemExit(f"{failures[0].id}: {failures[0].error}")
    return plan.folder


def write_run(
    path: Path,
    questions: Sequence[Question],
    attempts: Mapping[str, Iterable[Attempt | Unfinished]],
    identity: Mapping[str, Json],
    solvers: Mapping[str, Json] | None = None,
) -> RunFolder:
    """Write a run folder of BLINK val with these attempts by solver, as `hybrid run` would.

    Args:
        path: the folder.
        questions: the questions that were asked.
        attempts: by solver, in the order of the questions.
        identity: parts of the run's identity that differ from the default.
        solvers: the manifest's entry for each solver; empty by default.
    """
    folder = RunFolder(path)
    with folder.locked():
        folder.write_questions(questions)
        for name, attempt in attempts.items():
            journal = folder.journal(name)
            lines = (
                to_json(Unfinished, item) if isinstance(item, Unfinished) else attempt_line(item) for item in attempt
            )
            while group := tuple(islice(lines, GROUP)):
                journal.append(*group)
            journal.close()
        mapping: dict[str, Json] = {
            "benchmark": "blink",
            "split": "val",
            "settings": {},
            "data": {"kind": "folder", "sha256": "a" * 64},
            "model": {"model": "made:up"},
            "protocol": "strict",
            "tool_output": "real",
            "seed": 0,
            **identity,
        }
        output = mapping["tool_output"]
        labels: list[Json] = [] if output == "real" else [f"tool output {output}"]
        parts = (QUESTIONS, *map(attempts_of, attempts))
        files: dict[str, Json] = {part: asdict(folder.measure(part).extent) for part in parts}
        values = dict(solvers or {name: {} for name in attempts})
        folder.write_manifest({"identity": mapping, "labels": labels, "solvers": values, "files": files})
    return folder
