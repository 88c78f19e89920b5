"""Every rule with the wording of the question of its route.

The prompts are those that the papers print (BLINK, figures 9 to 19; HVSBench, sections 3 and C; ActiView, appendix) or
that are in the data (MVP-Bench, all_questions.json). The tool outputs are invented and never symmetric: a rule that
confuses the lowest with the highest, a position with the next one, or left with right answers another letter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.hvsbench.question_text import options
from hybrid.benchmarks.hvsbench.question_text import prompt_facts as facts_of
from hybrid.core.types import Finding, ImageRef, Json, Kind, Prompt, StoredImage
from tests.tables import cases
from tools.rules import ask_specialists as ask_rules


@dataclass(frozen=True)
class Case:
    """A question of a BLINK task, a tool output, and the letter that is right for this output."""

    route: str
    text: str
    choices: tuple[str, ...]
    images: int
    tool: str
    args: Mapping[str, Json]
    data: Mapping[str, Json]
    letter: str | None


CASES = [Case(*row) for row in cases(__file__, "cases", list, choices=tuple)[1]]


def image_refs(count: int) -> tuple[ImageRef, ...]:
    return tuple(
        ImageRef(f"img:{place}", StoredImage("0" * 64, 400, 200, "image/png")) for place in range(1, count + 1)
    )


def blink(case: Case, choices: tuple[str, ...]) -> Prompt:
    letters = "\n".join(f"({letter}) {choice}" for letter, choice in zip("ABCD", choices, strict=False))
    text = f"{case.text}\nSelect from the following choices.\n{letters}"
    return Prompt((text, *image_refs(case.images)), Kind.CHOICE, choices, route=case.route)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route}-{case.letter}")
async def test_the_answer_to_the_question_as_it_is_worded(fakes: Any, case: Case, is_turned: bool) -> None:
    """Every rule gives the right answer, also with the choices in reverse order: the words of a choice decide, not its
    position."""
    choices = case.choices[::-1] if is_turned else case.choices
    request = blink(case, choices)
    ctx = fakes.context_of(request, findings=[Finding("", case.data, 0.7, "learned", "1")])
    text = await ask_rules(request, ctx)
    ((tool, images, args),) = ctx.tool.calls
    assert (tool, images) == (case.tool, tuple(f"img:{place}" for place in range(1, case.images + 1)))
    assert {**args, **_sorted(args)} == {**case.args, **_sorted(case.args)}
    expected = None if case.letter is None else case.choices["ABCD".index(case.letter)]
    assert (None if text is None else choices["ABCD".index(text.letter)]) == expected


def _sorted(args: Mapping[str, Any]) -> dict[str, Json]:
    return {"labels": sorted(args["labels"])} if "labels" in args else {}


def boxes_in_order(*labels: int) -> Finding:
    """Return boxes of these labels from the most to the least salient."""
    rows: list[Json] = [
        {"label": str(label), "saliency_0_1": 1 - 0.3 * rank, "box_px": [0, 90 + rank, 9, 95 + rank]}
        for rank, label in enumerate(labels)
    ]
    return Finding("", {"objects": rows}, 0.8, "classical", "1")


def gaze(route: str, kind: Kind, text: str) -> Prompt:
    choices = () if kind in (Kind.INTEGER, Kind.SCANPATH) else options(text)
    return Prompt((text, *image_refs(1)), kind, choices, given=facts_of(route, text, (400, 200), "xyxy"), route=route)


SEARCH = (
    "[Requirement] Predict eye fixation points for searching for a sink in the provided image. Output the fixation "
    "points as three separate lists, each containing 6 values."
)
FREE = SEARCH.replace("searching for a sink in", "free-viewing of")


@pytest.mark.parametrize(*cases(__file__, "test_where_people_look", list, kind=Kind))
async def test_where_people_look(
    fakes: Any, route: str, kind: Kind, text: str, findings: list[Any], expected: Any
) -> None:
    """Rules about gaze give the expected answer. A tool output is given as the order of its boxes, or as its data."""
    request = gaze(route, kind, text)
    values = [
        boxes_in_order(*finding) if isinstance(finding, list) else Finding("", finding, 0.5, "c", "1")
        for finding in findings
    ]
    message = await ask_rules(request, fakes.context_of(request, findings=values))
    assert parse(message.answer, kind, request.choices).value == expected


async def test_the_more_salient_of_two_named_objects(fakes: Any) -> None:
    text = (
        "Between these two objects — [A] the person on the left side [B] the bicycle on the right side — please select "
        "the option representing the more salient object."
    )
    request = gaze("Q5", Kind.CHOICE, text)
    names = ["person on the left side", "bicycle on the right side"]
    rows: list[Json] = [
        {"name": name, "score_0_1": 0.9, "box_px": [20 * place, 0, 20 * place + 9, 9]}
        for place, name in enumerate(names)
    ]
    ctx = fakes.context_of(request, findings=[Finding("", {"boxes": rows}, 0.7, "learned", "1"), boxes_in_order(1, 0)])
    assert (await ask_rules(request, ctx)).letter == "B"
    assert ctx.tool.calls[0][2] == {"names": names}


@pytest.mark.parametrize(("route", "text", "target"), [("Q9", FREE, None), ("Q12", SEARCH, "sink")])
async def test_a_scanpath_of_as_many_fixations(fakes: Any, route: str, text: str, target: str | None) -> None:
    request = gaze(route, Kind.SCANPATH, text)
    data: dict[str, Json] = {"x_0_1": [0.5, 0.25], "y_0_1": [0.4, 0.75], "t_ms": [200, 310]}
    ctx = fakes.context_of(request, findings=[Finding("", data, 0.4, "classical", "1")])
    read: Any = parse((await ask_rules(request, ctx)).answer, Kind.SCANPATH).value
    assert (read.x, read.y, read.t_ms) == ((0.5, 0.25), (0.4, 0.75), (200, 310))
    assert ctx.tool.calls[0][2] == {"fixations": 6} | ({} if target is None else {"target": target})


@pytest.mark.parametrize(("seen", "word"), [(True, "no"), (False, "yes")])
async def test_whether_more_has_to_be_seen(fakes: Any, seen: bool, word: str) -> None:
    text = "The question about the whole picture is: Where is the umbrella?\nDo you need to see more of the picture?"
    request = Prompt((*image_refs(1), text), Kind.CONTINUE, (), route=Kind.CONTINUE)
    rows: list[Json] = [{"name": "umbrella", "score_0_1": 0.9, "box_px": [0, 0, 9, 9]}] if seen else []
    ctx = fakes.context_of(request, findings=[Finding("", {"boxes": rows}, 0.7, "learned", "1")])
    assert (await ask_rules(request, ctx)).answer == word
