"""Verdicts without a judge: the content of their file, the replies that may be judged, and what replaces a reply."""

import pytest

from hybrid.core.errors import DataError
from hybrid.core.types import Attempt, Exchange, Kind, Outcome, Prompt, Reply
from hybrid.scoring.readings import ReplyReading, with_readings

CHOICES = ("red", "green", "blue")


def exchange(text: str, kind: Kind = Kind.CHOICE, outcome: Outcome = Outcome.ANSWERED) -> Exchange:
    choices = CHOICES if kind in (Kind.CHOICE, Kind.ORDER) else ()
    return Exchange(Prompt(("Which?",), kind, choices), Reply(text, outcome))


def verdict(letter: str | None, ask: int = 0, sha256: str = "", identity: str = "q") -> ReplyReading:
    return ReplyReading(identity, ask, letter, "judge:one", f"Answer: {letter}", sha256)


def attempt(*exchanges: Exchange) -> Attempt:
    return Attempt("q", exchanges, 1.5)


@pytest.mark.parametrize(
    ("letter", "kind"), [("D", Kind.CHOICE), ("red or blue", Kind.CHOICE), ("maybe", Kind.YES_NO), ("-1", Kind.INTEGER)]
)
def test_a_verdict_that_was_not_offered_is_an_error(letter: str, kind: Kind) -> None:
    with pytest.raises(DataError, match=f"^the verdict on q, ask 0: '{letter}' is not one of the possible answers$"):
        with_readings(attempt(exchange("hm", kind)), {("q", 0): verdict(letter)})
