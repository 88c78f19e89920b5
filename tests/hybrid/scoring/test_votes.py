"""Votes of self-consistency are read from attempts on disk, for solvers whose replies are votes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import AS_PAPERS, Benchmark
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.plugins.registry import load
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.runs import score_run
from hybrid.scoring.sections.sampling import SECTION
from hybrid.scoring.votes import voted_questions

SAID = {1: ("(A)", "(B)", "(A)"), 2: ("(A)", "hm", "(A)"), 3: ("(A)", "(A)", "(A)")}


async def comparison(
    tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch, messages: Mapping[int, Sequence[str]]
) -> Comparison:
    """Return a run of three puzzles by an MLLM with these samples."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    config = RunConfig(
        "blink",
        ("mllm",),
        model="openai:m",
        model_settings=ModelSettings(base_url="http://127.0.0.1:9/v1", temperature=1.0),
        data=str(fakes.blink_folder(tmp_path / "blink", jigsaws=3, spatials=0)),
        service=ServiceOptions("classical"),
        samples=3,
        concurrency=1,
        out=tmp_path / "run",
    )
    run = prepare(config)
    model = fakes.QueueModel([text for number in sorted(messages) for text in messages[number]])
    run = replace(run, resources=replace(run.resources, model=model))
    assert await ask_run(run, lambda *_: None) == ()
    return compare(score_run(run.folder, AS_PAPERS))


async def test_a_solver_whose_replies_did_not_vote_has_no_questions(
    tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await comparison(tmp_path, fakes, monkeypatch, SAID)
    (solver,) = result.solvers
    assert voted_questions(replace(solver, folder=None)) == ()
    # This solver asks several times itself, so its reply need not be the winner of the vote.
    assert voted_questions(replace(solver, recorded="arbiter")) == ()


async def test_a_sample_after_which_a_dialogue_goes_on_otherwise_has_no_verdict(
    tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await comparison(tmp_path, fakes, monkeypatch, SAID)
    (solver,) = result.solvers
    bench: Benchmark = load("hybrid.benchmarks", "blink")

    class AsksAgain(type(bench)):  # type: ignore[misc]
        card = bench.card

        async def dialogue(self, question: Any, ask: Any) -> Any:
            (first,) = await super().dialogue(question, ask)
            if "B" in first.reply.text:
                return (first, *await super().dialogue(question, ask))
            return (first,)

    monkeypatch.setattr("hybrid.benchmarks.blink.BENCHMARK", AsksAgain())
    rows = voted_questions(solver)
    assert [[score is None for score in row.samples] for row in rows] == [
        [False, True, False],
        [False] * 3,
        [False] * 3,
    ]
    (without,) = [row for row in SECTION.rows(result) if row.quantity == "samples without a verdict"]
    assert (without.value, without.ids) == (1, ("val_Jigsaw_1",))
    assert rows[0].single == 1.0
