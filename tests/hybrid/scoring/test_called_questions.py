"""The share of repetitions in which a tool answered a call."""

from pathlib import Path
from typing import Any

import numpy as np

from hybrid.core.types import Fault, Question, Reply, Step
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.called import call_share

# By repetition, for each question: a call (`c`), a call that ended in a fault (`x`), or none (`-`).
CALLS = {"controller": "ccx--c", "controller@2": "c-cc-c"}


def cost(solver: str, question: Question, reply: Reply) -> Reply:
    call = CALLS[solver][int(question.id.rsplit("_", 1)[1]) - 1]
    fault = {"c": None, "x": Fault.TOOL_ERROR}
    steps = (Step("tool", "jigsaw", "", 0.1, fault[call], {"images": ["img:1"], "args": {}}),) if call in fault else ()
    return Reply(reply.text, reply.outcome, steps=steps)


def test_only_repetitions_with_a_trace_count(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {name: {"Jigsaw": "r" * 6} for name in CALLS}
    run = synthetic_runs.from_letters(tmp_path / "run", letters, costing=cost, puzzles=True)
    comparison = compare_paths([run.path]).comparison
    # The last two lines of the second repetition and the last line of the first are gone.
    for name, gone in (("controller", 1), ("controller@2", 2)):
        path = run.path / name / "attempts.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-gone]))
    ids = [f"val_Jigsaw_{n}" for n in (6, 5, 4, 3, 2, 1)] + ["val_Jigsaw_7"]
    hybrid = comparison.named("controller")
    shares = call_share(comparison, hybrid, ids)
    np.testing.assert_equal(shares, [np.nan, 0.0, 0.5, 0.5, 0.5, 1.0, np.nan])
    first = call_share(comparison, hybrid, ids, repeated=False)
    np.testing.assert_equal(first, [np.nan, 0.0, 0.0, 0.0, 1.0, 1.0, np.nan])
