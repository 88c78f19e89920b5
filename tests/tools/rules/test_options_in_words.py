"""The rules about a picture's content: named things, counts, written words, descriptions; refusals and abstentions."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import NoBackend
from hybrid.core.types import Finding, ImageRef, Kind, Outcome, Prompt, StoredImage
from tests.tables import cases
from tests.tools.rules.asking import ask_rules
from tests.tools.specialist_run import specialist_run
from tools._shared.question_words import asked_question, asks_for_text, named_things
from tools.rules import ask_specialists
from tools.rules._shared.options_in_words import refusing, written_choice
from tools.rules.mvp_bench import statement_of

REFUSAL = "Sorry, I can't help with it"
ABSENT = NoBackend("no weights")


def prompt(question: str, choices: tuple[str, ...] = (), route: str = "choice") -> Prompt:
    kind = Kind.YES_NO if route == "yes_no" else Kind.CHOICE
    ref = ImageRef("img:1", StoredImage("0" * 64, 8, 8, "image/png"))
    return Prompt((ref, f"{question}\nChoose one."), kind, choices, route=route)


def counts(**numbers: int) -> Finding:
    return Finding("", {"counts": {name.replace("_", " "): n for name, n in numbers.items()}}, 0.6, "learned", "1")


def fits(best: int, *scores: float, compares: bool = False) -> Finding:
    rows = [{"score_0_1": score, "fits": None if compares else score >= 0.5} for score in scores]
    return Finding("", {"best": best, "scores": rows, "compares": compares}, 0.7, "learned", "1")


async def test_a_named_thing_that_is_not_there_is_refused(fakes: Any) -> None:
    request = prompt("What stands next to the red cube?", ("A tree", REFUSAL, "A dog"))
    specialist_answer, calls = await ask_rules(fakes, request, counts(red_cube=0))
    assert (specialist_answer.letter, specialist_answer.tool, len(calls)) == ("B", "detection", 1)
    without = prompt("What stands next to the red cube?", ("A tree", "A dog"))
    assert (await ask_rules(fakes, without, counts(red_cube=0)))[0] is None


async def test_a_count_is_the_choice_that_states_it(fakes: Any) -> None:
    request = prompt("How many red cars are in the picture?", ("2", "three", REFUSAL))
    assert (await ask_rules(fakes, request, counts(red_car=3)))[0].letter == "B"
    assert (await ask_rules(fakes, request, counts(red_car=5)))[0] is None
    assert (await ask_rules(fakes, request, counts(red_car=0)))[0].letter == "C"


async def test_what_is_written_is_read(fakes: Any) -> None:
    request = prompt("What is written on it?", ("Book Shop", "BAKERY", REFUSAL))
    read = Finding("", {"text": "OLD BAKERY\n1920"}, 0.8, "learned", "1")
    specialist_answer, _ = await ask_rules(fakes, request, read)
    assert (specialist_answer.letter, specialist_answer.tool) == ("B", "ocr")
    unread = Finding("", {"text": "?"}, 0.5, "learned", "1")
    specialist_answer, _ = await ask_rules(fakes, request, unread, fits(0, 0.9, 0.1))
    assert (specialist_answer.letter, specialist_answer.tool) == ("A", "attributes")


@pytest.mark.parametrize(*cases(__file__, "test_an_abstention_says_why"))
async def test_an_abstention_says_why(
    fakes: Any,
    question: tuple[Any, ...],
    findings: tuple[dict[str, Any] | None, ...],
    notes: tuple[tuple[str, str], ...],
) -> None:
    """An abstention states its reason. An output is given as its data; null stands for a tool without weights."""
    item = prompt(*question)
    values = [ABSENT if data is None else Finding("", data, 0.7, "learned", "1") for data in findings]
    ctx = fakes.context_of(item, findings=values)
    assert await ask_specialists(item, ctx) is None
    assert tuple((step.name, step.text) for step in ctx.log.steps if step.kind == "rule") == notes
    assert not ctx.tool.findings


def test_the_one_choice_that_refuses() -> None:
    assert refusing(("A tree", REFUSAL)) == 1
    assert refusing((REFUSAL, "I cannot answer")) is None
    assert refusing(("A tree", "A dog")) is None


@pytest.mark.system
@pytest.mark.parametrize("benchmark", ["mm_sap", "mvp_bench"])
def test_a_run_without_weights_abstains_everywhere(tmp_path: Path, benchmark: str) -> None:
    plan = specialist_run(benchmark, tmp_path, limit=6)
    replies = [exchange.reply for attempt in plan.folder.attempts("specialist") for exchange in attempt.exchanges]
    assert {reply.outcome for reply in replies} == {Outcome.ABSTAINED}


@given(st.text(max_size=120))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(name and name == name.lower() for name in named_things(text))
    assert asks_for_text(text) in (True, False)
    assert (result := statement_of(text)) is None or result[0] != result[1]
    assert (request := asked_question(text)) is None or request
    assert refusing((text, REFUSAL)) in (None, 1)
    assert written_choice((text,), text) in (None, 0)


@pytest.mark.shared_data
def test_most_yes_no_questions_of_the_benchmark_state_something(shared_data: Path) -> None:
    path = shared_data / "mvp_bench" / "data" / "all_questions.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    values = {row["question"].split("\n")[0] for row in rows if row["type"].startswith("y/n")}
    assert sum(statement_of(question) is not None for question in values) > 0.6 * len(values)
