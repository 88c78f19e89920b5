"""Accuracy of the embedded model alone, with tools, and with blank tools, on questions that it was not trained on.

    uv run python -m bench.embedded [--questions 500] [--seed 1] [--benchmark blink]... [--out DIR] [--json FILE]

The questions are generated for the purpose "sample", which training never uses (`hybrid/samples/seeds.py`). A question
counts as one with a tool if the specialist alone answers most of its task. Intervals are 95 %, for the mean over
questions or the mean of paired differences; no answer counts as a guess.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import _frame
from bench._runs import finished
from hybrid.benchmarks.base import ScoreOptions
from hybrid.cli._progress import Bars
from hybrid.config import ModelSettings, RunConfig, ServiceOptions, ToolOutput
from hybrid.core.types import Fault
from hybrid.scoring.runs import score_run

BENCHMARKS: Final = ("blink", "hvsbench", "mvp_bench", "mm_sap", "actiview")
WELL_FORMED: Final = "well-formed"
MALFORMED: Final = frozenset({Fault.BAD_ARGUMENTS.value, Fault.UNKNOWN_TOOL.value, Fault.UNKNOWN_IMAGE.value})


@dataclass(frozen=True)
class Mean:
    """A mean and half its 95 % interval; None if there are fewer than two values."""

    value: float | None
    half: float | None
    n: int

    def __str__(self) -> str:
        return "-" if self.value is None else f"{self.value:.3f} ±{self.half:.3f}"


# One task or one benchmark: its name, `n`, accuracies, and paired differences as fractions of 1.
TaskRow = dict[str, Any]


def mean(values: Sequence[float]) -> Mean:
    """Return the mean with its interval by the normal approximation."""
    n = len(values)
    if n < 2:
        return Mean(None, None, n)
    middle = sum(values) / n
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / (n - 1))
    return Mean(middle, 1.96 * spread / math.sqrt(n), n)


# Keyed by question id.
Correct = Mapping[str, float]


@dataclass(frozen=True)
class AskedQuestion:
    """The outcome of a run.

    `correct` has the score of each question by solver, and `tasks` the task of each question. `testified` counts the
    specialist's answers by task, and `calls` the well-formed calls and each kind of malformed call.
    """

    correct: Mapping[str, Correct]
    tasks: Mapping[str, str]
    testified: Counter[str]
    calls: Counter[str]


def ask(
    benchmark: str, options: argparse.Namespace, solvers: Sequence[str], output: ToolOutput, out: Path
) -> AskedQuestion:
    """Run the solvers and score them."""
    request = {"data": "sample", "limit": options.questions, "seed": options.seed, "concurrency": 2 * options.batch}
    tools = {"service": ServiceOptions("classical"), "tool_output": output}
    settings = ModelSettings(extra={"batch": options.batch})
    config = RunConfig(
        benchmark, tuple(solvers), model="embedded", **request, **tools, model_settings=settings, out=out
    )
    with Bars() as bars:
        folder = finished(config, bars)
    scored = score_run(folder, ScoreOptions(unanswered="guess"), solvers)
    correct = {item.solver: {s.id: s.correct for s in item.scores if s.correct is not None} for item in scored}
    tasks = {s.id: s.task for entry in scored for s in entry.scores}
    answered = Counter(s.task for value in scored if value.solver == "specialist" for s in value.scores if s.answer)
    calls: Counter[str] = Counter()
    for attempt in folder.recorded("controller").by_id.values():
        for exchange in attempt.exchanges:
            for step in exchange.reply.steps:
                if step.kind == "tool":
                    calls[step.fault if step.fault in MALFORMED else WELL_FORMED] += 1
    return AskedQuestion(correct, tasks, answered, calls)


def rows_of(benchmark: str, real: AskedQuestion, blank: AskedQuestion, shuffled: AskedQuestion) -> list[TaskRow]:
    """Return a row for each task, for all tasks with a tool, and for all questions."""
    counts = Counter(real.tasks.values())
    with_tool = {task for task in counts if real.testified[task] > counts[task] / 2}
    parts = {task: {task} for task in sorted(counts)}
    parts |= {"with a tool": with_tool} if with_tool else {}
    parts |= {"all": set(counts)}
    return [_row(f"{benchmark} {name}", tasks, real, blank, shuffled) for name, tasks in parts.items()]


def _row(name: str, tasks: set[str], real: AskedQuestion, blank: AskedQuestion, shuffled: AskedQuestion) -> TaskRow:
    def of(question: AskedQuestion, solver: str) -> dict[str, float]:
        return {key: value for key, value in question.correct[solver].items() if question.tasks[key] in tasks}

    alone, tools, specialist = of(real, "mllm"), of(real, "controller"), of(real, "specialist")
    empty = of(blank, "controller")
    means = {"chance": of(real, "chance"), "alone": alone, "tools": tools, "specialist": specialist, "blank": empty}
    means["shuffled"] = of(shuffled, "controller")
    pairs = {"gain": (tools, alone), "over_specialist": (tools, specialist), "blank_gain": (empty, alone)}
    return {
        "name": name,
        "n": len(tools),
        **{column: mean(list(values.values())) for column, values in means.items()},
        # Mean paired difference, first minus second solver, over the questions that both have.
        **{
            column: mean([first[key] - second[key] for key in first if key in second])
            for column, (first, second) in pairs.items()
        },
    }


def parser() -> argparse.ArgumentParser:
    """Build the command line: --batch is the number of replies generated at once, --out keeps the runs for reuse."""
    flags = {"--questions": 500, "--seed": 1, "--benchmark": list(BENCHMARKS), "--batch": 16}
    return _frame.parser(__doc__, {**flags, "--out": Path, "--json": Path})


def main() -> None:
    """Print the table."""
    arguments = parser().parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.out or Path(scratch)
        rows: list[TaskRow] = []
        calls: Counter[str] = Counter()
        for benchmark in arguments.benchmark or BENCHMARKS:
            real = ask(benchmark, arguments, ("mllm", "controller", "specialist", "chance"), "real", folder / benchmark)
            blank = ask(benchmark, arguments, ("controller",), "blank", folder / f"{benchmark}-blank")
            foreign = ask(benchmark, arguments, ("controller",), "shuffled", folder / f"{benchmark}-shuffled")
            calls += real.calls
            rows += rows_of(benchmark, real, blank, foreign)
    print(f"{'':38}{'n':>5}" + "".join(f"{column:>17}" for column in list(rows[0])[2:]))
    for row in rows:
        name, n, *cells = row.values()
        print(f"{name:38}{n:>5}" + "".join(f"{cell!s:>17}" for cell in cells))
    total = sum(calls.values())
    print(f"calls of tools: {total}, well-formed {calls[WELL_FORMED] / max(1, total):.1%}; {dict(calls)}")
    _frame.write_json(arguments.json, {"rows": rows, "calls": calls})


if __name__ == "__main__":
    main()
