"""Sample logs of lmms-eval: `PATH/MODEL/DATE_samples_TASK.jsonl`, one file a task, and `DATE_results.json` beside them.

    hybrid export RUN/mllm --to lmms_eval -o logs
    hybrid score logs/MODEL --benchmark blink --data DIR

The fields are those that `save_results_samples` of lmms-eval 0.7 (`lmms_eval/loggers/evaluation_tracker.py`) leaves in
a line: `doc_id`, `target`, `input`, `filtered_resps` (and no `resps`, which is the same), the hashes, and an entry for
the metric, here `hybrid_acc` with `id`, `sub_task` and `score`. `doc_id` counts the questions of the task in the run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hybrid.exporting._single_replies import SingleReply, single_replies
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.log.files import write_atomic
from hybrid.scoring.score import Scored
from hybrid.types import Json

METRIC = "hybrid_acc"


class LmmsEval(Exporter):
    """A folder of logs."""

    form = "lmms-eval"
    about = "a folder with sample logs (jsonl) and results.json; one solver, one reply a question"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`. Images are in no such log."""
        del options
        solver = run.only(self.form)
        replies = single_replies(run, solver, self.form)
        by_task: dict[str, list[SingleReply]] = {}
        for row in replies.rows:
            by_task.setdefault(_task(run, row.question.task), []).append(row)
        (scored,) = run.scored
        model = run.model_of(solver)
        folder = path / re.sub(r'["<>:/|\\?*\[\]]+', "__", model)
        date = _date(run, solver)
        written = []
        for task, rows in by_task.items():
            file = folder / f"{date}_samples_{task}.jsonl"
            write_atomic(file, b"".join(_line(_sample(row)) for row in rows))
            written.append(file)
        results = folder / f"{date}_results.json"
        summary = _results(run, scored, by_task, model, date)
        write_atomic(results, json.dumps(summary, indent=2, ensure_ascii=False).encode() + b"\n")
        return Written((*written, results), replies.notes)


def _task(run: ExportedRun, task: str) -> str:
    """The name of a task as lmms-eval writes it: `blink_multi_view_reasoning`."""
    return f"{run.benchmark.card.name}_{re.sub(r'[^a-z0-9]+', '_', task.casefold())}"


def _date(run: ExportedRun, solver: str) -> str:
    """When the first question was asked, in UTC and as lmms-eval writes it; 1970 where that was not recorded."""
    started = [
        attempt.started for attempt in run.folder.recorded(solver).without_steps.values() if attempt.started is not None
    ]
    return datetime.fromtimestamp(min(started, default=0.0), UTC).strftime("%Y%m%d_%H%M%S")


def _sample(row: SingleReply) -> Mapping[str, Json]:
    prompt = row.prompt.text
    return {
        "doc_id": row.place,
        "target": row.gold,
        "doc_hash": _sha256(json.dumps([row.question.id, row.question.text, list(row.question.choices)])),
        "prompt_hash": _sha256(prompt),
        "target_hash": _sha256(row.gold),
        METRIC: {"id": row.question.id, "sub_task": row.question.task, "score": row.score.correct},
        "filtered_resps": [row.text],
        "input": prompt,
    }


def _results(
    run: ExportedRun, scored: Scored, by_task: Mapping[str, Sequence[SingleReply]], model: str, date: str
) -> Mapping[str, Json]:
    """The file of aggregated numbers: accuracies by task, and the benchmark's metrics for all."""
    whole = run.benchmark.card.name
    metrics = {f"{metric.name},none": metric.value for metric in scored.metrics}
    accuracies = {task: _mean(rows) for task, rows in by_task.items()}
    counts = {task: {"original": len(rows), "effective": len(rows)} for task, rows in by_task.items()}
    return {
        "results": {
            whole: {"alias": whole, **metrics},
            **{task: {"alias": f" - {task}", f"{METRIC},none": value} for task, value in accuracies.items()},
        },
        "group_subtasks": {whole: list(by_task)},
        "n-samples": counts,
        "config": {
            "model": model,
            "limit": None,
            "seed": run.identity.get("seed"),
            "run_sha256": run.sha256,
            "no_answer": run.options.abstain,
            "conclusion": [sentence.text for sentence in run.conclusion],
        },
        "date": date,
        "model_name": model,
    }


def _mean(rows: Sequence[SingleReply]) -> float | None:
    known = [row.score.correct for row in rows if row.score.correct is not None]
    return sum(known) / len(known) if known else None


def _line(sample: Mapping[str, Json]) -> bytes:
    return json.dumps(sample, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


EXPORTER = LmmsEval()
