"""Separate a reply's quotes of tools, as in `The tool says A, but I see B.`, and its own words, which outweigh them."""

import re
from collections.abc import Callable
from typing import Final

from hybrid.answers.base import Parsed, T, undecided

_TOOL: Final = (
    r"\b(?:(?:the|a|an|one|another|this|that|my)\s)?(?:[a-z]+\s){0,2}?"
    r"(?:tool|detector|specialist|segmenter|estimator)(?:'s\s(?:answer|finding|result|output|verdict)\s(?:is|was))?"
)
_SAYS: Final = (
    r"(?:says?|said|reports?|reported|suggests?|suggested|prefers?|preferred|chose|picked|predict(?:s|ed)|answer(?:s|ed)"
    r"|claim(?:s|ed)|count(?:s|ed)|returned|indicate[sd]|found|finds|detect(?:s|ed)|show(?:s|ed))"
)
_FRAME: Final = re.compile(
    rf"(?:{_TOOL}(?:(?<=\sis)|(?<=\swas)|\s?:|,?\s(?:which\s)?{_SAYS}(?:\sthat)?\b)|\baccording to{_TOOL[2:]}\b),?\s?"
    r"(?P<said>[^.;!?\n,]*(?:,(?!\s(?:but|and|which|while|yet|however|though|although|i)\b)[^.;!?\n,]*)*)",
    re.IGNORECASE,
)
_AGREES: Final = re.compile(r"[,.;]?\s?(?:\b(?:and|which)\s)?\bi (?:also )?(?:agree|concur)\b[^.;!?\n]*", re.IGNORECASE)
_DISAGREES: Final = re.compile(
    r"\bdisagree|\bdoubt|\bwrong\b|\bincorrect\b|\bmistaken?\b|\bdiffer|\b(?:not|never|cannot)\b|n't\b|\bunsure\b",
    re.IGNORECASE,
)


def read_own(text: str, read: Callable[[str], Parsed[T]]) -> Parsed[T]:
    """Apply `read` to the reply without its quotes; to the quote if the reply agrees; else to the whole.

    No answer if the reply only quotes a tool and disagrees.
    """
    own = _FRAME.sub("", text)
    if own == text:
        return read(text)
    found = read(own.strip(" ,.;\n"))
    if found.value is not None:
        return found
    if _DISAGREES.search(own):
        return undecided()
    return read(_AGREES.sub("", _FRAME.sub(r"\g<said>", text)).strip() if _AGREES.search(own) else text)
