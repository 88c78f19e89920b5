"""Separate a reply's own words from quotes of tools and statements about other people; its own words have priority."""

import re
from collections.abc import Callable
from typing import Final

from hybrid.answers.base import Parsed, T, undecided

_TOOLS: Final = ("tool", "detector", "specialist", "segmenter", "estimator")
_TOOL: Final = (
    r"\b(?:(?:the|a|an|one|another|this|that|my)\s)?(?:[a-z]+\s){0,2}?"
    rf"(?:{'|'.join(_TOOLS)})(?:'s\s(?:answer|finding|result|output|verdict)\s(?:is|was))?"
)
_SAYS: Final = (
    r"(?:says?|said|reports?|reported|suggests?|suggested|prefers?|preferred|chose|picked|predict(?:s|ed)|answer(?:s|ed)"
    r"|claim(?:s|ed)|count(?:s|ed)|returned|indicate[sd]|found|finds|detect(?:s|ed)|show(?:s|ed))"
)
_FRAME: Final = re.compile(
    rf"(?i)(?:{_TOOL}(?:(?<=\sis)|(?<=\swas)|\s?:|,?\s(?:which\s)?{_SAYS}(?:\sthat)?\b)|\baccording to{_TOOL[2:]}\b)"
    r",?\s?(?P<said>[^.;!?\n,]*(?:,(?!\s(?:but|and|which|while|yet|however|though|although|i)\b)[^.;!?\n,]*)*)"
)
# `Most people would guess 7`, `others say that the answer is A`
_PEOPLE: Final = re.compile(
    r"(?i)\b(?:(?:(?:most|many|some|other|few|several|all|the)\s(?:of\s(?:the|them)\s)?)?"
    r"(?:people|persons|humans|others|users|viewers|observers|participants|kids|children)"
    r"|most|many|some|a few|they|everyone|everybody|someone|somebody)\s"
    r"(?:(?:would|might|may|could|will|do|did|also|often|usually|typically|tend to)\s"
    r"(?:(?:most\s)?(?:likely|probably)\s)?){0,2}"
    r"(?:guess(?:es|ed)?|says?|said|thinks?|thought|picks?|picked|chooses?|chose|selects?|selected|answer(?:s|ed)?"
    r"|believe[sd]?|vote[sd]? for|go(?:es)? (?:with|for))\b(?:\s?:|\sthat\b)?\s?"
    r"(?P<said>(?:(?!\s(?:but|yet|while|whereas|though|although|however)\b)[^.;!?\n,])*)"
)
_AGREES: Final = re.compile(r"(?i)[,.;]?\s?(?:\b(?:and|which)\s)?\bi (?:also )?(?:agree|concur)\b[^.;!?\n]*")
_DISAGREES: Final = re.compile(
    r"(?i)\bdisagree|\bdoubt|\bwrong\b|\bincorrect\b|\bmistaken?\b|\bdiffer|\b(?:not|never|cannot)\b|n't\b|\bunsure\b"
)


def read_own(text: str, read: Callable[[str], Parsed[T]]) -> Parsed[T]:
    """Apply `read` to the reply without its quotes; without an answer there, to a quote with which the reply agrees.

    Otherwise, a reply that quotes a tool is read as a whole. There is no answer if the reply only quotes a tool and
    disagrees, or only says what people would answer.
    """
    # Most replies name no tool, and searching for the word is fifty times as fast as searching for the quote.
    low = text.casefold()
    for frame in (_PEOPLE, _FRAME) if any(word in low for word in _TOOLS) else (_PEOPLE,):
        body = frame.sub("", text)
        if body == text:
            continue
        parsed = read(body.strip(" ,.;\n"))
        if parsed.value is not None:
            return parsed
        if _AGREES.search(body) and not _DISAGREES.search(body):
            return read(_AGREES.sub("", frame.sub(r"\g<said>", text)).strip())
        if frame is _PEOPLE or _DISAGREES.search(body):
            return undecided()
    return read(text)
