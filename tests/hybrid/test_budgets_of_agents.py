"""An agent's tokens and calls count towards the costs and budgets of a run, as those of the run's own model do."""

from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.log.folder import RunFolder
from hybrid.solving.agent import Agent
from tests.tables import cases

SAMPLE: dict[str, Any] = {"data": "sample", "task": "Jigsaw", "limit": 4, "concurrency": 1, "out": "run"}
SAID = {"role": "assistant", "content": "Answer: (A)"}
TOLD = {**SAID, "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def finished() -> int:
    return len(RunFolder(Path("run")).finished("agent"))


def cells(section: str) -> dict[tuple[str, str], Any]:
    return {(row.quantity, row.a): row for row in hybrid.compare("run").results if row.section == section}


@pytest.mark.system
def test_calls_without_tokens_are_said_in_the_row_of_their_solver() -> None:
    some = Agent(lambda _: [TOLD, SAID], name="some")
    agents = [Agent(lambda _: [TOLD], name="whole"), some]
    hybrid.run("blink", **SAMPLE, solvers=agents, model_arg={"price": "1/2"})
    outcomes, text = cells("outcomes"), "tokens and USD unknown: 4 of 8 replies came without token counts"
    for quantity, full in (("tokens in", 400.0), ("tokens out", 40.0), ("cost", pytest.approx(480e-6))):
        assert (outcomes[quantity, "whole"].value, outcomes[quantity, "whole"].note) == (full, "")
        assert (outcomes[quantity, "some"].value, outcomes[quantity, "some"].note) == (None, text)
    # A unit that is unknown for one of the solvers is not compared.
    cost = cells("cost")
    assert ("USD per question", "whole") not in cost
    assert (cost["seconds per question", "whole"].note, cost["seconds per question", "some"].note) == ("", text)
    assert text in hybrid.compare("run", only=["outcomes"]).render()


@pytest.mark.system
@pytest.mark.parametrize(*cases(__file__, "test_a_spent_budget_of_the_run_leaves_questions_open"))
def test_a_spent_budget_of_the_run_leaves_questions_open(budget: dict[str, Any], finished_count: int) -> None:
    options = {**SAMPLE, "solvers": Agent(ask_with_price), "model_arg": {"price": "1/2"}}
    hybrid.run("blink", **options, **budget)
    assert finished() == finished_count
    # With a larger budget the run continues.
    hybrid.run("blink", **options)
    assert finished() == 4


def ask_with_price(_: Any) -> list[Any]:
    return [TOLD]


@pytest.mark.system
@pytest.mark.parametrize("limit", [{"max_cost": 100e-6}, {"max_total_tokens": 100}])
def test_a_spent_budget_of_a_question_ends_its_next_ask(limit: dict[str, Any]) -> None:
    # ActiView asks several times: for a view, then for the answer.
    request: dict[str, Any] = {"data": "sample", "task": "counting", "limit": 1, "model_arg": {"price": "1/2"}}
    hybrid.run("actiview", **request, out="run", solvers=Agent(ask_with_price))
    assert max([len(value.exchanges) for value in RunFolder(Path("run")).recorded("agent").by_id.values()]) > 1
    hybrid.run("actiview", **request, **limit, out="limited", solvers=Agent(ask_with_price))
    for item in RunFolder(Path("limited")).recorded("agent").by_id.values():
        outcomes = [exchange.reply.outcome.value for exchange in item.exchanges]
        assert (outcomes[0], {*outcomes[1:]}) == ("answered", {"budget"})
        assert item.exchanges[0].reply.usage.input_tokens == 100
