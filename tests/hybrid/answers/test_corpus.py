"""Replies in the style of today's models, each with the answer that a person reads in it: `replies.jsonl`.

A line has the kind and choices of the question, the reply, its class, and the reading: null where a person would not
dare say which answer it gives. A denial alone gives no answer, even where only one choice is left. `missed` marks
readings that the parser leaves unread; none is read as something else.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.types import Json, Kind

REPLIES = [json.loads(line) for line in Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()]


def read(text: str, kind: str, choices: tuple[str, ...] = ()) -> Json:
    found = as_json(parse(text, kind, choices).value)
    return {"t" if key == "t_ms" else key: value for key, value in found.items()} if isinstance(found, dict) else found


def test_every_reply_is_read_as_a_person_reads_it() -> None:
    wrong = []
    for row in REPLIES:
        expected = None if row.get("missed") else row["reading"]
        found = read(row["reply"], row["kind"], tuple(row["choices"]))
        wrong += [(row["kind"], row["reply"], expected, found)] if found != expected else []
    assert wrong == []


def test_the_replies_are_many_and_of_every_kind() -> None:
    kinds = Counter(row["kind"] for row in REPLIES)
    assert set(kinds) == set(Kind)
    assert kinds.total() >= 1800
    assert sum(row["reading"] is None for row in REPLIES) >= 550
    assert sum(row.get("missed", False) for row in REPLIES) <= 23


COLOURS = ("red", "green", "blue", "black")
TWO = ("the second image", "the third image")
DEPTH = ("A is closer", "B is closer")


@pytest.mark.parametrize(
    ("text", "kind", "choices", "value"),
    [
        ("I count 2 on the left and 3 on the right, so 5 in total.", "integer", (), 5),
        ("Around 10-12", "integer", (), None),
        ("None", "integer", (), 0),
        ("B, C", "order", ("dog", "cat", "tree"), None),
        ('{"reasoning": "...", "final": "B"}', "choice", ("", ""), "B"),
        ("Not A; B.", "choice", ("", ""), "B"),
        ("A is farther than B, so B is closer.", "choice", DEPTH, "B"),
        ("Between A and B, B.", "choice", ("", ""), "B"),
        ("Tool says A. I agree.", "choice", ("", ""), "A"),
        ("The color is blue.", "choice", COLOURS, "C"),
        ("The second image fits, the third does not.", "choice", TWO, "A"),
        ("C: yes. D: no.", "choice", ("", "", "", ""), "C"),
        ("There is no cat in the picture.", "yes_no", (), "no"),
        ("Nope", "yes_no", (), "no"),
        ("Not really.", "yes_no", (), "no"),
        ("Correct.", "yes_no", (), "yes"),
    ],
)
def test_one_of_each_class(text: str, kind: str, choices: tuple[str, ...], value: Json) -> None:
    assert read(text, kind, choices) == value


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ("A: no, B: yes, C: no, D: no", "choice", "verdicts"),
        ("Not A; B.", "choice", "remaining"),
        ("The color is blue.", "choice", "stated_choice"),
        ("2 on the left, 3 on the right, so 5.", "integer", "total"),
        ("left: 2\nright: 3\n\n5", "integer", "closing_number"),
        ("There are none.", "integer", "none_at_all"),
        ("There is no cat in the picture.", "yes_no", "absent"),
    ],
)
def test_says_which_rule_fired(text: str, kind: str, rule: str) -> None:
    assert parse(text, kind, COLOURS).rule == rule
