"""The section on the use of evidence: its classes, unread replies, and the questions that are left out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.types import (
    Attempt,
    Exchange,
    Fault,
    ImageRef,
    Json,
    Kind,
    Outcome,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
)
from hybrid.scoring.compare import compare
from hybrid.scoring.result import Result
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.evidence import CLASSES, SECTION
from tests.hybrid.scoring.solvers import folder_of

CHOICES = ("the second image", "the third image")
IMAGES = tuple(StoredImage(f"{number:064x}", 60, 60, "image/png") for number in (1, 2, 3))
NAMES = tuple(f"img:{number}" for number in (1, 2, 3))


def prompt(route: str) -> Prompt:
    refs = (ImageRef(name, image) for name, image in zip(NAMES, IMAGES, strict=True))
    return Prompt(("Which image fits?", *refs), Kind.CHOICE, CHOICES, route=route)


def make_call(tool: str = "jigsaw", best: int | None = None, fault: Fault | None = None, seconds: float = 0.5) -> Step:
    options: dict[str, Json] = {"data": {"best": best}, "confidence": 0.9, "backend": "classical", "version": "1"}
    call: dict[str, Json] = {"images": list(NAMES), "args": {}}
    return Step("tool", tool, "", seconds, fault, call if fault else {**call, **options})


# The steps of each letter: a tool output that is right, wrong or undecided, another tool, or no step.
STEPS: Mapping[str, tuple[Step, ...]] = {
    "r": (make_call(best=0),),
    "w": (make_call(best=1),),
    "u": (make_call(best=None),),
    "x": (make_call("crop", 0),),
    "-": (),
}


def attempt(identity: str, reply: str, steps: tuple[Step, ...] = (), route: str = "Jigsaw") -> Attempt:
    """Return an attempt whose reply is right (`r`), wrong (`w`), unreadable (`?`) or failed (`f`)."""
    outcome = Outcome.NOT_RECORDED if reply == "f" else Outcome.ANSWERED
    text = {"r": "Answer: (A)", "w": "Answer: (B)", "f": ""}.get(reply, "Hm.")
    return Attempt(identity, (Exchange(prompt(route), Reply(text, outcome, steps=steps)),), 0.1)


def run(path: Path, rows: Sequence[tuple[str, Attempt | None, Attempt | None]], **identity: Any) -> tuple[Scored, ...]:
    """Return the scored solvers of a run of puzzles.

    A row has the task, the attempt of the MLLM alone and that of the controller; an attempt is None if the question was
    not asked.
    """
    payload = {"data": {"kind": "folder", "sha256": "ab" * 32}, "model": {"model": "openai:one"}, "tool_output": "real"}
    ids = [next(item.id for item in pair if item is not None) for _, *pair in rows]
    questions = [
        Question(name, task, IMAGES, "Which image fits?", Kind.CHOICE, CHOICES, "(A)", task)
        for name, (task, _, _) in zip(ids, rows, strict=True)
    ]
    by_name = {name: [row[place] for row in rows if row[place]] for place, name in ((1, "mllm"), (2, "controller"))}
    return score_run(folder_of(path, questions, by_name, **payload | identity), ScoreOptions())  # type: ignore[arg-type]


def classes(rows: Sequence[Result], group: str = "") -> dict[str, tuple[str, ...]]:
    """Return the classes that contain a question, with their ids."""
    return {row.quantity: row.ids for row in rows if row.quantity in CLASSES and row.group == group and row.value}


# Every class, counted by hand.


def test_what_is_unread_is_counted_and_named(tmp_path: Path) -> None:
    rows = [
        ("IQ_Test", attempt("a", "r"), attempt("a", "w", STEPS["r"], "IQ_Test")),
        ("Jigsaw", attempt("b", "r"), attempt("b", "r", STEPS["r"])),
        ("Jigsaw", attempt("c", "w"), attempt("c", "r", STEPS["r"])),
        ("IQ_Test", attempt("d", "w"), attempt("d", "w", (), "IQ_Test")),
    ]
    solvers = run(tmp_path, rows)
    items = list(SECTION.rows(compare(solvers)))
    assert classes(items) == {"unread": ("a",), "confirmed": ("b",), "correct adoption": ("c",), "no call": ("d",)}
    assert {row.quantity: row.ids for row in items if row.quantity.startswith("why unread")} == {
        "why unread: there is no rule for 'IQ_Test'": ("a",)
    }


def test_what_failed_or_one_was_not_asked_is_left_out(tmp_path: Path) -> None:
    rows = [
        ("Jigsaw", attempt("a", "r"), attempt("a", "r", STEPS["r"])),
        ("Jigsaw", attempt("b", "f"), attempt("b", "r", STEPS["r"])),
        ("Jigsaw", attempt("c", "r"), attempt("c", "f", STEPS["r"])),
        ("Jigsaw", None, attempt("d", "r", STEPS["r"])),
        ("Jigsaw", attempt("e", "r"), None),
    ]
    items = list(SECTION.rows(compare(run(tmp_path, rows))))
    assert {row.quantity: row.ids for row in items if row.quantity.startswith("left out")} == {
        "left out: failed": ("b", "c"),
        "left out: not asked of the MLLM alone": ("d",),
    }
    assert classes(items) == {"confirmed": ("a",)}


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ([("r", "r", "r")], "No judged finding of controller was right where mllm was wrong; no judged finding of "),
        ([("w", "r", "r")], "controller took up 1 of 1 right findings that mllm needed; no judged finding of "),
        (
            [("r", "w", "w")],
            "No judged finding of controller was right where mllm was wrong; controller followed 1 of 1",
        ),
    ],
)
def test_a_share_of_nothing_is_not_printed(tmp_path: Path, replies: Sequence[tuple[str, str, str]], words: str) -> None:
    rows = [
        ("Jigsaw", attempt(f"q{n}", alone), attempt(f"q{n}", tools, STEPS[call]))
        for n, (alone, tools, call) in enumerate(replies)
    ]
    comparison = compare(run(tmp_path, rows))
    lead = SECTION.lead(comparison, list(SECTION.rows(comparison)))
    assert lead.startswith(words)
    assert "0 of 0" not in lead
