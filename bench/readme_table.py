"""The results table of the README, measured: four published models, live weight-free tools, 209 BLINK val questions.

    uv run python -m bench.readme_table --data ../shared/data
    uv run python -m bench.readme_table --data ../shared/data --by-task    # that of bench/results/by_task.md

DATA holds `blink/` (the official parquet layout) and `blink_outputs/MODEL` (the repository's saved outputs, whose full
texts our own parser reads). No default was chosen on these items (`bench/results/shipped.md`). A question without a
readable answer counts as wrong, as in BLINK's script; for the specialists alone, the table shows accuracy on, and
number of, the questions that they answer. In the table by task, the number after the slash counts no answer as a guess,
if that differs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench._frame import options
from bench._runs import finished
from hybrid.benchmarks.base import ScoreOptions, UnansweredRule, accuracy
from hybrid.config import RunConfig, ServiceOptions
from hybrid.core.types import Metric
from hybrid.display.tables import Column, Table, as_markdown, bounds, signed
from hybrid.display.tables import accuracy as fraction
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.stats import contrast, interval

MODELS = ("GPT4o", "GPT4V", "llava-v1.6-34b", "QwenVLMax")
RULES: tuple[UnansweredRule, ...] = ("wrong", "guess")
SOLVERS = ("mllm", "specialist", "arbiter")
TASKS = ("Jigsaw", "Relative_Depth", "Spatial_Relation")
# No classical specialist answers questions of this task, so a lead there is only a lead over a guess.
SILENT = "Spatial_Relation"


# Keyed by model and solver.
Measured = Mapping[str, Mapping[str, Scored]]


def all_measured(data: Path) -> Measured:
    """Measure the three solvers with each of the four models."""
    return {model: {item.solver: item for item in measure(data, model)} for model in MODELS}


def measure(data: Path, model: str) -> tuple[Scored, ...]:
    """Measure the three solvers on the questions of `data/blink` with the recorded answers of one model."""
    with tempfile.TemporaryDirectory() as folder:
        recorded, service = f"replay:{data / 'blink_outputs' / model}", ServiceOptions("classical")
        out = Path(folder) / "run"
        config = RunConfig("blink", SOLVERS, model=recorded, data=str(data / "blink"), service=service, out=out)
        return tuple(score_run(finished(config), ScoreOptions()))


def cell(scored: Scored, task: str | None) -> str:
    """Format accuracy and interval of a task or of the mean over tasks: unanswered counted as wrong, then as guesses.

    There is no interval if nothing was answered, and no second number if both are the same.
    """
    metric, other = (mean_of(scored, task, rule) for rule in RULES)
    answered = any(score.answer is not None for score in scored.scores if task in (None, score.task))
    text = f"{fraction(metric.value)} {bounds(interval(metric))}" if answered else fraction(metric.value)
    return text if metric.value == other.value else f"{text} / {fraction(other.value)}"


def mean_of(scored: Scored, task: str | None, rule: UnansweredRule = "wrong") -> Metric:
    """Return the accuracy within a task, or the mean of the tasks; `rule` decides how a missing answer counts."""
    scores = [score for score in scored.counted[rule].scores if task in (None, score.task)]
    return accuracy("", scores, macro=task is None)


def where_answered(scored: Scored, task: str | None) -> str:
    """Return the accuracy on the answered questions in a task, or its mean over tasks, and how many are answered."""
    scores = [score for score in scored.scores if task in (None, score.task)]
    answered = [score for score in scores if score.answer is not None]
    return f"{fraction(accuracy('', answered, macro=task is None).value)} ({len(answered)} of {len(scores)})"


def gain(part: Scored, hybrid: Scored, without: str = "") -> str:
    """Return the paired difference of task means, hybrid minus part, and its interval, over all tasks but `without`."""
    values = (
        accuracy("", [score for score in item.counted["wrong"].scores if score.task != without], macro=True)
        for item in (part, hybrid)
    )
    difference = contrast(*values)
    return f"{signed(difference.difference)} {bounds(difference.interval, decimals=3)}"


def table(measured: Measured) -> Table:
    """Return a table by task, with the mean gains.

    The first row is the specialist alone. In the row of a model, each cell is the model alone -> with the specialist.
    """
    places = (*TASKS, None)
    specialist = next(iter(measured.values()))["specialist"]
    alone = tuple(where_answered(specialist, place) for place in places)
    rows = [("the specialists alone, where they answer", *alone, "", "")]
    for model, solvers in measured.items():
        pair = (solvers["mllm"], solvers["arbiter"])
        cells = (" → ".join(fraction(mean_of(item, place).value) for item in pair) for place in places)
        gains = (gain(solvers["mllm"], solvers["arbiter"]), gain(solvers["specialist"], solvers["arbiter"], SILENT))
        rows.append((model, *cells, *gains))
    heads = ("mean of the three", "over the MLLM alone", "over the specialists, where they answer")
    return Table("", (Column("", "left"), *(Column(name) for name in (*TASKS, *heads))), tuple(rows))


def by_task(measured: Measured) -> Table:
    """Return a row for each model and task."""
    rows = [
        (model, task or "mean of the three", *(cell(solvers[name], task) for name in SOLVERS))
        for model, solvers in measured.items()
        for task in (*TASKS, None)
    ]
    columns = (Column("recorded MLLM", "left"), Column("task", "left"), *(Column(name) for name in SOLVERS))
    return Table("", columns, tuple(rows))


def main() -> None:
    """Print a table as Markdown."""
    # --by-task: a row for each model and task, with intervals.
    flags = options(__doc__, {"--data": ..., "--by-task": False})
    measured = all_measured(flags.data)
    print(as_markdown(by_task(measured) if flags.by_task else table(measured)), end="")


if __name__ == "__main__":
    main()
