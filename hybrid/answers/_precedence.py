"""Which parts of a reply have priority: its own words over quotes, and corrections over the text that they correct.

`The tool says A, but I see B.` quotes a tool, and `It's (A). Actually no, (B).` corrects itself. Statements about other
people are not the reply's own words either.
"""

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
# Statements about other people: `Most people would guess 7`, `others say that the answer is A`
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
    """Apply `read` to the reply without its quotes; if that has no answer, to a quote with which the reply agrees.

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
