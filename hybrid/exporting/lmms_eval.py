"""Sample logs of lmms-eval: `PATH/MODEL/DATE_samples_TASK.jsonl`, one file per task, with `DATE_results.json`.

    hybrid export RUN/mllm --to lmms_eval -o logs
    hybrid score logs/MODEL --benchmark blink --data DIR

A line has the fields that `save_results_samples` of lmms-eval 0.7 writes (`lmms_eval/loggers/evaluation_tracker.py`):
`doc_id`, `target`, `input`, `filtered_resps` (without `resps`, which is equal), the hashes, and an entry for the
metric, here `hybrid_acc` with `id`, `sub_task` and `score`. `doc_id` counts the questions of the task in the run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hybrid.core.files import write_atomic
from hybrid.core.types import Json
from hybrid.exporting._single_replies import SingleReply, single_replies
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written, folder_part
from hybrid.scoring.score import Scored

METRIC = "hybrid_acc"


class LmmsEval(Exporter):
    """A folder of logs."""

    form = "lmms-eval"
    about = "a folder with sample logs (jsonl) and results.json; one solver, one reply per question"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`. Logs of lmms-eval contain no images."""
        del options
        replies, notes = single_replies(run, run.only(self.form), self.form)
        by_task: dict[str, list[SingleReply]] = {}
        for row in replies:
            # lmms-eval writes task names like this: `blink_multi_view_reasoning`.
            task = re.sub(r"[^a-z0-9]+", "_", row.question.task.casefold())
            by_task.setdefault(f"{run.data.name}_{task}", []).append(row)
        (scored,) = run.scored
        date = datetime.fromtimestamp(run.began(scored), UTC).strftime("%Y%m%d_%H%M%S")
        # lmms-eval replaces the slash of a name by two underscores.
        folder = path / folder_part(run.model_of(scored), "__")
        files: dict[Path, str] = {}
        for task, rows in by_task.items():
            samples = [
                {
                    "doc_id": row.place,
                    "target": row.gold,
                    "doc_hash": _sha256(json.dumps([row.question.id, row.question.text, list(row.question.choices)])),
                    "prompt_hash": _sha256(row.prompt.text),
                    "target_hash": _sha256(row.gold),
                    # lmms-eval compares samples by the first number under a key such as `score`, or by full replies
                    # without such a key.
                    "score": row.score.correct,
                    METRIC: {
                        "id": row.question.id,
                        "sub_task": row.question.task,
                        "score": row.score.correct,
                        "cluster": row.question.unit,
                    },
                    "filtered_resps": [row.text],
                    "input": row.prompt.text,
                }
                for row in rows
            ]
            lines = [json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples]
            files[folder / f"{date}_samples_{task}.jsonl"] = "".join(lines)
        summary = _results(run, scored, by_task, date)
        files[folder / f"{date}_results.json"] = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
        for file, text in files.items():
            write_atomic(file, text.encode("utf-8", "replace"))
        return Written(tuple(files), notes)


def _results(
    run: ExportedRun, scored: Scored, by_task: Mapping[str, Sequence[SingleReply]], date: str
) -> Mapping[str, Json]:
    """Return the aggregated numbers: the benchmark's metrics overall, and the accuracy of each task."""
    group_name, model = run.data.name, run.model_of(scored)
    metrics = {f"{metric.name},none": metric.value for metric in scored.metrics}
    results: dict[str, Json] = {group_name: {"alias": group_name, **metrics}}
    for task, rows in by_task.items():
        verdicts = [row.score.correct for row in rows if row.score.correct is not None]
        results[task] = {"alias": f" - {task}", f"{METRIC},none": sum(verdicts) / len(verdicts) if verdicts else None}
    return {
        "results": results,
        "group_subtasks": {group_name: list(by_task)},
        "n-samples": {task: {"original": len(rows), "effective": len(rows)} for task, rows in by_task.items()},
        "config": {"model": model, "limit": None, "seed": run.identity.get("seed"), **run.facts},
        "date": date,
        "model_name": model,
    }


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


EXPORTER = LmmsEval()
