"""A judge's readings of replies that the parser could not read: `RUN/SOLVER/verdicts.jsonl`, from `hybrid judge`.

    hybrid score RUN --verdicts judge

A reading names the offered answer that a reply gives, or none. Scoring with readings replaces the reply by that answer
and scores it, so that every benchmark's own rules hold; the scores without readings are kept too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.answers import parse
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Attempt, Exchange, Kind, Outcome
from hybrid.log.folder import read_lines

VERDICTS = "verdicts.jsonl"
# Minimum share of readable replies that a judge must read as the parser does.
AGREEMENT = 0.9

# Kinds of prompt whose answers can be listed.
JUDGED = (Kind.CHOICE, Kind.YES_NO, Kind.INTEGER, Kind.ORDER)


@dataclass(frozen=True)
class ReplyReading:
    """One line of `verdicts.jsonl`.

    `letter` is the answer that the reply gives, in the form of its kind (`B`, `yes`, `3`, `BCA`); it is None if the
    reply gives no answer. `text` is what the judge wrote, and `reply_sha256` identifies the reply that it read. `known`
    is the parser's answer for a reply that was mixed in to measure agreement; such a reading never enters a score.
    """

    id: str
    ask: int
    letter: str | None
    model: str
    text: str
    reply_sha256: str = ""
    known: str | None = None


# The keys are the id of a question with its variant, and the number of the prompt, from 0.
Readings = Mapping[tuple[str, int], ReplyReading]


def read_readings(path: Path) -> Readings:
    """Return the readings in a file, the first line for each prompt; empty if the file does not exist.

    Raises:
        DataError: an invalid line.
    """
    readings: dict[tuple[str, int], ReplyReading] = {}
    for reading in read_lines(path, ReplyReading):
        readings.setdefault((reading.id, reading.ask), reading)
    return readings


def agreement(readings: Readings) -> tuple[int, int]:
    """Return how many mixed-in replies the judge reads as the parser does, and how many it was given."""
    mixed = [reading for reading in readings.values() if reading.known is not None]
    return sum(reading.letter == reading.known for reading in mixed), len(mixed)


def refuse_disagreement(path: Path, readings: Readings) -> None:
    """Raise `UsageError` if a judge agrees with the parser on too few readable replies."""
    agreeing, mixed = agreement(readings)
    if agreeing < AGREEMENT * mixed:
        raise UsageError(
            f"{path}: this judge agrees with the parser on {agreeing} of {mixed} replies that the parser can read; "
            f"below {AGREEMENT} its verdicts are not used: choose another model as judge"
        )


def can_be_judged(exchange: Exchange) -> bool:
    """Return whether the prompt's answers can be listed and the reply has text; empty replies are never judged."""
    prompt, reply = exchange.prompt, exchange.reply
    has_options = prompt.kind not in (Kind.CHOICE, Kind.ORDER) or bool(prompt.choices)
    has_text = reply.outcome in (Outcome.ANSWERED, Outcome.UNPARSED) and bool(reply.text.strip())
    return prompt.kind in JUDGED and has_options and has_text


def unread(exchange: Exchange) -> bool:
    """Return whether the parser finds no answer in the reply."""
    return parse(exchange.reply.text, exchange.prompt.kind, exchange.prompt.choices).value is None


def with_readings(attempt: Attempt, readings: Readings) -> tuple[Exchange, ...] | None:
    """Return the exchanges with readings in place of replies; None if no reading gives an answer.

    Raises:
        DataError: a reading of another reply, or of an answer that was not offered.
    """
    exchanges = list(attempt.exchanges)
    for number, exchange in enumerate(attempt.exchanges):
        reading = readings.get((attempt.id, number))
        if reading is None or reading.letter is None or reading.known is not None or not can_be_judged(exchange):
            continue
        verdict = f"the verdict on {attempt.id}, ask {number}"
        if reading.reply_sha256 not in ("", reply_sha256(exchange)):
            raise DataError(f"{verdict}, was made for a reply that is not in this run")
        if parse(reading.letter, exchange.prompt.kind, exchange.prompt.choices).value is None:
            raise DataError(f"{verdict}: {reading.letter!r} is not one of the possible answers")
        reply = replace(exchange.reply, text=reading.letter, outcome=Outcome.ANSWERED)
        exchanges[number] = replace(exchange, reply=reply)
    return tuple(exchanges) if exchanges != list(attempt.exchanges) else None


def reply_sha256(exchange: Exchange) -> str:
    """Return the hex sha256 of a reply's text."""
    return hashlib.sha256(exchange.reply.text.encode("utf-8", "replace")).hexdigest()
