"""The rules over what is in a picture: named things, counts, written words, descriptions; refusals and abstentions."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import RunConfig, ServiceOptions
from hybrid.errors import NoBackend
from hybrid.running.resolve import prepare
from hybrid.running.run import execute
from hybrid.types import Finding, ImageRef, Kind, Outcome, Prompt, StoredImage
from tools._shared.question_words import asked_question, asks_for_text, named_things
from tools.rules import ask_specialists as ask_rules
from tools.rules._shared.options_in_words import looked_for, own_sentence, refusing, written_choice
from tools.rules.mvp_bench import statement_of

REFUSAL = "Sorry, I can't help with it"
ABSENT = NoBackend("no weights")


def prompt(question: str, choices: tuple[str, ...] = (), route: str = "choice") -> Prompt:
    kind = Kind.YES_NO if route == "yes_no" else Kind.CHOICE
    shown = ImageRef("img:1", StoredImage("0" * 64, 8, 8, "image/png"))
    return Prompt((shown, f"{question}\nChoose one."), kind, choices, route=route)


def counts(**numbers: int) -> Finding:
    return Finding("", {"counts": {name.replace("_", " "): n for name, n in numbers.items()}}, 0.6, "learned", "1")


def fits(best: int, *scores: float, compares: bool = False) -> Finding:
    rows = [{"score_0_1": score, "fits": None if compares else score >= 0.5} for score in scores]
    return Finding("", {"best": best, "scores": rows, "compares": compares}, 0.7, "learned", "1")


async def said(fakes: Any, asked: Prompt, *findings: Finding | Exception) -> Any:
    ctx = fakes.context_of(asked, findings=list(findings))
    return await ask_rules(asked, ctx), ctx.tool.calls


@pytest.mark.parametrize(("best", "answer"), [(0, "Answer: yes"), (1, "Answer: no"), (2, None), (True, None)])
async def test_a_statement_against_its_denial(fakes: Any, best: Any, answer: str | None) -> None:
    asked = prompt("Is the man sitting on a chair in the image?", route="yes_no")
    specialist_answer, calls = await said(fakes, asked, counts(man=1, chair=1), fits(best, 0.8, 0.2))
    assert (specialist_answer and specialist_answer.answer) == answer
    assert calls[0][2] == {"names": ["man", "chair"]}
    assert calls[1][2]["texts"][0].startswith("the man is sitting on a chair")
    assert calls[1][2]["texts"][1].startswith("the man is not sitting on a chair")


async def test_an_absent_thing_is_no_question_about_it(fakes: Any) -> None:
    asked = prompt("Is the man happy?", route="yes_no")
    assert (await said(fakes, asked, counts(man=0)))[0] is None
    there = prompt("Is there a dog?", route="yes_no")
    assert (await said(fakes, there, counts(dog=0)))[0].answer == "Answer: no"
    assert (await said(fakes, there, counts(dog=2)))[0].answer == "Answer: yes"
    # A detector that does not know the name says nothing about it.
    assert (await said(fakes, there, counts()))[0] is None


async def test_a_question_that_states_nothing_calls_no_tool(fakes: Any) -> None:
    assert await said(fakes, prompt("Does it depict anything?", route="yes_no")) == (None, [])


async def test_a_named_thing_that_is_not_there_is_refused(fakes: Any) -> None:
    asked = prompt("What stands next to the red cube?", ("A tree", REFUSAL, "A dog"))
    specialist_answer, calls = await said(fakes, asked, counts(red_cube=0))
    assert (specialist_answer.letter, specialist_answer.tool, len(calls)) == ("B", "detection", 1)
    without = prompt("What stands next to the red cube?", ("A tree", "A dog"))
    assert (await said(fakes, without, counts(red_cube=0)))[0] is None


async def test_a_count_is_the_choice_that_states_it(fakes: Any) -> None:
    asked = prompt("How many red cars are in the picture?", ("2", "three", REFUSAL))
    assert (await said(fakes, asked, counts(red_car=3)))[0].letter == "B"
    assert (await said(fakes, asked, counts(red_car=5)))[0] is None
    assert (await said(fakes, asked, counts(red_car=0)))[0].letter == "C"


async def test_what_is_written_is_read(fakes: Any) -> None:
    asked = prompt("What is written on it?", ("Book Shop", "BAKERY", REFUSAL))
    read = Finding("", {"text": "OLD BAKERY\n1920"}, 0.8, "learned", "1")
    specialist_answer, _ = await said(fakes, asked, read)
    assert (specialist_answer.letter, specialist_answer.tool) == ("B", "ocr")
    unread = Finding("", {"text": "?"}, 0.5, "learned", "1")
    specialist_answer, _ = await said(fakes, asked, unread, fits(0, 0.9, 0.1))
    assert (specialist_answer.letter, specialist_answer.tool) == ("A", "attributes")


async def test_options_are_compared_without_the_refusal(fakes: Any) -> None:
    asked = prompt("What is it like?", ("Red", REFUSAL, "Blue"))
    specialist_answer, calls = await said(fakes, asked, fits(1, 0.1, 0.9))
    assert specialist_answer.letter == "C"
    assert calls[0][2]["texts"] == ["What is it like? Red", "What is it like? Blue"]
    assert (await said(fakes, asked, fits(1, 0.1, 0.2)))[0].letter == "B"
    assert (await said(fakes, asked, fits(1, 0.1, 0.2, compares=True)))[0].letter == "C"


NO_NAME = ("no name", "the question names no thing to look for")
NO_TEXTS = ("no texts", "the options are not between 2 and 16 different texts")


@pytest.mark.parametrize(
    ("asked", "findings", "notes"),
    [
        (
            prompt("What stands next to the red cube?", ("A tree", "A dog")),
            [counts(red_cube=0)],
            [("refuse", "detection finds no red cube")],
        ),
        (
            prompt("How many red cars are there?", ("2", "three")),
            [counts(red_car=5)],
            [("no count", "no choice, or more than one, states 5 x red car")],
        ),
        (
            prompt("How many of the cars are red?", ("2", "three")),
            [counts(car=5)],
            [("no count", "the question counts some of a kind, which detection by name does not tell apart")],
        ),
        (prompt("How many red cars are there?", ("2", "three")), [ABSENT], [("no backend", "no weights")]),
        (prompt("Why?", ("a",)), [], [NO_NAME, NO_TEXTS]),
        (prompt("Why?", ("a", "a")), [], [NO_NAME, NO_TEXTS]),
        (prompt("Why?", tuple("abcdefghijklmnopq")), [], [NO_NAME, NO_TEXTS]),
        (prompt("Why?", ("a", "b")), [fits(2, 0.1, 0.2)], [NO_NAME]),
        (
            prompt("Does it depict anything?", route="yes_no"),
            [],
            [("no statement", "the question's wording states nothing that could be compared with the image")],
        ),
        (prompt("Is there a dog?", route="yes_no"), [counts()], [("unknown", "detection does not know dog")]),
        (prompt("Is the man happy?", route="yes_no"), [counts(man=0)], [("refuse", "detection finds no man")]),
    ],
)
async def test_an_abstention_says_why(
    fakes: Any, asked: Prompt, findings: list[Finding | Exception], notes: list[tuple[str, str]]
) -> None:
    ctx = fakes.context_of(asked, findings=list(findings))
    assert await ask_rules(asked, ctx) is None
    assert [(step.name, step.text) for step in ctx.log.steps if step.kind == "rule"] == notes
    assert not ctx.tool.findings


@pytest.mark.parametrize(
    ("asked", "findings", "tool", "answer"),
    [
        (prompt("How many red cars are there?", ("2", "three")), [counts(red_car=3)], "detection", "(B)"),
        (prompt("What stands next to the red cube?", ("A", REFUSAL)), [counts(red_cube=0)], "detection", "(B)"),
        (prompt("What is it like?", ("Red", "Blue")), [fits(1, 0.1, 0.9)], "attributes", "(B)"),
        (prompt("Is there a dog?", route="yes_no"), [counts(dog=1)], "detection", "yes"),
        (prompt("Is the man happy?", route="yes_no"), [counts(man=1), fits(1, 0.1, 0.9)], "attributes", "no"),
    ],
)
async def test_an_answer_rests_on_the_last_finding(
    fakes: Any, asked: Prompt, findings: list[Finding], tool: str, answer: str
) -> None:
    found, calls = await said(fakes, asked, *findings)
    assert (found.answer, found.tool, found.on_card) == (f"Answer: {answer}", tool, False)
    assert found.finding is findings[-1]
    assert found.confidence == findings[-1].confidence
    assert {images for _, images, _ in calls} == {("img:1",)}


async def test_sixteen_texts_of_three_hundred_characters_are_compared(fakes: Any) -> None:
    asked = prompt("Why?", (*"abcdefghijklmno", "x" * 400))
    found, calls = await said(fakes, asked, fits(3, *[0.9] * 16))
    assert found.letter == "D"
    assert calls[0][2]["texts"][:2] == ["Why? a", "Why? b"]
    assert calls[0][2]["texts"][15] == "Why? " + "x" * 295
    long = prompt(f"Is the man {'very ' * 80}happy?", route="yes_no")
    _, calls = await said(fakes, long, counts(man=1), fits(0, 0.9, 0.1))
    assert [len(text) for text in calls[1][2]["texts"]] == [300, 300]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Look.\nQuestion: Where is it?\nOptions: A. x", "Where is it?"),
        ("Look.\n  Where is it? \nWhy?", "Where is it?"),
        ("Tell where it is.\nNow.", "Tell where it is.\nNow."),
    ],
)
def test_the_questions_own_sentence(text: str, sentence: str) -> None:
    assert own_sentence(Prompt((text,), Kind.CHOICE)) == sentence


def test_each_thing_is_looked_for_once_and_in_the_singular() -> None:
    assert looked_for("How many red cars are in the picture?") == ["red car"]
    assert looked_for("How many dogs altogether?") == ["dog"]
    assert looked_for("Where are the cups and the dog?") == ["cup", "dog"]
    assert looked_for("Is the dog near the dog?") == ["dog"]
    assert looked_for("Why?") == []


def test_the_one_choice_whose_words_are_read_in_a_row() -> None:
    assert written_choice(("Book Shop", "BAKERY"), "old Bakery, 1920") == 1
    assert written_choice(("Book Shop", "BAKERY"), "book the shop") is None
    assert written_choice(("Book", "Shop"), "book shop") is None
    assert written_choice(("Book", "!"), "bookshop") is None
    assert written_choice(("No 12", "13"), "no. 12") == 0


def test_the_one_choice_that_refuses() -> None:
    assert refusing(("A tree", REFUSAL)) == 1
    assert refusing((REFUSAL, "I cannot answer")) is None
    assert refusing(("A tree", "A dog")) is None


@pytest.mark.parametrize(
    ("question", "statement", "denial"),
    [
        ("Is the man sitting on a chair?", "the man is sitting on a chair", "the man is not sitting on a chair"),
        ("Are there any dogs in it?", "there are any dogs in it", "there are no dogs in it"),
        ("Is there the sun ?", "there is the sun", "there is no sun"),
        (
            "Was the facial expression of the main  subject happy?",
            "the facial expression of the main subject was happy",
            "the facial expression of the main subject was not happy",
        ),
        (
            "So, are the people in the image happy?",
            "the people in the image are happy",
            "the people in the image are not happy",
        ),
    ],
)
def test_a_statement_and_its_denial(question: str, statement: str, denial: str) -> None:
    assert statement_of(question) == (statement, denial)


@pytest.mark.parametrize(
    "question",
    ["What is it?", "Is the man?", "Is the man who runs happy?", "Is the man in black holding a gun?",
     "Is the dining room clean?", "Is the top of the table red?", "Is the dog's tail long?", "Is he happy?",
     "Is the cup of tea hot?", "Is the car parking area full?"],
)  # fmt: skip
def test_what_is_no_statement_about_one_subject(question: str) -> None:
    assert statement_of(question) is None


@pytest.mark.parametrize("route", ["choice", "single", "yes_no"])
async def test_without_weights_every_rule_abstains(fakes: Any, route: str) -> None:
    asked = prompt("Is the sign on the car red?", ("Red", "Blue") if route != "yes_no" else (), route)
    assert (await said(fakes, asked, *[ABSENT] * 3))[0] is None


@pytest.mark.system
@pytest.mark.parametrize("benchmark", ["mm_sap", "mvp_bench"])
def test_a_run_without_weights_abstains_everywhere(tmp_path: Path, benchmark: str) -> None:
    config = RunConfig(
        benchmark,
        solvers=("specialist",),
        data="sample",
        limit=6,
        service=ServiceOptions("classical"),
        out=tmp_path / "run",
    )
    plan = prepare(config)
    assert not asyncio.run(execute(plan, lambda *_: None))
    replies = [exchange.reply for attempt in plan.folder.attempts("specialist") for exchange in attempt.exchanges]
    assert {reply.outcome for reply in replies} == {Outcome.ABSTAINED}


@pytest.mark.parametrize(
    ("question", "things"),
    [
        ("What is the man in the red car holding?", ("man", "red car")),
        ("What colour is the cube in the picture?", ("cube",)),
        ("How many red discs are in the picture?", ("red discs",)),
        ("Who made the small wooden chair?", ("small wooden chair",)),
        ("Why?", ()),
    ],
)
def test_named_things(question: str, things: tuple[str, ...]) -> None:
    assert named_things(question) == things


@given(st.text(max_size=120))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(thing and thing == thing.lower() for thing in named_things(text))
    assert asks_for_text(text) in (True, False)
    assert (found := statement_of(text)) is None or found[0] != found[1]
    assert (asked := asked_question(text)) is None or asked
    assert refusing((text, REFUSAL)) in (None, 1)
    assert written_choice((text,), text) in (None, 0)


def test_the_line_of_a_question() -> None:
    assert asked_question("Look.\nQuestion: Where is it?\nOptions: A. x") == "Where is it?"
    assert asked_question("The question about the whole picture is: Where?\nReply.") == "Where?"
    assert asked_question("Where is it?") is None


@pytest.mark.shared_data
def test_most_yes_no_questions_of_the_benchmark_state_something(shared_data: Path) -> None:
    path = shared_data / "mvp_bench" / "data" / "all_questions.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    asked = {row["question"].split("\n")[0] for row in rows if row["type"].startswith("y/n")}
    assert sum(statement_of(question) is not None for question in asked) > 0.6 * len(asked)
