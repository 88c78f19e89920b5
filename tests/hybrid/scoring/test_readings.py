"""Verdicts alone: what a file of them holds, which replies may be judged, and what takes a reply's place."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.errors import DataError
from hybrid.scoring.readings import (
    JUDGED,
    VERDICTS,
    ReplyReading,
    can_be_judged,
    models_of,
    read_readings,
    reply_sha256,
    unread,
    with_readings,
)
from hybrid.types import Attempt, Exchange, Kind, Outcome, Prompt, Reply

CHOICES = ("red", "green", "blue")


def exchange(text: str, kind: Kind = Kind.CHOICE, outcome: Outcome = Outcome.ANSWERED) -> Exchange:
    choices = CHOICES if kind in (Kind.CHOICE, Kind.ORDER) else ()
    return Exchange(Prompt(("Which?",), kind, choices), Reply(text, outcome))


def verdict(letter: str | None, ask: int = 0, sha256: str = "", identity: str = "q") -> ReplyReading:
    return ReplyReading(identity, ask, letter, "judge:one", f"Answer: {letter}", sha256)


def attempt(*exchanges: Exchange) -> Attempt:
    return Attempt("q", exchanges, 1.5)


def test_the_file_is_named_and_a_hash_is_optional() -> None:
    assert VERDICTS == "verdicts.jsonl"
    assert ReplyReading("q", 0, None, "m", "").reply_sha256 == ""


def test_the_first_line_of_an_ask_counts(tmp_path: Path) -> None:
    lines = [
        {"id": "q", "ask": ask, "letter": letter, "model": "m", "text": letter, "reply_sha256": ""}
        for ask, letter in ((0, "A"), (0, "B"), (1, "C"))
    ]
    lines.append(lines[0] | {"id": "p", "letter": None})
    path = tmp_path / "verdicts.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read_readings(path)
    assert {place: each.letter for place, each in found.items()} == {("q", 0): "A", ("q", 1): "C", ("p", 0): None}
    assert read_readings(tmp_path / "absent.jsonl") == {}


def test_only_asks_with_a_list_of_answers_are_judged() -> None:
    assert set(JUDGED) == {Kind.CHOICE, Kind.YES_NO, Kind.INTEGER, Kind.ORDER}
    assert {kind for kind in Kind if can_be_judged(exchange("hm", kind))} == set(JUDGED)


@pytest.mark.parametrize("kind", [Kind.CHOICE, Kind.ORDER])
def test_a_choice_without_choices_is_not_judged(kind: Kind) -> None:
    assert can_be_judged(exchange("hm", kind))
    assert not can_be_judged(Exchange(Prompt(("Which?",), kind), Reply("hm")))


def test_a_yes_or_a_count_needs_no_choices() -> None:
    assert can_be_judged(exchange("hm", Kind.YES_NO))
    assert can_be_judged(exchange("hm", Kind.INTEGER))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_somebody_s_words_are_judged(outcome: Outcome) -> None:
    said = outcome in (Outcome.ANSWERED, Outcome.UNPARSED)
    assert can_be_judged(exchange("hm", outcome=outcome)) is said
    assert not can_be_judged(exchange(" \n", outcome=outcome))


def test_unread_is_what_our_parser_cannot_read() -> None:
    assert unread(exchange("Either could be it."))
    assert not unread(exchange("(B)"))
    assert not unread(exchange("green"))
    assert not unread(exchange("3", Kind.INTEGER))
    assert unread(exchange("(B)", Kind.INTEGER))


def test_a_verdict_takes_the_place_of_its_reply_only() -> None:
    whole = attempt(exchange("hm", outcome=Outcome.UNPARSED), exchange("well"))
    found = with_readings(whole, {("q", 0): verdict("B", sha256=reply_sha256(whole.exchanges[0]))})
    answered = replace(whole.exchanges[0].reply, text="B", outcome=Outcome.ANSWERED)
    assert found == (replace(whole.exchanges[0], reply=answered), whole.exchanges[1])
    assert whole.exchanges[0].reply.text == "hm"


@pytest.mark.parametrize(
    "verdicts",
    [
        {},
        {("q", 0): verdict(None)},
        {("q", 1): verdict("B", ask=1)},
        {("p", 0): verdict("B", identity="p")},
    ],
)
def test_no_verdict_that_decides_is_no_reading(verdicts: dict[tuple[str, int], ReplyReading]) -> None:
    assert with_readings(attempt(exchange("hm")), verdicts) is None


@pytest.mark.parametrize("unjudged", [exchange(""), exchange("hm", Kind.FREE), exchange("hm", outcome=Outcome.BUDGET)])
def test_a_verdict_on_what_is_not_judged_changes_nothing(unjudged: Exchange) -> None:
    assert with_readings(attempt(unjudged), {("q", 0): verdict("B", sha256="other")}) is None


def test_a_verdict_without_an_answer_is_not_checked() -> None:
    assert with_readings(attempt(exchange("hm")), {("q", 0): verdict(None, sha256="other")}) is None


def test_a_verdict_of_another_reply_is_an_error() -> None:
    with pytest.raises(DataError, match=r"^the verdict on q, ask 0, was made of another reply: not of this run's$"):
        with_readings(attempt(exchange("hm")), {("q", 0): verdict("B", sha256="other")})


@pytest.mark.parametrize(
    ("letter", "kind"), [("D", Kind.CHOICE), ("red or blue", Kind.CHOICE), ("maybe", Kind.YES_NO), ("-1", Kind.INTEGER)]
)
def test_a_verdict_that_was_not_offered_is_an_error(letter: str, kind: Kind) -> None:
    with pytest.raises(DataError, match=f"^the verdict on q, ask 0: '{letter}' is none of the possible answers$"):
        with_readings(attempt(exchange("hm", kind)), {("q", 0): verdict(letter)})


def test_a_reply_is_known_by_its_text_with_half_characters_too() -> None:
    assert reply_sha256(exchange("hm")) == hashlib.sha256(b"hm").hexdigest()
    assert reply_sha256(exchange("ü")) == hashlib.sha256("ü".encode()).hexdigest()
    assert reply_sha256(exchange("\ud800")) == hashlib.sha256(b"?").hexdigest()


def test_judges_are_listed_once_and_in_order() -> None:
    found = [replace(verdict("A"), model=name) for name in ("b", "a", "b")]
    assert models_of(found) == ("a", "b")
    assert models_of([]) == ()
