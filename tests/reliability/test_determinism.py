"""The same inputs, seed and model give the same scores, byte for byte, however many questions are in flight."""

from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer
from runs import CONTROLLER, Files, Questions, words

from tests.finished_runs import Command

pytestmark = pytest.mark.system

COUNT = 40


def test_a_recorded_model_gives_the_same_scores_in_every_run(
    tmp_path: Path, fakes: Any, hybrid: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fakes.blink_folder(tmp_path / "data", 8, 8)
    text = fakes.blink_replies(8, 8)
    replies = {name: f"Answer: ({'AB'[place % 2]})" for place, name in enumerate(text)}
    model = fakes.recordings(tmp_path / "model", {**replies, "val_Jigsaw_3": "I cannot tell.", "val_Jigsaw_4": ""})
    solvers = ("arbiter", "mllm", "specialist", "chance")
    values = ["--data", data, "--model", f"replay:{model}", "--backend", "classical", "--json"]
    values += [word for solver in solvers for word in ("--solver", solver)]
    results = []
    for place, in_flight in enumerate((1, 64, 64)):
        # Each run computes its own tool outputs.
        monkeypatch.setenv("HYBRID_HOME", str(tmp_path / f"home-{place}"))
        out = tmp_path / f"run-{place}"
        result = hybrid("run", "blink", *values, "--concurrency", in_flight, "--out", out, code=0)
        results.append((result.out.replace(str(out), "RUN"), *(Files(out, solver).scores for solver in solvers)))
    assert results[0] == results[1] == results[2]


def test_a_served_model_gives_the_same_scores_in_every_run(
    tmp_path: Path, questions: Questions, hybrid: Command
) -> None:
    seen = set()
    with FaultyServer() as server:
        for in_flight in (1, 64):
            run = Files(tmp_path / f"run-{in_flight}", "controller")
            arguments = words(
                questions(COUNT), server.url, run.path, *CONTROLLER, "--concurrency", in_flight, "--no-cache"
            )
            assert hybrid(*arguments).code == 0
            seen.add(run.scores)
    assert len(seen) == 1
