"""`hybrid plan`: number of questions for a difference, and the difference for a number of questions."""

from pathlib import Path

import numpy as np
import pytest

from bench.sentences import Design, draw_world, write
from tests.finished_runs import Command, Words
from tests.tables import cases


@pytest.mark.system
def test_questions_for_a_difference_and_back_with_what_is_assumed(command: Command) -> None:
    lines = command("plan", "--difference", "0.05").out.splitlines()
    assert lines[0] == "1,254 questions"
    assert lines[1].startswith("only one of the two solvers is right on 0.40 of the questions (assumed")
    assert "(given)" in command("plan", "--difference", "0.05", "--discordant", "0.3").out
    # The printed difference is rounded up, so this number of questions suffices for it.
    difference = command("plan", "--questions", "1901").out.split()[3]
    assert int(command("plan", "--difference", difference).out.split()[0].replace(",", "")) <= 1901


def test_power_and_level_reach_both(command: Command) -> None:
    for words in (("--difference", "0.05"), ("--questions", "500")):
        more = (command("plan", *words, *current).out for current in ((), ("--power", "0.9"), ("--level", "0.01")))
        assert len(set(more)) == 3


@pytest.mark.system
def test_tasks_and_clusters_are_said_and_need_more(command: Command) -> None:
    out = command("plan", "--tasks", "300,150,30", "--cluster", "5", "--discordant", "0.3").out
    assert "mean over 3 tasks: 300, 150, 30\n96 clusters" in out
    assert float(out.split()[3]) > 1.5 * float(
        command("plan", "--questions", "480", "--discordant", "0.3").out.split()[3]
    )


@pytest.mark.system
def test_a_run_tells_its_tasks_and_how_often_tools_change_the_answer(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    design = Design("small", (60, 40), repeat_share=0.9)
    questions, runs = draw_world(design, rng)
    run = write(tmp_path / "run", design, questions, "real", runs["real"], rng)
    differ = sum(runs["real"]["mllm"] != runs["real"]["controller"])
    out = command("plan", str(run)).out
    assert "mean over 2 tasks: 60, 40" in out
    assert f"only one of the two solvers is right on {differ / 100:.2f} of the questions (with tools or without" in out


@pytest.mark.parametrize(*cases(__file__, "test_a_plan_that_cannot_be_made_is_one_line"))
def test_a_plan_that_cannot_be_made_is_one_line(command: Command, words: Words, message: str) -> None:
    result = command("plan", *words, code=2)
    assert message in result.err
    assert "Traceback" not in result.err
