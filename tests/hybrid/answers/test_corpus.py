"""Replies in the style of current models, each with the answer that a person reads in it: `replies.jsonl`.

A line has the kind and choices of the question, the reply, its class, and the answer; the answer is null if a person
cannot tell with confidence. A reply that only rejects choices gives no answer, even if one choice remains. `missed`
marks answers that the parser does not read; it reads none of them as another answer.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.core.types import Json, Kind
from tests.tables import cases

REPLIES = [json.loads(line) for line in Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()]


def read(text: str, kind: str, choices: tuple[str, ...] = ()) -> Json:
    data = as_json(parse(text, kind, choices).value)
    return {"t" if key == "t_ms" else key: value for key, value in data.items()} if isinstance(data, dict) else data


def test_every_reply_is_read_as_a_person_reads_it() -> None:
    wrong = []
    for row in REPLIES:
        expected = None if row.get("missed") else row["reading"]
        parsed = read(row["reply"], row["kind"], tuple(row["choices"]))
        wrong += [(row["kind"], row["reply"], expected, parsed)] if parsed != expected else []
    assert wrong == []


def test_the_replies_are_many_and_of_every_kind() -> None:
    kinds = Counter(row["kind"] for row in REPLIES)
    assert set(kinds) == set(Kind)
    assert kinds.total() >= 1800
    assert sum(row["reading"] is None for row in REPLIES) >= 550
    assert sum(row.get("missed", False) for row in REPLIES) <= 20


COLOURS = ("red", "green", "blue", "black")


@pytest.mark.parametrize(*cases(__file__, "test_one_of_each_class"))
def test_one_of_each_class(text: str, kind: str, choices: tuple[str, ...], value: Json) -> None:
    assert read(text, kind, choices) == value


@pytest.mark.parametrize(*cases(__file__, "test_says_which_rule_fired"))
def test_says_which_rule_fired(text: str, kind: str, rule: str) -> None:
    assert parse(text, kind, COLOURS).rule == rule
