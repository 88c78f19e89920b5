"""The claim rules of `hybrid.answers.letters`, for prose; each takes a reply and gives a label or None.

They run if no explicit rule decides and the reply does not decline.
"""

import re
from typing import Final

from hybrid.answers._letter_reply import LetterReply
from hybrid.answers._letter_rules import Rules, announcements
from hybrid.answers.integers import drop_uncounted, numbers, total

_DECLINES: Final = re.compile(
    r"(?i)\b(?:i'm sorry|i am sorry|i apologi[sz]e|sorry, (?:but )?i|failed to obtain"
    r"|(?:impossible|not possible|difficult|challenging|hard|unable|insufficient|cannot|can't|can not|not able)"
    r"\s(?:\w+\s){0,3}?(?:to\s)?(?:\w+\s){0,2}?"
    r"(?:determined?|say|tell|judge|identify|select|choose|provide|assist|answer|confirm|decide|ascertain|see)"
    r"|cannot be (?:\w+ )?(?:determined|identified|answered|confirmed)"
    r"|none of (?:the|these|them)|neither|no (?:clear|definitive|correct) \w+"
    r"|not (?:listed|provided|visible|present) among)\b"
)


_APOLOGY: Final = re.compile(
    r"(?i)(?:i'm|i am|i apolog|sorry|unfortunately)\b[^.]{0,40}(?:sorry|apolog|can't|cannot|unable)"
)
_TURN: Final = re.compile(r"(?i)[,;]\s(?=(?:but|however|yet|still|though)\b)")


def declines(reply: LetterReply) -> bool:
    """Return whether the reply opens with an apology, announces several letters, or ends by declining to answer."""
    if _APOLOGY.match(reply.text) or any(left_open for _, left_open in announcements(reply)):
        return True
    return any(_DECLINES.search(s) for s in reply.sentences[-2:]) and reluctant_claim(reply) is None


# A "without" phrase is removed unless it follows a verb such as "is": `without naming anyone, the third image` denies
# nothing, but `is without the missing part` does.
_WITHOUT: Final = re.compile(
    r"(?i)(?<!\bis\s)(?<!\bare\s)(?<!\bwas\s)(?<!\bwere\s)(?<!\bbe\s)(?<!\bcomes\s)\bwithout\b[^,;:.]*"
)
_NO_DENIAL: Final = re.compile(r"(?i)\b(?:(?:there is\s)?no doubt(?:\sthat)?|not only|no less than)\b")
# `similar but different images`: this "but" connects two adjectives; the "but" of a clause is followed by one of these
# small words or by a verb.
_SMALL: Final = (
    r"(?:the|an?|its?|they|their|this|that|these|those|there|he|she|his|her|i|we|you|one|two|all|some|any|each|both"
    r"|in|on|at|of|to|from|by|with|without|for|near|under|over|above|below|behind|inside|outside|between|as|than|towards"
    r"|and|or|if|when|is|are|was|were|be|been|has|have|had|do|does|did|can|could|may|might|must|should|will|would"
    r"|not|also|still|instead|rather|now|then|again|even|only|just|more|most|less|no|image|point|box|option|picture)"
)
_TWO_ADJECTIVES: Final = re.compile(
    rf"(?i)\sbut\s(?:not\s)?(?:\w+ly\s)?(?!{_SMALL}\b|\w+s\s)[a-z]+(?=\s(?!{_SMALL}\b)[a-z]+)"
)
_CONTRAST: Final = re.compile(
    r"(?i),?\s\b(?:whereas|while|unlike|rather than|compared (?:to|with)|in comparison|as opposed to|than|but|although"
    r"|though|instead of|in contrast|however|because|since|as it|as they|due to"
    r"|(?:that|which) (?:is|are|has|have|does|do) not)\b.*"
    # A contrast after a comma: `fits, not the third image`, `fits, the third does not`
    r"|,\s(?:and\s)?not\s(?!only\b).*"
    r"|[,;]\s(?:and\s|but\s)?(?:the\s)?(?:first|second|third|fourth|others?|rest|(?-i:[A-Z]))(?:\s(?:image|one|picture))?"
    r"\s(?:does|do|is|are|has|have|can)(?:\snot\b|n't\b).*"
)
_LEADING_CONTRAST: Final = re.compile(
    r"(?i)\A(?:\w+,\s)?(?:while|although|though|unlike|like|similar(?:ly)? to|whereas|compared (?:to|with)|since"
    r"|comparing)\b[^,]*,\s*"
)
_NEGATION: Final = re.compile(
    r"(?i)\b(?:not|no|neither|nor|none|except|apart from|(?:all|everything|any\w*) but|less|least"
    r"|lacks?|unlikely|wrong|incorrect|without|too|cannot|on the other hand)\b"
    r"|n't\b|\bdoubt|\b(?:people|many|some|humans) (?:would|might|may|often)\b"
    r"|\bif (?!i\b)[^,]{0,60}\b(?:were|was)\b|\bsecond (?:answer|choice)\b|\bwould\b.{0,80}\sif\b|\b(?:perhaps|maybe)\b"
    r"|\b(?:let me|i (?:need|have) to|i'd (?:need|have) to)\b"
)
# `fits, but it does not match in colour` and `better than A but worse than C` take back the claim about the choice.
_TAKEN_AWAY: Final = re.compile(
    r"(?i)\bbut\s(?:(?:it|this|that)\s(?:does|is|has|can)(?:\snot\b|n't\b)|(?:worse|less)\b[^,;]{0,40}\bthan\b)"
)
_PREDICATE: Final = re.compile(
    r"(?i)\b(?:most|more|best|better|clos(?:er|est)|near(?:er|est)|likel(?:y|ier)|correct|right (?:answer|choice)"
    r"|correspond(?:s|ing)?|match(?:es|ing)?|accurately|appropriate|shares?|fits?|completes?|moving|moved|darker|same|similar"
    r"|missing (?:part|piece)|would be|must be|answer)\b"
    # Matches `Option A seems right`, but neither `that is right` nor `A is right of B`.
    r"|(?-i:\b[A-Z])[)\]]?\s(?:is|looks|seems|appears)\s(?:to be\s)?(?:right|true)(?=\s?[.,;!]|\s?$)"
)
CONCLUSION: Final = re.compile(
    r"(?i)(?:therefore|thus|hence|so|consequently|accordingly|in conclusion|in summary|overall|based on|given"
    r"|considering|finally)\b"
)


def claim(reply: LetterReply, sentence: str) -> str | None:
    """Return the only choice that a sentence says fits.

    Asides and contrasts are ignored. The result is None if the sentence is a question or denies that the choice fits.
    """
    # A question claims nothing: `A is closer? No.`
    if sentence.endswith("?") and sentence != reply.text:
        return None
    plain = _NO_DENIAL.sub("", _TWO_ADJECTIVES.sub("", _WITHOUT.sub("", sentence)))
    core = _CONTRAST.sub("", _LEADING_CONTRAST.sub("", plain))
    if _NEGATION.search(core) or _TAKEN_AWAY.search(plain) or not _PREDICATE.search(core):
        return None
    letters = reply.find_labels(core)
    return next(iter(letters)) if len(letters) == 1 else None


def reluctant_claim(reply: LetterReply) -> str | None:
    """Return the choice that the text after the last doubt claims: `Hard to tell. However, the third image ...`."""
    clauses = [clause for sentence in reply.sentences for clause in _TURN.split(sentence)]
    doubts = [place for place, clause in enumerate(clauses) if _DECLINES.search(clause)]
    later_clauses = clauses[doubts[-1] + 1 :] if doubts else []
    concluding = [clause for clause in later_clauses if CONCLUSION.match(clause)]
    claims = {claim(reply, clause) for clause in concluding[-1:] or later_clauses} - {None}
    return claims.pop() if len(claims) == 1 else None


def stated_number(reply: LetterReply) -> str | None:
    """If all choices are numbers, return the one that the reply or its conclusion states: `3 plates`, `two dogs`."""
    choice_numbers = [numbers(choice) for choice in reply.choices]
    if not all(len(stated) == 1 for stated in choice_numbers):
        return None
    concluding = [s for s in reply.sentences if CONCLUSION.match(s)]
    for passage in (reply.text, *concluding[-1:]):
        stated = tuple({total(drop_uncounted(passage))} - {None} or set(numbers(passage)))
        if len(stated) == 1 and not _NEGATION.search(passage):
            return (
                reply.offered[choice_numbers.index(stated)]
                if choice_numbers.count(stated) == 1 and stated != (None,)
                else None
            )
    return None


# A conclusion inside a sentence: `A is farther than B, so B is closer`; not `A is close, so is B`.
SO: Final = re.compile(
    r"(?i)(?:[,;]\s(?:and\s)?(?:so|therefore|hence|thus|which means(?: that)?|meaning(?: that)?)\b|\s(?:=>|→|⇒)),?\s"
    r"(?!(?:is|are|does|do|might|could|would|may|can)\b)"
)


def concluding_claim(reply: LetterReply) -> str | None:
    """Return the choice that the last concluding sentence or clause claims: `Therefore, point D corresponds to ...`."""
    for sentence in reversed(reply.sentences):
        *_, clause = SO.split(sentence)
        if clause != sentence or CONCLUSION.match(sentence):
            return claim(reply, clause)
    return None


def opening_claim(reply: LetterReply) -> str | None:
    """Return the choice that the first sentence claims: `Box B more accurately encloses the bun`."""
    return claim(reply, reply.sentences[0])


def closing_claim(reply: LetterReply) -> str | None:
    """Return the choice that the last sentence claims."""
    return claim(reply, reply.sentences[-1])


def only_mark(reply: LetterReply) -> str | None:
    """Return the only bracketed letter of the reply, if it is not in a negated sentence."""
    letters = reply.bracketed(reply.text)
    is_question = reply.text.endswith("?")
    negated = any(
        reply.bracketed(s) and (_NEGATION.search(s) or (s.endswith("?") and not is_question)) for s in reply.sentences
    )
    return next(iter(letters)) if len(letters) == 1 and letters <= set(reply.offered) and not negated else None


CLAIM_RULES: Final[Rules] = (stated_number, reluctant_claim, concluding_claim, opening_claim, closing_claim, only_mark)
