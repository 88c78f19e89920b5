"""Self-corrections in a reply, as in `It's (A). Actually no, (B).`: the later text has priority."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from hybrid.answers.base import Parsed, T, undecided

# Maximum number of corrections to try, from the last one; replies that think aloud often say "wait".
MAX_CORRECTIONS: Final = 8

# A correction begins a clause: after punctuation or a line break, never inside `is actually`.
_CLAUSE: Final = r"(?:(?<=[.!?…,;:\n–—-])|(?<=[.!?…,;:\n–—-]\s)|(?<=[.!?…\n][\"')\]]\s))"
_PAUSE: Final = r"[\s,.!:;…–—-]*"
_NO: Final = r"no\b(?=\s?(?:[,.!:;…–—-]|$)|\s[(\[\"'])"
_TAKES_BACK: Final = (
    rf"(?:actually|wait|oh|sorry|hold on)\b{_PAUSE}{_NO}|no\b{_PAUSE}(?:wait|hold on|sorry|scratch that)\b"
    r"|scratch that\b|strike that\b|correction(?=\s?[:,–—-])|my (?:mistake|bad|error)\b|i take (?:that|it) back\b"
    r"|i (?:was|am) (?:wrong|mistaken)\b|i'm (?:wrong|mistaken)\b|i (?:made|have made) (?:a mistake|an error)\b"
    r"|let me correct (?:myself|that)\b|(?:sorry\b[,\s]*)?(?<!do )i (?:mean|meant)\b|or rather\b(?! than)"
)
# `No, (B)` and `No, it's B` are corrections; `No, the cat is ...` may be an answer, and `Sorry, I ...` a refusal.
_ANSWERS: Final = r"(?:[(\[\"']?(?-i:[A-Z])[)\]\"']?(?:[\s,.!]|$)|it(?:'s| is)\b|the (?:correct )?answer\b)"
_THINKS_AGAIN: Final = (
    r"(?:actually|wait|hold on|on second thoughts?|on reflection|upon reflection|come to think of it)\b"
    rf"|(?:no|sorry)\b(?=[,.!:;–—-]*\s{_ANSWERS})"
)
_CORRECTION: Final = re.compile(rf"(?i){_CLAUSE}\s?(?:(?P<taken>{_TAKES_BACK})|{_THINKS_AGAIN}){_PAUSE}")


@dataclass(frozen=True)
class SelfCorrection:
    """A correction in a reply.

    `texts` may contain the new answer, the more likely one first: the text after the correction and, if it says "no",
    the same text with that word, as in `It's yes. Actually, no.` `takes_back` means that the old answer is void even if
    there is no new one.
    """

    texts: tuple[str, ...]
    takes_back: bool


def corrections(text: str) -> Iterator[SelfCorrection]:
    """Yield the corrections in a normalised text, the last one first."""
    for match in reversed(list(_CORRECTION.finditer(text))[-MAX_CORRECTIONS:]):
        tail = text[match.end() :]
        retraction = match["taken"] or ""
        no = retraction[-2:]
        yield SelfCorrection(
            (tail, text[match.end("taken") - 2 :]) if no.casefold() == "no" else (tail,), bool(retraction)
        )


def read_corrected(text: str, read: Callable[[str], Parsed[T]], reread: Callable[[str], Parsed[T]]) -> Parsed[T]:
    """Apply `reread` after the last correction that contains an answer, else `read` to the whole text.

    There is no answer if a correction takes the answer back and gives no other.
    """
    for correction in corrections(text):
        for candidate in correction.texts:
            parsed = reread(candidate)
            if parsed.value is not None:
                return parsed
        if correction.takes_back:
            return undecided()
    return read(text)
