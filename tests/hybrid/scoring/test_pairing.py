"""Which questions are the same, part by part, and the names under which solvers are compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.scoring.compare import CONTROL, SolverPair, compare, shared_labels, unique
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


def test_a_manifest_may_say_nothing_of_its_data() -> None:
    identity = {"benchmark": "blink", "split": "val"}
    assert Data.of_run(identity) == Data("blink", "val", {}, {})
    more = {"data": {"kind": "sample", "seed": 0}, "settings": {"context": "on"}}
    assert Data.of_run({**identity, **more}) == Data("blink", "val", more["data"], {"context": "on"})


def test_data_is_told_by_its_facts_and_a_short_fingerprint() -> None:
    facts = {"kind": "hub", "id": "an-owner/of-a-long-name", "sha256": "0123456789abcdef"}
    assert str(Data("blink", "val", facts, {})) == "blink val, hub, id an-owner/of-a-long-name, sha256 0123456789ab"
    assert str(Data.of_predictions("blink", "val")) == "blink val, predictions without their questions"


def named(*solvers: tuple[str, tuple[str, ...]], origins: tuple[str, ...] = ()) -> list[str]:
    found = [
        Scored("blink", name, {}, "chance", {}, Data("blink", "val", {}, {}), labels=tags) for name, tags in solvers
    ]
    return [one.solver for one in unique(found, origins or ("runs/a",) * len(found))]


def recorded(folder: Path, solver: str, model: str | None, show: str | None = None, word: str = "") -> Scored:
    """A solver of a run in that folder, which showed findings in that form."""
    run = RunFolder(folder)
    folder.mkdir(exist_ok=True)
    run.write_manifest(
        {"identity": {"benchmark": "blink", "split": "val", "show": show}, "solvers": {word or solver: {}}}
    )
    data = Data("blink", "val", {}, {})
    return Scored("blink", solver, {}, "chance", {}, data, recorded=word or solver, folder=run, model=model)


def names_of(*solvers: Scored) -> list[str]:
    return [one.solver for one in unique(solvers, [one.recorded for one in solvers])]


def test_a_name_carries_its_model_where_several_are_compared(tmp_path: Path) -> None:
    one, two = (recorded(tmp_path / letter, "mllm", f"openai:{letter}") for letter in "ab")
    third, alone = (
        recorded(tmp_path / "c", "controller", "openai:c"),
        recorded(tmp_path / "d", "specialist", "openai:d"),
    )
    assert names_of(one, alone) == ["mllm", "specialist"], "a specialist has no model"
    assert names_of(one, two) == ["mllm [openai:a]", "mllm [openai:b]"]
    assert names_of(one, two, third, alone) == [
        "mllm [openai:a]",
        "mllm [openai:b]",
        "controller [openai:c]",
        "specialist",
    ]
    assert names_of(replace(one, solver="openai:a"), two) == ["openai:a", "mllm [openai:b]"]
    assert names_of(one, replace(two, model="")) == ["mllm [openai:a]", "mllm"]


def test_a_name_carries_the_form_of_findings_where_another_was_shown_them_otherwise(tmp_path: Path) -> None:
    text, image, both = (recorded(tmp_path / form, "controller", "m", form) for form in ("text", "image", "both"))
    alone = recorded(tmp_path / "alone", "mllm", "m", "text")
    assert names_of(text, recorded(tmp_path / "other", "arbiter", "m", "image")) == ["controller", "arbiter"]
    assert names_of(text, image) == ["controller [findings as text]", "controller [findings as pictures]"]
    assert names_of(text, both, alone) == ["controller [findings as text]", "controller", "mllm"]
    assert names_of(alone, replace(alone, folder=both.folder)) == ["mllm (mllm) #1", "mllm (mllm) #2"]


def test_later_repetitions_are_paired_only_where_the_first_is_not_there(tmp_path: Path) -> None:
    first = recorded(tmp_path / "a", "mllm", "m")
    again = recorded(tmp_path / "a", "mllm@2", "m")
    elsewhere = recorded(tmp_path / "b", "mllm (b)", "m", word="mllm@2")
    tools = recorded(tmp_path / "a", "controller", "m")
    assert compare([first, again, tools]).pairs == (SolverPair("mllm", "controller"),)
    assert compare([again, tools]).pairs == (SolverPair("mllm@2", "controller"),)
    assert compare([first, again, elsewhere]).pairs == (SolverPair("mllm", "mllm (b)"),)


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
