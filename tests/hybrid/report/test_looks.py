"""The page of a question shows the regions of calls, as marks over its picture and in words."""

from typing import Any

from hybrid.core.types import (
    AnnotatedPlace,
    Attempt,
    Box,
    Exchange,
    ImageRef,
    Kind,
    Point,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
)
from hybrid.report.looks import MOST_MARKS, PlacesOfQuestion

PHOTO, SECOND = (StoredImage(f"{number:064x}", 1000, 800, "image/png") for number in (1, 2))


def question(*places: AnnotatedPlace) -> Question:
    return Question("q", "t", (PHOTO, SECOND), "?", Kind.TEXT, evidence=places)


def attempt(*args: Any) -> Attempt:
    steps = tuple(
        Step("tool", "zoom", "", data={"images": ["img:1"], "args": call_args, "data": {}, "confidence": 1.0})
        for call_args in args
    )
    prompt = Prompt(("?", ImageRef("img:1", PHOTO), ImageRef("img:2", SECOND)), Kind.TEXT)
    return Attempt("q", (Exchange(prompt, Reply("", steps=steps)),), 1.0)


def box(x0: int, y0: int, x1: int, y1: int) -> dict[str, Any]:
    return {"box": {"x0": x0, "y0": y0, "x1": x1, "y1": y1}}


def test_marks_of_what_is_to_be_seen_and_where_calls_looked() -> None:
    places = PlacesOfQuestion(question(AnnotatedPlace(Box(10, 10, 40, 40)), AnnotatedPlace(Point(7, 9), 2)))
    assert places.words == "box (10, 10)-(40, 40) in img:1; point (7, 9) in img:2"
    looked = places.looked(
        "controller", attempt(box(0, 0, 50, 50), box(500, 500, 600, 600), {"point": {"x": 30, "y": 30}})
    )
    assert looked == "2 of 3 calls with a region cover an annotated place"
    assert places.looked("other", attempt(box(0, 0, 50, 50))) == "1 of 1 calls with a region covers an annotated place"
    assert places.looked("none", attempt({})) == ""
    marks = places.marks(PHOTO)
    assert [(mark.kind, mark.label) for mark in marks] == [
        ("annotated", "must be seen"),
        ("covering", "controller: zoom"),
        ("elsewhere", "controller: zoom"),
        ("covering", "controller: zoom"),
        ("covering", "other: zoom"),
    ]
    assert [mark.place for mark in marks[:2]] == [(10, 10, 40, 40), (0, 0, 50, 50)]
    assert [mark.place for mark in places.marks(SECOND)] == [(7, 9)]


def test_a_question_without_annotation_has_no_marks() -> None:
    places = PlacesOfQuestion(question())
    assert (places.looked("controller", attempt(box(0, 0, 5, 5))), places.words, places.marks(PHOTO)) == ("", "", ())


def test_hundreds_of_places_are_not_all_drawn() -> None:
    places = PlacesOfQuestion(question(*[AnnotatedPlace(Point(n, n)) for n in range(100)]))
    assert len(places.marks(PHOTO)) == MOST_MARKS
    assert places.words.endswith("; and 40 more")
