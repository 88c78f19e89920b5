"""An ablation is one family of tests, and its text names a tool that was never called."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hybrid.core.types import Question, Reply, Step, Usage
from hybrid.running.ablation import ablation
from hybrid.scoring.ablation import AblatedRun, AblationReport
from hybrid.scoring.reports import score_paths
from hybrid.stats import holm

ANSWERS = {"full": "r" * 24 + "w" * 6, "none": "w" * 30, "without-depth": "w" * 24 + "r" * 6, "without-crop": "r" * 30}
ANSWERS |= {"only-depth": "r" * 20 + "w" * 10, "only-crop": "w" * 28 + "rr"}


def with_call(solver: str, question: Question, reply: Reply) -> Reply:
    del solver, question
    data = {"images": ["img:1"], "args": {}, "data": {"best": 0}, "confidence": 0.5}
    step = Step("tool", "crop", "It is A.", 0.1, None, data)
    return Reply(reply.text, reply.outcome, Usage(tool_calls=1), (step,))


def report(synthetic_runs: Any, path: Path) -> AblationReport:
    runs = []
    for variant in ablation(("depth", "crop"), add_one=True).runs:
        letters = {"controller": {"Jigsaw": ANSWERS[variant.name]}}
        run = synthetic_runs.from_letters(path / variant.name, letters, costing=with_call)
        (scored,) = score_paths([run.path]).solvers
        runs.append(AblatedRun(variant, replace(scored, solver=variant.about)))
    return AblationReport(path, "controller", tuple(runs))


def test_each_table_is_a_family(synthetic_runs: Any, tmp_path: Path) -> None:
    data = report(synthetic_runs, tmp_path)
    heads = [
        row
        for row in data.results
        if (row.quantity, row.metric, row.group) == ("difference", data.metric, "") and row.p is not None
    ]
    assert [row.b for row in heads] == ["no tool", "without depth", "without crop", "without depth", "without crop"]
    for table in (heads[:3], heads[3:]):
        assert [row.p_holm for row in table] == list(holm([row.p or 0.0 for row in table]))


def test_a_tool_that_was_never_called_is_named(synthetic_runs: Any, tmp_path: Path) -> None:
    sentences = report(synthetic_runs, tmp_path).conclusion()
    (depth,) = [line for line in sentences if line.startswith("Without depth")]
    assert depth.endswith(", though full never called it.")
    assert not any("crop" in line and "never called" in line.partition("crop")[2] for line in sentences)
