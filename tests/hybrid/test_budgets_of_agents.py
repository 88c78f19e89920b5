"""An agent's tokens and calls count towards the costs and budgets of a run, as those of the run's own model do."""

from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.solving.agent import Agent

SAMPLE: dict[str, Any] = {"data": "sample", "task": "Jigsaw", "limit": 4, "concurrency": 1, "out": "run"}
SAID = {"role": "assistant", "content": "Answer: (A)"}
TOLD = {**SAID, "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cells(section: str) -> dict[tuple[str, str], Any]:
    return {(row.quantity, row.a): row for row in hybrid.compare("run").results if row.section == section}


def test_calls_without_tokens_are_said_in_the_row_of_their_solver() -> None:
    some = Agent(lambda _: [TOLD, SAID], name="some")
    agents = [Agent(lambda _: [TOLD], name="whole"), some]
    hybrid.run("blink", **SAMPLE, solvers=agents, model_arg={"price": "1/2"})
    outcomes, said = cells("outcomes"), "tokens and USD unknown: of 4 of 8 model calls no tokens are told"
    for quantity, whole in (("tokens in", 400.0), ("tokens out", 40.0), ("cost", pytest.approx(480e-6))):
        assert (outcomes[quantity, "whole"].value, outcomes[quantity, "whole"].note) == (whole, "")
        assert (outcomes[quantity, "some"].value, outcomes[quantity, "some"].note) == (None, said)
    # A unit that is not known of all is not compared.
    cost = cells("cost")
    assert ("USD per question", "whole") not in cost
    assert (cost["seconds per question", "whole"].note, cost["seconds per question", "some"].note) == ("", said)
    assert said in hybrid.compare("run", only=["outcomes"]).render()
