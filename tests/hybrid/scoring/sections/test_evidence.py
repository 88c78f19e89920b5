"""Use of evidence and of tools: every class once by hand, the partition, counts made again by other code."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.scoring.compare import compare
from hybrid.scoring.findings import VERDICTS, Called, Heard
from hybrid.scoring.result import Result
from hybrid.scoring.runs import score_run
from hybrid.scoring.score import Scored
from hybrid.scoring.sections.evidence import CLASSES, SECTION, class_of
from hybrid.scoring.sections.tool_use import SECTION as TOOL_USE
from hybrid.types import (
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
from tests.hybrid.scoring.solvers import folder_of
from tests.tables import stored

CHOICES = ("the second image", "the third image")
IMAGES = tuple(StoredImage(f"{number:064x}", 60, 60, "image/png") for number in (1, 2, 3))
NAMES = tuple(f"img:{number}" for number in (1, 2, 3))


def prompt(route: str) -> Prompt:
    shown = (ImageRef(name, image) for name, image in zip(NAMES, IMAGES, strict=True))
    return Prompt(("Which image fits?", *shown), Kind.CHOICE, CHOICES, route=route)


def called(tool: str = "jigsaw", best: int | None = None, fault: Fault | None = None, seconds: float = 0.5) -> Step:
    told: dict[str, Json] = {"data": {"best": best}, "confidence": 0.9, "backend": "classical", "version": "1"}
    call: dict[str, Json] = {"images": list(NAMES), "args": {}}
    return Step("tool", tool, "", seconds, fault, call if fault else {**call, **told})


STEPS: Mapping[str, tuple[Step, ...]] = {
    "r": (called(best=0),),
    "w": (called(best=1),),
    "u": (called(best=None),),
    "x": (called("crop", 0),),
    "-": (),
}
"""A letter for what tools say: right, wrong, undecided, another tool, nothing."""


def attempt(identity: str, reply: str, steps: tuple[Step, ...] = (), route: str = "Jigsaw") -> Attempt:
    """`r` right, `w` wrong, `?` unreadable, `f` failed."""
    outcome = Outcome.NOT_RECORDED if reply == "f" else Outcome.ANSWERED
    text = {"r": "Answer: (A)", "w": "Answer: (B)", "f": ""}.get(reply, "Hm.")
    return Attempt(identity, (Exchange(prompt(route), Reply(text, outcome, steps=steps)),), 0.1)


def run(path: Path, rows: Sequence[tuple[str, Attempt | None, Attempt | None]], **identity: Any) -> tuple[Scored, ...]:
    """A run of puzzles: task, attempt of the MLLM alone and of the controller; None for a question not asked."""
    made = {"data": {"kind": "folder", "sha256": "ab" * 32}, "model": {"model": "openai:one"}, "tool_output": "real"}
    ids = [next(one.id for one in pair if one is not None) for _, *pair in rows]
    questions = [
        Question(name, task, IMAGES, "Which image fits?", Kind.CHOICE, CHOICES, "(A)", task)
        for name, (task, _, _) in zip(ids, rows, strict=True)
    ]
    said = {name: [row[place] for row in rows if row[place]] for place, name in ((1, "mllm"), (2, "controller"))}
    return score_run(folder_of(path, questions, said, **made | identity), ScoreOptions())  # type: ignore[arg-type]


def rows_of(path: Path, words: Sequence[str], **identity: Any) -> list[Result]:
    """The rows of questions given as three letters: alone, tools, hybrid."""
    rows = [
        ("Jigsaw", attempt(f"q{n}{word}", word[0]), attempt(f"q{n}{word}", word[2], STEPS[word[1]]))
        for n, word in enumerate(words)
    ]
    return list(SECTION.rows(compare(run(path, rows, **identity))))


def classes(rows: Sequence[Result], group: str = "") -> dict[str, tuple[str, ...]]:
    """The classes that hold a question, with their ids."""
    return {row.quantity: row.ids for row in rows if row.quantity in CLASSES and row.group == group and row.value}


# Every class by hand.

BY_HAND = stored(__file__, "BY_HAND")


def test_every_class_by_hand(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, list(BY_HAND))
    assert {name[-3:]: what for what, ids in classes(rows).items() for name in ids} == BY_HAND
    assert {(row.a, row.b) for row in rows} == {("mllm", "controller")}
    assert {row.n for row in rows if row.quantity in CLASSES} == {len(BY_HAND)}
    counted = {row.quantity: row for row in rows if row.detail and not row.group}
    for what, ids in classes(rows).items():
        letters = [name[-3:] for name in ids]
        for name, members in {
            "helped": [word for word in letters if word[0] != "r" and word[2] == "r"],
            "harmed": [word for word in letters if word[0] == "r" and word[2] != "r"],
            "as found": [word for word in letters if word[1] in "rw" and word[1] == word[2]],
        }.items():
            row = counted.get(f"{what}: {name}")
            assert [one[-3:] for one in row.ids] == members if row else members == []


def test_what_is_unread_is_counted_and_named(tmp_path: Path) -> None:
    rows = [
        ("IQ_Test", attempt("a", "r"), attempt("a", "w", STEPS["r"], "IQ_Test")),
        ("Jigsaw", attempt("b", "r"), attempt("b", "r", STEPS["r"])),
        ("Jigsaw", attempt("c", "w"), attempt("c", "r", STEPS["r"])),
        ("IQ_Test", attempt("d", "w"), attempt("d", "w", (), "IQ_Test")),
    ]
    solvers = run(tmp_path, rows)
    made = list(SECTION.rows(compare(solvers)))
    assert classes(made) == {"unread": ("a",), "confirmed": ("b",), "correct adoption": ("c",), "no call": ("d",)}
    assert {row.quantity: row.ids for row in made if row.quantity.startswith("why unread")} == {
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
    made = list(SECTION.rows(compare(run(tmp_path, rows))))
    assert {row.quantity: row.ids for row in made if row.quantity.startswith("left out")} == {
        "left out: failed": ("b", "c"),
        "left out: not asked of the MLLM alone": ("d",),
    }
    assert classes(made) == {"confirmed": ("a",)}


# The classes are a partition, and every number can be made again from the scores and the attempts.

WORDS = st.lists(st.tuples(st.sampled_from("rw?f"), st.sampled_from("rwux-"), st.sampled_from("rw?f")), max_size=12)


@given(
    st.booleans(),
    st.sampled_from(VERDICTS),
    st.booleans(),
    st.lists(st.sampled_from(["jigsaw", "crop"]), max_size=2),
    st.booleans(),
)
def test_every_combination_has_one_class(
    alone: bool, finding: Any, hybrid: bool, tools: list[str], to_the_point: bool
) -> None:
    said = Heard(tuple(Called(tool, None, 0.0) for tool in tools), to_the_point, finding)
    assert class_of(alone, said, hybrid) in CLASSES


def recounted(path: Path) -> Counter[tuple[bool, str, bool]]:
    """Alone, finding and hybrid of each question, from the files alone."""
    lines: dict[str, dict[str, Any]] = {}
    for solver in ("mllm", "controller"):
        text = (path / solver / "scores.jsonl").read_text().splitlines()
        lines[solver] = {row["id"]: row for row in map(json.loads, text)}
    attempts = map(json.loads, (path / "controller" / "attempts.jsonl").read_text().splitlines())
    steps = {row["id"]: row["steps"] for row in attempts}
    found: Counter[tuple[bool, str, bool]] = Counter()
    for name, own in lines["controller"].items():
        other = lines["mllm"][name]
        if "not_recorded" in (own["outcome"], other["outcome"]):
            continue
        best = [
            step["data"]["data"]["best"]
            for step in steps[name][0]
            if step["name"] == "jigsaw" and step["data"]["data"]["best"] is not None
        ]
        finding = ("right" if best[-1] == 0 else "wrong") if best else "none"
        found[other["correct"] == 1, finding, own["correct"] == 1] += 1
    return found


@given(WORDS)
@settings(max_examples=12)
def test_counts_add_up_and_are_those_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("run")
    rows = [
        ("Jigsaw", attempt(f"q{n}", alone), attempt(f"q{n}", hybrid, STEPS[tools]))
        for n, (alone, tools, hybrid) in enumerate(words)
    ]
    solvers = run(path, rows)
    made = list(SECTION.rows(compare(solvers)))
    judged = [word for word in words if "f" not in (word[0], word[2])]
    everything = [name for ids in classes(made).values() for name in ids]
    assert len(everything) == len(set(everything)) == len(judged)
    assert sum(map(len, classes(made, "Jigsaw").values())) == len(judged)
    recount = recounted(path)
    own = {row.quantity: row.value for row in made if not row.group}
    assert sum(int(own[name] or 0) for name in CLASSES) == recount.total() == len(judged)
    assert (own["correct adoption"], own["confirmed"]) == (recount[False, "right", True], recount[True, "right", True])
    assert own["over-trust"] == recount[True, "wrong", False]
    for name, (before, after) in {"helped": (False, True), "harmed": (True, False)}.items():
        counted = sum(int(value or 0) for what, value in own.items() if what.endswith(f": {name}"))
        assert counted == sum(n for (alone, _, hybrid), n in recount.items() if (alone, hybrid) == (before, after))


# Use of tools.


@given(WORDS)
@settings(max_examples=6)
def test_calls_of_all_tools_are_those_of_each(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str]]
) -> None:
    rows = [
        (task, attempt(f"{task}{n}", alone), attempt(f"{task}{n}", hybrid, STEPS[tools], task))
        for n, (alone, tools, hybrid) in enumerate(words)
        for task in (("Jigsaw", "Art_Style")[n % 2],)
    ]
    made = list(TOOL_USE.rows(compare(run(tmp_path_factory.mktemp("run"), rows))))
    kept = sum(len(STEPS[tools]) for _, tools, reply in words if reply != "f")

    def total(quantity: str, *, by_tool: bool, by_task: bool) -> float:
        own = [row for row in made if (row.quantity, bool(row.metric), bool(row.group)) == (quantity, by_tool, by_task)]
        return sum(row.value or 0.0 for row in own)

    assert total("calls", by_tool=True, by_task=False) == total("calls", by_tool=False, by_task=True) == kept
    for quantity in ("calls", "questions with a call"):
        assert total(quantity, by_tool=False, by_task=False) == total(quantity, by_tool=False, by_task=True)
