"""A snippet for a model's page on the Hugging Face hub: the `model-index` of its front matter, and the same as a table.

    hybrid export RUN --to model_card -o card.md

The front matter is that of `huggingface_hub.ModelCardData` (https://huggingface.co/docs/hub/model-cards). Every metric
says in its arguments which solver, protocol and settings it belongs to, its 95 % interval, the number of questions and
the hash of the run. A model's index has only what the model was asked for: specialists alone and chance are in the
table below it, as something to read the others against.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.errors import UsageError
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.images import write_atomic
from hybrid.scoring.groups import control
from hybrid.scoring.score import Scored
from hybrid.stats import interval
from hybrid.tables import RENDERERS, Column, Table
from hybrid.types import Metric

TASK = "visual-question-answering"
"""The hub's own word for the kind of task."""
DIGITS = 6
COLUMNS = (
    Column("solver", "left"),
    Column("metric", "left"),
    Column("value"),
    Column("95 % interval"),
    Column("n"),
)


class ModelCard(Exporter):
    """One Markdown file."""

    form = "model_card"
    about = "Markdown with a model-index for a page on the Hugging Face hub; all solvers, the reported metrics"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        del options
        from huggingface_hub import ModelCardData

        found = [(scored, metric) for scored in run.scored for metric in reported(run, scored)]
        if not found:
            raise UsageError(f"{run.folder.path} has no metric to report: no question is finished")
        model = run.identity.get("model")
        name = "hybrid" if model is None else str(model["model"])
        own = [(scored, metric) for scored, metric in found if model is None or run.mllm_of(scored.recorded)]
        if not own:
            raise UsageError(
                f"{run.folder.path}: none of its solvers asks {name}, so that its page has nothing to tell"
            )
        data = ModelCardData(model_name=name, eval_results=[_result(run, scored, metric) for scored, metric in own])
        labels = [f"- {label}" for label in dict.fromkeys(label for scored in run.scored for label in scored.labels)]
        card = run.benchmark.card
        lines = [
            "---",
            data.to_yaml().strip(),
            "---",
            "",
            f"## {card.short_title}, {run.split}",
            "",
            RENDERERS["markdown"](_table(run)).strip(),
            "",
            f"Accuracies are fractions; a reply that cannot be read counts as wrong. Run sha256 `{run.sha256}`.",
            *(["", "This run is labelled:", "", *labels] if labels else []),
        ]
        write_atomic(path, "\n".join(lines).encode() + b"\n")
        return Written((path,))


def reported(run: ExportedRun, scored: Scored) -> Iterator[Metric]:
    """The metrics that the benchmark's tables show, those with a value."""
    shown = run.benchmark.card.reported
    for metric in scored.metrics:
        if metric.value is not None and (not shown or metric.name.startswith(shown)):
            yield metric


def _result(run: ExportedRun, scored: Scored, metric: Metric) -> Any:
    from huggingface_hub import EvalResult

    card = run.benchmark.card
    assert metric.value is not None  # noqa: S101 - `reported` leaves the others out
    return EvalResult(
        task_type=TASK,
        task_name=card.short_title,
        dataset_type=card.name if run.generated else card.hub_id or card.name,
        dataset_name=f"{card.short_title} (generated questions)" if run.generated else card.short_title,
        dataset_split=run.split,
        dataset_args=dict(run.identity.get("settings", {})) or None,
        metric_type=re.sub(r"[^A-Za-z0-9]+", "_", metric.name).casefold(),
        # Results on one data set are one entry of the index, in which only this tells the solvers apart.
        metric_name=f"{metric.name} ({_named(scored)})",
        metric_value=round(metric.value, DIGITS),
        metric_args=_arguments(run, scored, metric),
    )


def _named(scored: Scored) -> str:
    """The solver, and the control that its tools answered by: such a number is no result of the solver."""
    output = control(scored)
    return scored.solver if output is None else f"{scored.solver}, tool output {output}"


def _arguments(run: ExportedRun, scored: Scored, metric: Metric) -> dict[str, Any]:
    ends = interval(metric)
    return {
        "solver": scored.solver,
        "protocol": run.options.parse,
        "tool_output": scored.tool_output,
        "n": metric.n,
        "failed": scored.failed,
        **({"interval_95": [round(ends.low, DIGITS), round(ends.high, DIGITS)]} if ends is not None else {}),
        "run_sha256": run.sha256,
    }


def _table(run: ExportedRun) -> Table:
    rows = []
    for scored in run.scored:
        for metric in reported(run, scored):
            ends = interval(metric)
            between = "" if ends is None else f"{ends.low:.3f} to {ends.high:.3f}"
            rows.append((_named(scored), metric.name, f"{metric.value:.3f}", between, str(metric.n)))
    return Table("", COLUMNS, tuple(rows))


EXPORTER = ModelCard()
