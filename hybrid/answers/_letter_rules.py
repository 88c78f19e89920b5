"""The rules of `hybrid.answers.letters`, explicit ones first; each takes a reply and gives a label or None.

Private to `hybrid.answers.letters`. An explicit rule may give a label that was not offered: the reply has then decided
for something that does not exist, and the caller makes that None.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from hybrid.answers._letter_reply import NOUN, LetterReply, group, label
from hybrid.answers.base import CUE, bare

Rule = Callable[[LetterReply], str | None]

# A whole reply, or the text behind an option letter, counts as short up to here.
SHORT_REPLY: Final = 60
SHORT_OPTION: Final = 40


def only_letter(reply: LetterReply) -> str | None:
    """The reply is a letter: `B`, `(b)`, `A.`, `[C]`, `Point D`, `Option (A)`."""
    if len(reply.text) > SHORT_REPLY:
        return None
    labels = re.escape(reply.letters)
    match = re.fullmatch(rf"\W*(?:{NOUN}\W+)?([{labels}{labels.lower()}])\W*", reply.text)
    return None if match is None else match[1] if match[1] in reply.letters else match[1].upper()


def only_choice(reply: LetterReply) -> str | None:
    """The reply is the text of one choice: `left`, `Yes.`, `the third image`, `左`."""
    return dict(reply.forms).get(bare(reply.text))


@lru_cache(maxsize=64)
def _option_line(letters: str) -> re.Pattern[str]:
    k = re.escape(letters)
    marked = rf"(?:{NOUN}\s)?(?:[(\[]([{k}])[)\]][.:,]?|([{k}])[).:](?!\w))(?P<rest>.*)"
    return re.compile(rf"[-•>\s]*(?:{marked}|(?:{NOUN}\s)?[\"']?([{k}])[\"']?\.?)")


def _option_of(reply: LetterReply, line: str) -> str | None:
    """The letter of a line that is an option: `(B) no`, `C. Point C`, `Point C`, `B`; analysis lines are longer."""
    match = _option_line(reply.letters).fullmatch(line)
    if match is None:
        return None
    rest = (match["rest"] or "").strip()
    # `(A) or (B)`: a second option beside the first leaves both open.
    if _announcement(reply.letters)[1].match(rest):
        return None
    start = reply.choice_at_start(rest)
    ends = start is not None and rest[start[1] : start[1] + 1] in ("", ".", ";", ":")
    return group(match) if len(rest) <= SHORT_OPTION or ends else None


def _single_options(reply: LetterReply) -> list[str | None]:
    """Per line the letter of an option that stands alone; options in a row are a list and decide nothing."""
    found = [_option_of(reply, line) for line in reply.lines]
    padded = [None, *found, None]
    return [
        own if own is not None and before in (None, own) and after in (None, own) else None
        for before, own, after in zip(padded, found, padded[2:], strict=False)
    ]


def closing_option(reply: LetterReply) -> str | None:
    """The last line is an option: `The correct answer is:` and then `(B) right`."""
    return _single_options(reply)[-1]


_OR: Final = r"(?:or|oder|ou)"
_AND: Final = r"(?:and|und|et|y|o|u|e)"
_IS: Final = r"(?:is|was|are|ist|es|est|é|è)"
_WRONG: Final = r"(?:wrong|incorrect|false|not|nicht|falsch|no|incorrecta|falsa|pas|fausse|incorrecte)"


@lru_cache(maxsize=64)
def _announcement(letters: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What announces a letter, and what behind it offers another (`A or B`, `(A), (B)`, not `A and B is wrong`)."""
    token = label(letters)
    adverb = r"(?:(?:most\s)?(?:likely|probably|clearly|therefore|thus|indeed|simply|only|the|now)\s)?"
    between = rf"(?:[^.\n]{{0,60}}?\b{_OR}\b|\s?(?:[,/、]|{_AND}\b|还是|或者?|和))"
    other = rf"{between}\s?(?:{NOUN}\s)?{token}(?!\s{_IS}\b)"
    announced = rf"(?i:{CUE})[\s:=\"'\-]{{0,6}}{adverb}(?:{NOUN}\s)?[\"']?{token}(?!\s{_IS}\s{_WRONG}\b)"
    return re.compile(announced), re.compile(other)


def announced_letter(reply: LetterReply) -> str | None:
    """The last letter that is announced as the answer: `So the answer is B`, `Answer: (C)`, `答案是 B`."""
    announce, other = _announcement(reply.letters)
    found = [m for m in announce.finditer(reply.text) if other.match(reply.text, m.end()) is None]
    return group(found[-1]) if found else None


def announced_choice(reply: LetterReply) -> str | None:
    """The last choice text that is announced as the answer: `the answer is the third image`, `Answer: no`."""
    for match in reversed(list(re.finditer(rf"(?i:{CUE})[\s:=\"'\-]{{0,6}}", reply.text))):
        start = reply.choice_at_start(reply.text[match.end() : match.end() + 200])
        if start is not None:
            return start[0]
    return None


def opening_option(reply: LetterReply) -> str | None:
    """The first line is an option and the rest explains it: `(A) yes` and then prose."""
    return _single_options(reply)[0]


def lone_option(reply: LetterReply) -> str | None:
    """An option stands on a line of its own in the prose, and no line gives another letter."""
    found = set(_single_options(reply)) - {None}
    return found.pop() if len(found) == 1 and found == _line_starts(reply) else None


def opening_choice(reply: LetterReply) -> str | None:
    """The reply begins with the text of a choice as a clause of its own: `No, the cat is ...`, `Yes. It ...`."""
    start = reply.choice_at_start(reply.text[:200])
    return (
        start[0]
        if start is not None and reply.text[start[1] : start[1] + 1] in (".", ",", ";", ":", "!", "\n")
        else None
    )


def _line_starts(reply: LetterReply) -> set[str]:
    """The letters that lines of the reply start with, as an option or as the head of its analysis."""
    k = re.escape(reply.letters)
    start = re.compile(rf"[-•\s]*(?:{NOUN}\s)?(?:[(\[]([{k}])[)\]]|([{k}])(?:[).:](?=\s)|$))|{NOUN}\s([{k}])(?!\w)")
    return {group(m) for m in map(start.match, reply.lines) if m is not None}


def opening_letter(reply: LetterReply) -> str | None:
    """The reply begins with a marked letter, however long its line, and no line gives another: `B. The ...`."""
    k = re.escape(reply.letters)
    match = re.match(rf"[-•\s]*(?:[(\[]([{k}])[)\]]|([{k}])[).:](?=\s))", reply.text)
    if match is None or _announcement(reply.letters)[1].match(reply.text, match.end()):
        return None
    return group(match) if _line_starts(reply) == {group(match)} else None


EXPLICIT_RULES: Final[tuple[Rule, ...]] = (
    only_letter,
    only_choice,
    closing_option,
    announced_letter,
    announced_choice,
    opening_option,
    lone_option,
    opening_choice,
    opening_letter,
)

_DECLINES: Final = re.compile(
    r"\b(?:i'm sorry|i am sorry|i apologi[sz]e|sorry, (?:but )?i|failed to obtain"
    r"|(?:impossible|not possible|difficult|challenging|hard|unable|insufficient|cannot|can't|can not|not able)"
    r"\s(?:\w+\s){0,3}?(?:to\s)?(?:\w+\s){0,2}?"
    r"(?:determined?|say|tell|judge|identify|select|choose|provide|assist|answer|confirm|decide|ascertain|see)"
    r"|cannot be (?:\w+ )?(?:determined|identified|answered|confirmed)"
    r"|none of (?:the|these|them)|neither|no (?:clear|definitive|correct) \w+"
    r"|not (?:listed|provided|visible|present) among)\b",
    re.IGNORECASE,
)


def declines(reply: LetterReply) -> bool:
    """Whether the reply ends by declining (`impossible to determine`), opens with an apology or announces several."""
    if re.match(
        r"(?:i'm|i am|i apolog|sorry|unfortunately)\b[^.]{0,40}(?:sorry|apolog|can't|cannot|unable)", reply.text, re.I
    ):
        return True
    announce, other = _announcement(reply.letters)
    if any(other.match(reply.text, m.end()) for m in announce.finditer(reply.text)):
        return True
    return any(_DECLINES.search(s) for s in reply.sentences[-2:])


_CONTRAST: Final = re.compile(
    r",?\s\b(?:whereas|while|unlike|rather than|compared (?:to|with)|in comparison|as opposed to|than|but|although"
    r"|though|instead of|in contrast|however|because|since|as it|as they|due to"
    r"|(?:that|which) (?:is|are|has|have|does|do) not)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_LEADING_CONTRAST: Final = re.compile(
    r"\A(?:\w+,\s)?(?:while|although|though|unlike|whereas|compared (?:to|with))\b[^,]*,\s*", re.IGNORECASE
)
_NEGATION: Final = re.compile(
    r"\b(?:not|no|neither|nor|none|less|least|lacks?|unlikely|wrong|incorrect|without|too|cannot|on the other hand)\b"
    r"|n't\b",
    re.I,
)
_PREDICATE: Final = re.compile(
    r"\b(?:most|more|best|better|clos(?:er|est)|nearest|likely|correct|right (?:answer|choice)|correspond(?:s|ing)?"
    r"|match(?:es|ing)?|accurately|appropriate|shares?|fits?|completes?|moving|moved|darker|same|similar"
    r"|missing (?:part|piece)|would be|answer)\b",
    re.IGNORECASE,
)
_CONCLUSION: Final = re.compile(
    r"(?:therefore|thus|hence|so|consequently|accordingly|in conclusion|in summary|overall|based on|given|considering"
    r"|finally)\b",
    re.IGNORECASE,
)


def _claim(reply: LetterReply, sentence: str) -> str | None:
    """The one choice that a sentence says fits, its contrasting clauses left out; None for a negated sentence."""
    kept = _CONTRAST.sub("", _LEADING_CONTRAST.sub("", sentence, count=1), count=1)
    if _NEGATION.search(kept) or not _PREDICATE.search(kept):
        return None
    named = reply.named(kept)
    return next(iter(named)) if len(named) == 1 else None


def concluding_claim(reply: LetterReply) -> str | None:
    """The last sentence that draws a conclusion claims one choice: `Therefore, point D corresponds to ...`."""
    for sentence in reversed(reply.sentences):
        if _CONCLUSION.match(sentence):
            return _claim(reply, sentence)
    return None


def opening_claim(reply: LetterReply) -> str | None:
    """The first sentence claims one choice: `Box B more accurately encloses the bun`."""
    return _claim(reply, reply.sentences[0])


def closing_claim(reply: LetterReply) -> str | None:
    """The last sentence claims one choice."""
    return _claim(reply, reply.sentences[-1])


def only_mark(reply: LetterReply) -> str | None:
    """One bracketed letter, and no other, stands in the reply, and in no negated sentence."""
    found = reply.bracketed(reply.text)
    negated = any(reply.bracketed(s) and _NEGATION.search(s) for s in reply.sentences)
    return next(iter(found)) if len(found) == 1 and found <= set(reply.offered) and not negated else None


CLAIM_RULES: Final[tuple[Rule, ...]] = (concluding_claim, opening_claim, closing_claim, only_mark)
