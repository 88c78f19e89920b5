"""Which questions are the same, part by part, and the names under which solvers are compared."""

from dataclasses import replace
from typing import Any

import pytest

from hybrid.scoring.compare import CONTROL, shared_labels, unique
from hybrid.scoring.pairing import Data, unlike
from hybrid.scoring.score import Scored
from hybrid.types import BrokenQuestion, Kind, Question, StoredImage

IMAGE, OTHER = (StoredImage(digit * 64, 4, 4, "image/png") for digit in "ab")
WHOLE = Question("val_1", "Jigsaw", (IMAGE,), "Which  piece Fits?", Kind.CHOICE, ("left", "right"), "(A)")
BARE = replace(WHOLE, images=(), text="", choices=(), target=None)
BROKEN = BrokenQuestion("val_1", "Jigsaw", "no such image")


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, None),
        ({"task": "Counting"}, "task"),
        ({"target": "(B)"}, "target"),
        ({"target": None}, None),
        ({"choices": ("left",)}, "number of choices"),
        ({"choices": ()}, None),
        ({"choices": ("right", "left")}, "choices"),
        ({"choices": ("right", "left"), "text": ""}, None),
        ({"choices": ("", "")}, None),
        ({"text": "which piece fits?"}, None),
        ({"text": "Look closely. Which piece fits? Answer."}, None),
        ({"text": "Which piece is red?"}, "text"),
        ({"images": (OTHER,)}, "images"),
        ({"images": ()}, None),
    ],
)
def test_the_first_part_that_both_know_and_that_differs_is_named(changes: dict[str, Any], part: str | None) -> None:
    other = replace(WHOLE, **changes)
    assert unlike(WHOLE, other) == unlike(other, WHOLE) == part


def test_without_images_of_both_nothing_is_the_same_to_a_strict_reader() -> None:
    assert unlike(WHOLE, WHOLE, strict=True) is None
    assert unlike(WHOLE, BARE) is None
    for a, b in ((WHOLE, BARE), (BARE, WHOLE), (BARE, BARE)):
        assert unlike(a, b, strict=True) == "images, which one side does not tell"


@pytest.mark.parametrize(("a", "b"), [(BROKEN, WHOLE), (WHOLE, BROKEN), (BROKEN, BROKEN)])
def test_a_broken_question_is_known_by_its_task(a: Any, b: Any) -> None:
    assert unlike(a, b) is None
    assert unlike(a, replace(b, task="Counting")) == "task"


def test_predictions_without_a_run_have_neither_facts_nor_settings() -> None:
    assert Data.of_predictions("blink", "val") == Data("blink", "val", {}, {})


def named(*solvers: tuple[str, tuple[str, ...]], origins: tuple[str, ...] = ()) -> list[str]:
    found = [
        Scored("blink", name, {}, "chance", {}, Data("blink", "val", {}, {}), labels=tags) for name, tags in solvers
    ]
    return [one.solver for one in unique(found, origins or ("runs/a",) * len(found))]


BLANK = f"{CONTROL}blank"


def test_labels_that_not_all_share_are_part_of_the_name() -> None:
    assert named(("controller", ()), ("controller", (BLANK,))) == ["controller", "controller [blank]"]
    assert named(("controller", ("x",)), ("controller", (BLANK, "y", "x"))) == ["controller", "controller [blank; y]"]
    assert named(("mllm", (BLANK,)), ("controller", (BLANK,))) == ["mllm", "controller"]


def test_names_that_occur_twice_get_their_origin_and_then_a_number() -> None:
    twice = (("mllm", ()), ("mllm", ()), ("arbiter", ()))
    assert named(*twice, origins=("a", "b", "a")) == ["mllm (a)", "mllm (b)", "arbiter"]
    assert named(*twice, origins=("a", "a", "a")) == ["mllm (a) #1", "mllm (a) #2", "arbiter"]
    assert named(("m", ()), ("m", ()), ("m", ()), origins=("a", "a", "b")) == ["m (a) #1", "m (a) #2", "m (b)"]
    assert named(("m", ()), ("m", ()), ("m", ()), origins=("a", "a", "a")) == ["m (a) #1", "m (a) #2", "m (a) #3"]


def test_every_solver_needs_an_origin() -> None:
    with pytest.raises(ValueError, match="zip"):
        named(("mllm", ()), origins=("a", "b"))


def test_shared_labels_are_those_that_everybody_has() -> None:
    assert shared_labels(()) == ()
    solver = Scored("blink", "m", {}, "chance", {}, Data("blink", "val", {}, {}), labels=("x", "y"))
    assert shared_labels((solver,)) == ("x", "y")
    assert shared_labels((solver, replace(solver, labels=("y", "z")))) == ("y",)
