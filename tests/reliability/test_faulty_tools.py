"""A tool that hangs, crashes, exits or returns nonsense costs at most its own question, and never the run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_server import FaultyServer
from runs import Files, Process, Questions, number_of, words

from tests.finished_runs import Command
from tests.tool_source import tool_source

# Time limit of a question, after which a hanging tool is stopped: many times what a question takes on a busy
# machine, and less than the 30 s after which a silent worker is killed.
BUDGET_S = "20"
HEAD = """import ctypes
import math
import os
import signal
import sys
import time

import numpy as np


def found(data=None, confidence=0.5, pictures=()):
    return [Evidence("Found.", data or {}, confidence, pictures)]


DOES = {
    "well": found,
    "hang": lambda: time.sleep(10_000),
    "hold": lambda: ctypes.PyDLL(None).sleep(10_000),
    "exit": lambda: sys.exit(0),
    "die": lambda: os._exit(0),
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "memory": lambda: np.zeros(10**15),
    "defect": lambda: 1 / 0,
    "nan": lambda: found(confidence=math.nan),
    "nan data": lambda: found({"depth": math.nan}),
    "number": lambda: 7,
    "nothing": lambda: [],
    "too many": lambda: found() * 3,
    "line": lambda: found(pictures=(Picture(np.zeros(3, np.uint8)),)),
    "floats": lambda: found(pictures=(Picture(np.zeros((4, 4, 3))),)),
    "empty": lambda: found(pictures=(Picture(np.zeros((0, 4, 3), np.uint8)),)),
    "surrogate": lambda: [Evidence("half \\ud800", {"text": "half \\ud800"}, 0.5)],
}
"""
FAULTY = tool_source(
    "faulty", "return [one for request in requests for one in DOES[request.args.do]()]", args="do: str", head=HEAD
)
WITH_THE_TOOL = (
    "-c",
    "import sys, pathlib; from hybrid import cli; from hybrid.plugins import discovery as r; "  # noqa: ISC004
    "r.add_search_path([pathlib.Path(sys.argv.pop(1))], '--path'); cli.main()",
)
HANGING = ("hang", "hold")
# Faults that end a process.
ENDING = ("exit", "die", "crash")
NONSENSE = ("memory", "defect", "nan", "number", "nothing", "too many", "line", "floats", "empty")


WELL = ("well",) * 6
# The tool's behaviour for the questions, in their order.
ONE_BY_ONE = (*WELL, *ENDING, *NONSENSE, "nan data", "surrogate", *WELL, "hang", *WELL)


@pytest.mark.system
@pytest.mark.parametrize(
    ("does", "in_flight"),
    [
        (ONE_BY_ONE, 4),
        # As many calls hang from the start as small machines have cores, with all other calls in flight.
        pytest.param(("hang", "hang", *4 * WELL), 64, marks=pytest.mark.slow),
        # The tool holds the interpreter, so nothing else in its process runs.
        pytest.param((*WELL, "hold", *WELL), 4, marks=pytest.mark.slow),
    ],
)
def test_faulty_tools_cost_no_other_question_and_the_run_ends(
    does: tuple[str, ...],
    in_flight: int,
    tmp_path: Path,
    questions: Questions,
    process: Callable[..., Process],
    hybrid: Command,
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "faulty.py").write_text(FAULTY)

    def call(question: int) -> tuple[str, str]:
        return "faulty", json.dumps({"images": ["img:1"], "do": does[question - 1]})

    run = Files(tmp_path / "run", "controller")
    with FaultyServer(call=call) as server:
        arguments = words(questions(len(does)), server.url, run.path, "--solver", "controller", "--tools", "faulty")
        arguments += ["--concurrency", str(in_flight), "--max-seconds", BUDGET_S]
        running = process([str(tmp_path / "more"), *arguments], program=WITH_THE_TOOL)
        assert running.end() == 0
    attempts = [json.loads(line) for line in run.attempts.read_text().splitlines()]
    assert run.finished() == set(range(1, len(does) + 1))
    replies = {number_of(attempt["id"]): attempt["exchanges"][0]["reply"] for attempt in attempts}
    for number, it in enumerate(does, 1):
        assert replies[number]["outcome"] == ("budget" if it in HANGING else "answered"), it
        if it in (*HANGING, *ENDING, *NONSENSE):
            assert replies[number]["usage"]["tool_faults"] == 1, it
        elif it == "well":
            assert replies[number]["usage"]["tool_faults"] == 0, it
    scored = hybrid("score", run.path, "--json", code=0)
    assert json.loads(scored.out)["outcomes"]["answered"] == len(does) - sum(it in HANGING for it in does)
