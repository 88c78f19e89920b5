"""An external tool with its own rule, in every command that uses rules; and a rule that fails in a run."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ServiceOptions
from hybrid.scoring.sections.evidence import CLASSES
from hybrid.serving.described import ProcessDescriber
from tests.finished_runs import Command
from tests.servers import JsonHandler, LocalServer, listening

RULED = '''"""Says that the third image fits."""

import ctypes
import os
import time
from pathlib import Path

from hybrid.tool import Args, BackendCard, Card, Evidence, Tool
from hybrid.tool.rules import asks, choose_matching, image_names, later_image

CHOSEN = Path(__file__).with_name("chosen")


class Backend:
    def setup(self, device, weights):
        """Nothing to load."""

    def run(self, requests):
        return [Evidence("The third image fits.", {"best": 1}, 0.75) for _ in requests]


def chosen(prompt):
    """Whether it is the first question that was asked, now and whenever it is asked again."""
    image = prompt.images[0].image.sha256
    try:
        with CHOSEN.open("x") as file:
            file.write(image)
    except FileExistsError:
        pass
    return CHOSEN.read_text() == image


@asks("ruled")
async def rule(prompt, ctx):
    if chosen(prompt):
        "ILL"
    finding = await ctx.tool("ruled", image_names(prompt), {})
    return choose_matching(prompt, "ruled", finding, later_image(finding, prompt))


CARD = Card(
    name="ruled",
    summary="Says that the third image fits, whatever it shows.",
    limits="Says nothing else.",
    backends=(BackendCard("classical", "1", Backend, "The third image."),),
    images=(1, 3),
)
TOOL = Tool(CARD, Args, rules={"Jigsaw": rule})
'''


@pytest.fixture(autouse=True)
def its_code_is_in_a_process_of_its_own_alone(tools_as_they_were: None) -> Iterator[None]:
    yield
    assert "tools.ruled" not in sys.modules


class Caller(JsonHandler):
    """A model that calls `ruled` if it is offered and then answers (B), and (A) without it."""

    def posted(self, body: bytes) -> None:
        data = json.loads(body)
        matches_any = any(item["function"]["name"] == "ruled" for item in data.get("tools", ()))
        is_any = any(message["role"] == "tool" for message in data["messages"])
        calls = matches_any and not is_any
        message: dict[str, Any] = {"role": "assistant", "content": f"Answer: ({'B' if is_any else 'A'})"}
        if calls:
            call = {"name": "ruled", "arguments": json.dumps({"images": ["img:1", "img:2", "img:3"]})}
            message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        self.answer({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]})


@pytest.fixture
def tool_folder(tmp_path: Path) -> Path:
    """A folder that contains the tool `ruled`."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ruled.py").write_text(RULED)
    return tmp_path / "own"


@pytest.fixture
def run_arguments(tmp_path: Path, tool_folder: Path, fakes: Any) -> Iterator[tuple[object, ...]]:
    """Yield words after `hybrid run` for four puzzles: (A) is right for two, and (B), the tool's answer, for two."""
    rows = [fakes.jigsaw_row(number, answer) for number, answer in enumerate(("(A)", "(A)", "(B)", "(B)"), 1)]
    fakes.write_task(tmp_path / "blink", "Jigsaw", rows)
    with listening(LocalServer(Caller)) as server:
        model = (
            "--model",
            "openai:m",
            "--base-url",
            f"{server.url}/v1",
            "--backend",
            "classical",
            "--path",
            tool_folder,
        )
        yield ("blink", "--data", tmp_path / "blink", "--task", "Jigsaw", *model)


def attempts(run: Path, solver: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / solver / "attempts.jsonl").read_text().splitlines()]


def words_of_faults(rows: list[dict[str, Any]]) -> list[str]:
    """Return the texts of steps about rules that failed."""
    texts = [step["text"] for item in rows for ask in item["steps"] for step in ask if step["kind"] == "rule"]
    return [text for text in texts if "the rule for" in text and " failed: " in text]


ILL = {
    "hangs": ("time.sleep(10000)", ServiceOptions(timeout_s=10.0), "did not answer within 10 s"),
    "holds": ("ctypes.PyDLL(None).sleep(10000)", ServiceOptions(silence_s=10.0), "no sign of life for 10 s"),
    "ends": ("os._exit(4)", ServiceOptions(), "ended its worker process: exit code 4"),
    "grows": (
        "held = b'x' * 700_000_000; time.sleep(10000)",
        ServiceOptions(process_bytes=600_000_000),
        "GB of memory, above the limit of 0.6 GB",
    ),
}


@pytest.mark.system
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ("holds", "grows") else []) for name in ILL]
)
def test_a_rule_that_goes_wrong_costs_its_own_question(
    name: str,
    command: Command,
    run_arguments: tuple[object, ...],
    tool_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an error in a rule, the run continues with the next questions and the other solvers."""
    does, limits, text = ILL[name]
    (tool_folder / "ruled.py").write_text(RULED.replace('"ILL"', does))
    monkeypatch.setattr("hybrid.cli.describer", lambda: ProcessDescriber(limits))
    command("run", *run_arguments, "--solver", "specialist,arbiter,chance", "--out", "run", code=0)
    outcomes = {
        "specialist": ["answered"] * 3 + ["tool_fault"],
        "arbiter": ["answered"] * 4,
        "chance": ["answered"] * 4,
    }
    for solver, expected in outcomes.items():
        built = attempts(tmp_path / "run", solver)
        assert sorted(item["exchanges"][0]["reply"]["outcome"] for item in built) == expected
        faults = words_of_faults(built)
        assert len(faults) == (solver != "chance"), faults
        for fault in faults:
            assert fault.startswith("ruled: the rule for 'Jigsaw' failed: ")
            assert fault.endswith(text)
        steps = [step for entry in built for ask in entry["steps"] for step in ask if step["kind"] == "tool"]
        assert len(steps) == (0 if solver == "chance" else 3)


@pytest.mark.system
def test_its_rule_is_evidence_for_every_solver_and_calibrated(
    command: Command, run_arguments: tuple[object, ...], tool_folder: Path, tmp_path: Path
) -> None:
    path = ("--path", tool_folder)
    result = command(
        "run", *run_arguments, "--solver", "mllm,specialist,verify,controller", "--tools", "ruled", "--out", "run"
    )
    assert result.code == 0, result.err
    compared = command("compare", "run", "--json", *path)
    rows = [row for row in json.loads(compared.out)["results"] if row["section"] == "evidence" and "group" not in row]
    mapping = {(row["b"], row["quantity"]): row["ids"] for row in rows if row["quantity"] in CLASSES and row["value"]}
    own_ids = [f"val_Jigsaw_{number}" for number in range(1, 5)]
    assert mapping == {
        ("verify", "resisted"): own_ids[:2],
        ("verify", "ignored evidence"): own_ids[2:],
        ("controller", "over-trust"): own_ids[:2],
        ("controller", "correct adoption"): own_ids[2:],
    }
    counts = command("calibrate", "run", "-o", "trust.json", "--folds", "2", "--json", *path, code=0)
    assert "ruled" in json.dumps(json.loads(counts.out)["measured"])
    command("run", *run_arguments, "--solver", "arbiter", "--trust", "trust.json", "--out", "trusted", code=0)
    steps = [step for attempt in attempts(tmp_path / "trusted", "arbiter") for ask in attempt["steps"] for step in ask]
    weighed = [step["data"]["tool"] for step in steps if step["kind"] == "rule"]
    # The tool was right for two of four. Each fold counts the other folds, plus two answers at the rate of a guess.
    assert sorted(item["rate"] for item in weighed) == pytest.approx([(1 + 1) / (3 + 2), *[(1 + 1) / (1 + 2)] * 3])
    assert {entry["said"] for entry in weighed} == {None}, "what a rule of thumb says of its own answer is no claim"
