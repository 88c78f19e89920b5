"""The results table of the README, measured: four published models, live weight-free tools, 209 BLINK val questions.

    uv run python -m bench.readme_table --data ../shared/data

DATA holds `blink/` (the official parquet layout) and `blink_outputs/MODEL` (the repository's saved outputs, of which
the full texts are read by our own parser). A question without a readable answer, an abstention of the specialist or a
reply of the model that nobody can read, counts as a guess; after the stroke as wrong, where that is another number.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench._runs import finished
from hybrid.benchmarks.base import Abstain, ScoreOptions, accuracy
from hybrid.running.config import RunConfig
from hybrid.scoring.score import Scored, score_run
from hybrid.serving.service import ServiceOptions
from hybrid.stats import interval
from hybrid.tables import Column, Table, as_markdown, bounds
from hybrid.tables import accuracy as fraction

MODELS = ("GPT4o", "GPT4V", "llava-v1.6-34b", "QwenVLMax")
RULES: tuple[Abstain, ...] = ("chance", "wrong")
SOLVERS = ("mllm", "specialist", "arbiter")
TASKS = ("Jigsaw", "Relative_Depth", "Spatial_Relation")


def measure(data: Path, model: str) -> tuple[Scored, ...]:
    """The three solvers on the questions of `data/blink` with the recorded answers of one model."""
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(
            "blink",
            solvers=SOLVERS,
            model=f"replay:{data / 'blink_outputs' / model}",
            data=str(data / "blink"),
            service=ServiceOptions("classical"),
            out=Path(folder) / "run",
        )
        return score_run(finished(config), ScoreOptions(abstain="chance"))


def cell(scored: Scored, task: str | None) -> str:
    """Accuracy and interval within a task, or the mean of the tasks, with no answer as a guess; then as wrong.

    There is no interval where nothing was answered, and no second number where it is the same.
    """
    chosen, wrong = ([score for score in scored.counted[rule].scores if task in (None, score.task)] for rule in RULES)
    metric, other = (accuracy("", scores, macro=task is None) for scores in (chosen, wrong))
    answered = any(score.answer is not None for score in chosen)
    shown = f"{fraction(metric.value)} {bounds(interval(metric))}" if answered else fraction(metric.value)
    return shown if metric.value == other.value else f"{shown} / {fraction(other.value)}"


def table(data: Path) -> Table:
    """A row for each model and task."""
    rows = []
    for model in MODELS:
        solvers = {one.solver: one for one in measure(data, model)}
        for task in (*TASKS, None):
            cells = [cell(solvers[name], task) for name in SOLVERS]
            rows.append((model, task or "mean of the three", *cells))
    columns = (Column("recorded MLLM", "left"), Column("task", "left"), *(Column(name) for name in SOLVERS))
    return Table("", columns, tuple(rows))


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    print(as_markdown(table(parser.parse_args().data)), end="")


if __name__ == "__main__":
    main()
