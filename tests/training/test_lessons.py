"""Lessons: what of a conversation is learnt with which weight, and which picture tokens are to read as what."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from training.architecture import IMAGE_TOKENS
from training.conversations import Held, finding_of, told
from training.curriculum import EARLY, FIRST, LAST, drawn, share
from training.learn import to_read
from training.lessons import ANSWER_WEIGHT, NOTHING, SAID_WEIGHT, Lesson, Lessons, lesson
from training.pictures import Eyes
from training.policy import TaughtAsk
from training.scenes import look
from training.vocabulary import END, tokenizer

SAID = "1 red cube 1 0.2 0.60, 2 green ball 1 0.4 0.40"
CALL = {"type": "function", "function": {"name": "depth", "arguments": {"image": "img:1"}}}


@pytest.fixture(scope="module")
def words() -> Any:
    return tokenizer([f"How many red cubes are there? {SAID} Answer: (A)", "circle square depth img:1"] * 3, 1200)


def row(task: str, *turns: Mapping[str, Any], form: str = "plain") -> dict[str, Any]:
    return {"benchmark": "blink", "task": task, "form": form, "tools": [], "turns": list(turns)}


def of_weight(made: Lesson, weight: float, words: Any) -> str:
    return str(words.decode(made.ids[np.isclose(made.weights, weight)]))


def test_an_answer_weighs_more_than_what_is_seen_before_it(words: Any) -> None:
    asked = {"role": "user", "content": "How many red cubes are there?"}
    made = lesson(row("Counting", asked, {"role": "assistant", "content": f"{SAID}\nAnswer: (A)"}), words)
    assert of_weight(made, ANSWER_WEIGHT, words) == f"Answer: (A){END}"
    assert of_weight(made, SAID_WEIGHT, words).strip() == SAID
    assert "How many" in of_weight(made, 0.0, words)


def test_what_is_told_at_random_is_not_learnt(words: Any) -> None:
    asked = {"role": "user", "content": "How many red cubes are there?"}
    told = row("drill", asked, {"role": "assistant", "content": f"{SAID}\nAnswer: (A)"}, form="drill")
    made = lesson({**told, "benchmark": "drill", "given": SAID}, words)
    assert of_weight(made, ANSWER_WEIGHT, words) == f"Answer: (A){END}"
    assert set(made.weights.tolist()) == {0.0, ANSWER_WEIGHT}


def test_calls_are_learnt_and_findings_are_not(words: Any) -> None:
    made = lesson(
        row(
            "Relative_Depth",
            {"role": "user", "content": "Which?"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "content": "A is nearest."},
            {"role": "assistant", "content": "Answer: (A)"},
        ),
        words,
    )
    assert of_weight(made, ANSWER_WEIGHT, words) == f"Answer: (A){END}"
    assert '"name": "depth"' in of_weight(made, 1.0, words)
    assert "nearest" in of_weight(made, 0.0, words)


def test_only_tokens_of_pictures_that_are_looked_at_are_to_read_as_something(words: Any, tmp_path: Path) -> None:
    rows = list(look("prominence", 2, 0, tmp_path))
    lessons = Lessons(rows, words, Eyes(tmp_path), 0)
    shown = [name for name, _ in lessons.scenes()]
    none = Lesson(np.zeros(1, np.int32), np.zeros(1, np.float32), (shown[1], shown[1]))
    one = Lesson(np.zeros(1, np.int32), np.zeros(1, np.float32), (shown[0],), "prominence")
    places, wanted = to_read([none, one, none], lessons)
    assert places == list(range(2 * IMAGE_TOKENS, 3 * IMAGE_TOKENS))
    assert wanted == lessons.read_as(shown[0], "prominence")
    (nothing,) = words(NOTHING, add_special_tokens=False)["input_ids"]
    things = [thing for thing in Eyes(tmp_path).parts(shown[0]) if thing is not None]
    read = [[words.decode([token]) for token in tokens] for tokens in wanted if tokens[0] != nothing]
    assert read == [[thing.colour, "circle" if thing.round else "square", *thing.place] for thing in things]


def test_batches_are_as_many_as_asked_for_and_no_larger(words: Any, tmp_path: Path) -> None:
    answered = row("Jigsaw", {"role": "user", "content": "Which?"}, {"role": "assistant", "content": "Answer: (A)"})
    lessons = Lessons([*look("prominence", 2, 0, tmp_path), answered], words, Eyes(tmp_path), 0)
    batches = list(drawn(lessons, 23, 600, 0))
    assert len(batches) == 23
    assert all(len(batch) * max(len(each.ids) for each in batch) <= 600 for batch in batches)
    again = drawn(lessons, 23, 600, 0)
    assert [[each.ids.tolist() for each in batch] for batch in batches] == [[e.ids.tolist() for e in b] for b in again]


@pytest.mark.parametrize("kind", ["drill", "scene"])
def test_exercises_come_first(kind: str) -> None:
    assert share(kind, 0.0) == FIRST[kind]
    assert share(kind, EARLY) == share(kind, 1.0) == LAST[kind]
    assert FIRST[kind] > share(kind, EARLY / 2) > LAST[kind]


def test_a_foreign_finding_is_answered_as_it_says() -> None:
    text = "Which point is closer to the camera?"
    ask = TaughtAsk(text, ("A is closer", "B is closer"), ("img:1",))
    call = AssistantMessage("", (ToolCall("call_0_0", "depth", {"image": "img:1"}),))
    finding = ToolMessage("call_0_0", "depth", ("Image 1: B is nearest to the camera.",))
    held = Held(ask, "Answer: (B)", (UserMessage((text,)), call, finding, AssistantMessage("Answer: (B)")), ())
    other = ToolMessage("call_0_0", "depth", ("Image 1: A is nearest to the camera.",))
    (made,) = told(held, other)
    assert finding_of(made) == other
    assert made.messages[-1] == AssistantMessage("Answer: (A)")
    assert list(told(held, ToolMessage("call_0_0", "depth", ("Image 1: undecided.",)))) == []
