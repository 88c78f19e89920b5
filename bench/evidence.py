"""Measure the cost of reading the steps of a run: findings, and the sections of a comparison that are made of them.

    uv run python -m bench.evidence [--questions 20000] [--json FILE]

The specialist answers generated questions of BLINK and HVSBench with the weight-free tools. Its traces, less what it
concluded from them, stand for those of a controller, under ids of their own until there are enough; its MLLM alone says
the first option. So every question is judged by the rule on recorded findings, as that of a real controller is.

A row is processor time on one core: `s_1000` for 1,000 questions, `ratio` the same next to the smallest run. Where that
stays near 1, the work grows with the questions and no faster.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench._runs import finished
from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import RunConfig, ServiceOptions
from hybrid.log.attempts import attempt_line
from hybrid.log.folder import RunFolder
from hybrid.log.lines import whole_lines
from hybrid.scoring.compare import Comparison, ComparisonOptions, SolverPair, compare
from hybrid.scoring.findings import heard
from hybrid.scoring.runs import score_run
from hybrid.scoring.sections import evidence, tool_use
from hybrid.types import Attempt, Question, Reply

TASKS = {
    "blink": ("Jigsaw", "Relative_Depth", "Relative_Reflectance", "Multi-view_Reasoning"),
    "hvsbench": ("Q1", "Q2", "Q3", "Q6", "Q8", "Q10", "Q11", "Q13"),
}
SIZES = (1_000, 5_000, 20_000)
EACH = 6
"""Questions of each task that are asked."""


@dataclass(frozen=True)
class EvidenceRow:
    """Seconds of processor time: reading and judging all attempts, then both sections from the result."""

    benchmark: str
    questions: int
    bytes: int
    """Of a trace, on average."""
    heard_s: float
    evidence_s: float
    tool_use_s: float

    @property
    def s_1000(self) -> float:
        """Of all three, for 1,000 questions."""
        return (self.heard_s + self.evidence_s + self.tool_use_s) * 1_000 / self.questions


def asked(benchmark: str, out: Path) -> RunFolder:
    """The run that is copied."""
    tasks = TASKS[benchmark]
    config = RunConfig(
        benchmark,
        solvers=("specialist",),
        data="sample",
        tasks=tasks,
        limit=EACH * len(tasks),
        service=ServiceOptions("classical"),
        out=out,
    )
    return finished(config)


def grown(first: RunFolder, out: Path, count: int) -> RunFolder:
    """A run of `count` copied questions with the solvers mllm and controller."""
    folder = RunFolder(out)
    manifest = first.manifest
    identity = {**manifest["identity"], "model": {"model": "bench:copied"}}
    known = {question.id: question for question in first.questions().sound}
    called = {name: _calls_alone(first.recorded("specialist").by_id[name]) for name in known}
    ids = [(name, f"{name}-{number}") for number in range(count // len(known) + 1) for name in known][:count]
    folder.write_manifest({"identity": identity, "solvers": {"mllm": {}, "controller": {}}})
    folder.write_questions(_copies(known, ids))
    for solver in ("mllm", "controller"):
        journal = folder.journal(solver)
        for name, new in ids:
            one = replace(called[name], id=new)
            if solver == "mllm":
                one = _first_option(one)
            journal.append(attempt_line(one))
        journal.close()
    return folder


def _copies(known: dict[str, Question], ids: Sequence[tuple[str, str]]) -> Iterator[Question]:
    return (replace(known[name], id=new, cluster="") for name, new in ids)


def _calls_alone(attempt: Attempt) -> Attempt:
    exchanges = tuple(
        replace(each, reply=replace(each.reply, steps=tuple(s for s in each.reply.steps if s.kind == "tool")))
        for each in attempt.exchanges
    )
    return replace(attempt, exchanges=exchanges)


def _first_option(attempt: Attempt) -> Attempt:
    exchanges = tuple(replace(each, reply=Reply("Answer: (A)")) for each in attempt.exchanges)
    return replace(attempt, exchanges=exchanges)


def measured(benchmark: str, folder: RunFolder) -> EvidenceRow:
    """Measure the cost of the steps of a run."""
    solvers = score_run(folder, ScoreOptions())
    comparison: Comparison = compare(solvers, ComparisonOptions(pairs=(SolverPair("mllm", "controller"),)))
    controller = next(one for one in solvers if one.solver == "controller")
    sizes = [len(line) for line in whole_lines(folder.path / "controller" / "attempts.jsonl")]
    times = [time.process_time()]
    for work in (
        lambda: heard(controller),
        lambda: list(evidence.rows(comparison)),
        lambda: tool_use.rows(comparison),
    ):
        if not work():
            raise SystemExit(f"{folder.path}: nothing was heard")
        times.append(time.process_time())
    spent = [after - before for before, after in itertools.pairwise(times)]
    return EvidenceRow(benchmark, len(sizes), sum(sizes) // len(sizes), spent[0], spent[1], spent[2])


def rows(sizes: Sequence[int], place: Path) -> Iterator[EvidenceRow]:
    """A row for each benchmark and size, the smallest first."""
    for benchmark in TASKS:
        first = asked(benchmark, place / f"{benchmark}-first")
        # Modules are imported before anything is measured.
        measured(benchmark, grown(first, place / f"{benchmark}-warm", 50))
        for size in sorted(sizes):
            yield measured(benchmark, grown(first, place / f"{benchmark}-{size}", size))


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, action="append", help="size of a run; may be given several times")
    parser.add_argument("--json", type=Path, help="also write the rows as JSON")
    options = parser.parse_args()
    smallest: dict[str, float] = {}
    kept = []
    print("benchmark  questions  bytes a trace  heard s  evidence s  tool_use s  s_1000  ratio")
    with tempfile.TemporaryDirectory() as place:
        for row in rows(options.questions or SIZES, Path(place)):
            ratio = row.s_1000 / smallest.setdefault(row.benchmark, row.s_1000)
            print(
                f"{row.benchmark:<9}  {row.questions:>9}  {row.bytes:>13}  {row.heard_s:>7.2f}  {row.evidence_s:>10.2f}"
                f"  {row.tool_use_s:>10.2f}  {row.s_1000:>6.3f}  {ratio:>5.2f}",
                flush=True,
            )
            kept.append({**row.__dict__, "s_1000": row.s_1000, "ratio": ratio})
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
