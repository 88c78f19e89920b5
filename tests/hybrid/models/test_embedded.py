import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.messages import Message, ToolMessage, user_message
from hybrid.models import CallKey
from hybrid.models._scripted import answer, favoured, kind_of, options
from hybrid.models.embedded import EmbeddedModel
from hybrid.prompts import FORMAT_LINES, Wording
from hybrid.tool import Args, Card, Tool
from hybrid.types import ImageRef, Kind, Prompt

SELECT = "Select from the following choices."
JIGSAW = f"Which image is the missing lower right corner?\n{SELECT}\n(A) the second image\n(B) the third image"
DEPTH = f"Which point is closer to the camera?\n{SELECT}\n(A) A is closer\n(B) B is closer"
LINE = FORMAT_LINES[Kind.CHOICE]


class NoArgs(Args):
    trim_px: int = 0


def tool(name: str, most: int = 1, fewest: int = 1) -> Tool:
    return Tool(Card(name, "", "", backends=(), images=(fewest, most)), NoArgs)


async def say(messages: list[Message], tools: tuple[Tool, ...] = (), question: str = "q") -> Any:
    return await EmbeddedModel().chat(messages, tools, CallKey(question))


async def test_it_calls_the_tool_that_fits_and_believes_its_finding(image: Callable[..., ImageRef]) -> None:
    opening = user_message([JIGSAW, image("img:1", 1), image("img:2", 2), image("img:3", 3), LINE])
    tools = (tool("depth"), tool("jigsaw", most=3, fewest=3))
    reply = await say([opening], tools)
    assert [(call.name, call.args) for call in reply.calls] == [("jigsaw", {"images": ["img:1", "img:2", "img:3"]})]
    for finding, letter in {"favours (B), margin 0.4": "B", "The second image fits best: 3 of 3.": "A"}.items():
        result = ToolMessage(reply.calls[0].id, "jigsaw", (finding,))
        final = await say([opening, reply, result], tools)
        assert not final.calls
        assert final.text.endswith(f"Answer: ({letter})")


async def test_no_call_that_cannot_be_made(image: Callable[..., ImageRef], crop_tool: Tool) -> None:
    opening = user_message([JIGSAW, image("img:1", 1)])
    assert not (await say([opening], (tool("jigsaw", most=3, fewest=3),))).calls
    assert not (await say([user_message(["Read the small text.", image("img:1", 1)])], (crop_tool,))).calls
    assert not (await say([user_message(["What is this?", image("img:1", 1)])], (tool("depth"),))).calls
    assert (await say([user_message(["Use colour names.", image("img:1", 1)])], (tool("colour_names"),))).calls


async def test_a_failed_tool_is_not_a_finding(image: Callable[..., ImageRef]) -> None:
    opening = user_message([DEPTH, image("img:1", 1)])
    failed = ToolMessage("c", "depth", ("B is nearer",), failed=True)
    replies = {(await say([opening, failed], (tool("depth"),), f"q{n}")).text for n in range(20)}
    assert replies == {"A", "B"}


async def test_the_same_question_gets_the_same_guess_and_others_do_not() -> None:
    first = [(await say([user_message([DEPTH])], question=f"q{n}")).text for n in range(40)]
    again = [(await say([user_message([DEPTH])], question=f"q{n}")).text for n in range(40)]
    assert first == again
    assert len(set(first)) == 2


async def test_it_says_that_it_is_a_stand_in() -> None:
    model = EmbeddedModel()
    assert model.facts()["stand_in"] is True
    reply = await say([user_message([DEPTH])])
    assert reply.usage.input_tokens > 0
    await model.close()


FORMS = {
    Kind.CHOICE: r"Answer: \([AB]\)$",
    Kind.YES_NO: r"^Answer: (yes|no)$",
    Kind.INTEGER: r"^Answer: \d+$",
    Kind.ORDER: r"^Answer: (AB|BA)$",
    Kind.SCANPATH: r"^X = \[[0-9., ]+\]\nY = \[[0-9., ]+\]\nT = \[[0-9, ]+\]$",
    Kind.VIEWS: r"^Answer: \d(, \d)*$",
    Kind.CONTINUE: r"^(yes|no)$",
}


@pytest.mark.parametrize("kind", FORMS)
async def test_every_form_is_followed(kind: Kind) -> None:
    prompt = Prompt((f"Look.\n{DEPTH}",), kind)
    reply = await say([user_message((*prompt.parts, *Wording().closing(prompt)))])
    assert re.search(FORMS[kind], reply.text), reply.text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (DEPTH, "[AB]"),
        ("Is the cat asleep? Please answer yes or no.", "yes|no"),
        ("How many things catch the eye?", r"\d"),
        ("Choose parts out of 1, 2, 3 and 4. Give the numbers only.", r"\d(, \d)*"),
        ("[Example Output] X = [0.5] Y = [0.5] T = [200]. Write 2 fixations.", r"X = \[.*\]\nY = \[.*\]\nT = \[.*\]"),
        ('Options: A. x; B. y\nWrite a JSON object with "keep".', r'\{"keep": "\d"\}'),
        ("Describe the picture.", "I cannot say more than the question does."),
    ],
)
async def test_without_our_line_the_answer_is_bare(text: str, form: str) -> None:
    assert re.fullmatch(form, (await say([user_message([text])])).text)


async def test_a_view_plan_is_json_with_the_keys_asked_for() -> None:
    text = 'Give {"keep": [numbers], "shift": [numbers]} of the 4 parts.'
    reply = await say([user_message((text, *Wording().closing(Prompt((text,), Kind.VIEW_PLAN))))])
    assert set(json.loads(reply.text)) == {"keep", "shift"}


@pytest.mark.parametrize(
    ("finding", "letter"),
    [
        ("A is nearer than B.", "A"),
        ("Point B is closer to the camera (0.71 against 0.42).", "B"),
        ("Nearest: B.", "B"),
        ("Image 3 continues the picture best.\nImage 2: step 12.1, image 3: step 4.0.", "C"),
        ("Best match: candidate 2.", "B"),
        ("Candidate 9 is best.", None),
        ("The cue favours the third image.", "C"),
        ("Nothing decides.", None),
        ("favours nothing in particular", None),
    ],
)
def test_which_choice_a_finding_speaks_for(finding: str, letter: str | None) -> None:
    choices = {"A": "the first image", "B": "the second image", "C": "the third image"}
    assert favoured(finding, choices) == letter


def test_an_image_is_known_by_its_number_where_choices_say_so() -> None:
    finding = (
        "Image 3 continues the missing lower-right quarter of image 1 best: 3 of 3 seam measures, margin 0.40 (0..1).\n"
        "Image 2: colour step across the seam 12.1 (lower fits better), correlation 0.41 (higher fits better)."
    )
    assert favoured(finding, options(JIGSAW)) == "B"
    assert favoured("Image 2 is best.", {"A": "red", "B": "blue"}) == "B"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (DEPTH, {"A": "A is closer", "B": "B is closer"}),
        ("Which?\nA. left; B. right", {"A": "left", "B": "right"}),
        ("Which?\nA: left\nB: right.", {"A": "left", "B": "right"}),
        ("Which?", {}),
    ],
)
def test_options_are_read_from_the_text(text: str, found: dict[str, str]) -> None:
    assert options(text) == found


def test_the_form_is_that_of_the_line_else_of_the_text() -> None:
    for kind, line in FORMAT_LINES.items():
        if line:
            assert kind_of(f"Which?\n{line}") is kind
    assert kind_of(DEPTH) is Kind.CHOICE
    assert kind_of("Is it red? Answer yes or no.") is Kind.YES_NO
    assert kind_of("Describe it.") is Kind.FREE


def test_findings_answer_other_forms_too() -> None:
    seed = random.Random(0)
    assert answer(FORMAT_LINES[Kind.INTEGER], ["There are 7 salient objects."], seed) == "Answer: 7"
    assert answer(FORMAT_LINES[Kind.YES_NO], ["Is it there? Yes."], seed) == "Answer: yes"
    order = answer(f"(A) x\n(B) y\n(C) z\n{FORMAT_LINES[Kind.ORDER]}", ["Order: C > A > B."], seed)
    assert order == "Answer: CAB"
    path = "X = [0.1, 0.2]\nY = [0.3, 0.4]\nT = [100, 200]"
    assert answer(FORMAT_LINES[Kind.SCANPATH], [f"Predicted:\n{path}"], seed) == path
    assert answer(f"Give 3 fixations. {FORMAT_LINES[Kind.SCANPATH]}", [], seed).count(",") == 6


@given(st.text(max_size=120), st.lists(st.text(max_size=80), max_size=2), st.sampled_from(list(Kind)))
def test_any_question_gets_a_reply(question: str, findings: list[str], kind: Kind) -> None:
    text = f"{question}\n{FORMAT_LINES[kind]}"
    assert answer(text, findings, random.Random(1)).strip()
