"""Judges of known behaviour: one reads the replies, one always answers A, and one gives unreadable replies."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.cli.judge import show
from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage
from hybrid.log.folder import RunFolder
from hybrid.scoring.judge import Judged, judge_run
from hybrid.scoring.predicted import import_run
from hybrid.scoring.readings import read_readings
from hybrid.scoring.reports import ScoreReport
from hybrid.scoring.runs import score_run

OPTIONS = ScoreOptions()


@dataclass
class Scripted:
    """A judge whose reply is a function of the reply that it judges."""

    words: Callable[[str], str]
    name: str = "scripted:judge"
    provider: str = "scripted"

    def metadata(self) -> dict[str, Any]:
        return {"model": self.name}

    async def chat(self, messages: Any, tools: Any, call: Any) -> AssistantMessage:
        del tools, call
        return AssistantMessage(self.words(messages[0].text.split("==========\n")[1]))


def reads(reply: str) -> str:
    letter = re.search(r"the (first|second)|\(([AB])\)", reply)
    assert letter is not None
    return f"Answer: ({letter[2] or 'AB'[letter[1] == 'second']})"


def run_of(tmp_path: Path) -> RunFolder:
    """Return a run with forty replies that are parsed and sixty that only a judge can read; every third of these names
    the first choice."""
    texts = [f"I would go for the {'second' if n % 3 else 'first'} of them." for n in range(60)]
    texts += [f"Answer: ({'AB'[n % 4 == 0]})" for n in range(40)]
    rows = [
        {"idx": f"val_Jigsaw_{n}", "answer": "(A)", "full_prediction": text, "prediction": "(Z)"}
        for n, text in enumerate(texts, 1)
    ]
    (tmp_path / "Jigsaw.json").write_text(json.dumps({"val": rows}))
    return import_run(tmp_path / "Jigsaw.json", BENCHMARK, "text", tmp_path / "run")


async def judged_by(folder: RunFolder, words: Callable[[str], str]) -> Judged:
    (judged,) = await judge_run(folder, Scripted(words), (), OPTIONS, 4)
    return judged


async def test_a_judge_that_reads_is_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_of(tmp_path)
    judged = await judged_by(folder, reads)
    assert (judged.unparsed, judged.asked, judged.decided, judged.unreadable) == (60, 80, 60, 0)
    assert (judged.letters, judged.alike, judged.mixed, judged.refused) == ({"A": 20, "B": 40}, 20, 20, False)
    (solver,) = folder.solvers()
    mixed = [reading for reading in read_readings(folder.path / solver / "verdicts.jsonl").values() if reading.known]
    # There are equally many of each answer.
    assert sorted(item.known for item in mixed) == ["A"] * 10 + ["B"] * 10
    (scored,) = score_run(folder, OPTIONS, (), "judge")
    values = {metric.name: metric.value for metric in scored.metrics}
    assert values["accuracy_micro"] == pytest.approx(30 / 100)
    assert values["judged.accuracy_micro"] == pytest.approx(50 / 100)
    show([judged], folder.path, "wide", as_json=False)
    assert "20/20" in capsys.readouterr().out


async def test_a_judge_that_says_a_to_all_is_refused(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    judged = await judged_by(folder, lambda _: "Answer: (A)")
    assert (judged.letters, judged.alike, judged.refused) == ({"A": 60}, 10, True)
    with pytest.raises(UsageError, match="agrees with the parser on 10 of 20 replies"):
        score_run(folder, OPTIONS, (), "judge")


async def test_what_a_judge_says_that_cannot_be_read_is_no_none(tmp_path: Path) -> None:
    judged = await judged_by(run_of(tmp_path), lambda reply: "Answer: none" if "first" in reply else "Hm, hm.")
    assert (judged.decided, judged.none, judged.unreadable, judged.refused) == (0, 20, 40, True)


async def test_a_judged_reading_is_no_second_solver(tmp_path: Path) -> None:
    folder = run_of(tmp_path)
    await judged_by(folder, reads)
    scored = score_run(folder, OPTIONS, (), "judge")
    report = ScoreReport({folder.path: scored}, unanswered="wrong")
    (comparison,) = report.comparisons.values()
    assert [solver.solver for solver in comparison.solvers] == [scored[0].solver, f"{scored[0].solver} + judge"]
    assert comparison.comparison.pairs == ()
    assert "over 100 questions" in str(comparison)
    assert "Of 2 solvers" not in str(comparison)
