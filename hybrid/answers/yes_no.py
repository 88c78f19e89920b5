"""Parse a reply to a yes/no question to "yes" or "no", or None.

The second rule is MVP-Bench's own rule (the text before the first full stop and comma) with more words. The rules after
it replace the judge model that the paper uses if its rule fails.
"""

import re
from typing import Final, Literal

from hybrid.answers._precedence import corrections
from hybrid.answers.base import (
    CUE,
    Parsed,
    bare,
    denies_existence,
    first_match,
    is_asked,
    sentences,
    statement,
    undecided,
)
from hybrid.answers.lexicon import TRANSLATIONS

YesNo = Literal["yes", "no"]
_WORDS: Final[tuple[YesNo, YesNo]] = ("yes", "no")
# "No" before one of these begins a separate sentence ("No there is a cat"); before a noun, "no" is a determiner.
_AFTER_NO: Final = r"(?:the|there|this|that|it|he|she|they|these|those|i|we|because|since|as|you)\b"
_EITHER: Final = re.compile(r"(?i)\byes\s?(?:/|or|and)\s?no\b")
# Other words for yes and no. At the start of a longer reply, `Certainly!` and `Right,` may not be an answer.
_CLEAR: Final[dict[YesNo, str]] = {
    "yes": r"yeah|yep|yup|correct|true|indeed|i (?:think|believe) so",
    "no": r"nope|nah|incorrect|false|not really|not at all|i don't think so"
    r"|by no means|not that i (?:can )?see|(?:definitely|absolutely|certainly|of course) not",
}
_ALONE: Final[dict[YesNo, str]] = {
    "yes": r"absolutely|definitely|certainly|of course|affirmative",
    "no": r"negative|(?:i'm )?afraid not",
}
_LIKELY: Final = r"(?:(?:most |very |quite )?(?:probably|likely|possibly)|i (?:would|'d) (?:guess|say))[,:]?\s"
_OF: Final = r"(?:(?:that|it|this)(?:'s| is)|(?:that|this|the) statement is)\s"


def _word(text: str) -> YesNo | None:
    low = bare(text)
    return next((w for w in _WORDS if low == w or low in TRANSLATIONS[w]), None)


def _other_word(text: str, *word_lists: dict[YesNo, str]) -> YesNo | None:
    low = bare(text)
    return next((w for words in word_lists for w in _WORDS if re.fullmatch(rf"(?:{_OF})?(?:{words[w]})", low)), None)


# Denied verdicts: `It is not false.`, `That isn't true.`
_DENIED: Final = re.compile(
    r"(?:it|that|this|the statement)(?:'s not| is not| isn't) (?:(false|wrong|incorrect|untrue)|true|correct|right)"
)


def only_word(text: str) -> YesNo | None:
    """Read a reply that is only the word or a synonym: `Yes.`, `n`, `是`, `Nope`, `Probably yes`, `It is not false`."""
    low = bare(text)
    if denied := _DENIED.fullmatch(low):
        return "yes" if denied[1] else "no"
    likely = re.fullmatch(rf"(?:{_LIKELY})?(y|n|yes|no)", low)
    return ("yes" if likely[1][0] == "y" else "no") if likely else _word(text) or _other_word(text, _CLEAR, _ALONE)


def first_clause(text: str) -> YesNo | None:
    """Read the text before the first full stop, cut at its first comma, as the word (MVP-Bench's rule)."""
    clause = re.split(r"[,、]", re.split(r"[.。]", text, maxsplit=1)[0], maxsplit=1)[0]
    return _word(clause) or _other_word(clause, _CLEAR)


def announced(text: str) -> YesNo | None:
    """Read the word that is last announced as the answer: `So the answer is no`, `I'd say yes`."""
    cue = rf"(?:{CUE}|\bi(?:'d| would) say\b)[\s:=\"'\-]{{0,6}}"
    word = r"(yes|no|[yn](?=\s?(?:[,;!)\n]|\.(?!\w)|$)))\b"
    cued = rf"(?i){cue}{word}(?!['’]|\s(?:longer|more)\b|\s?(?:/|or|and)\s?(?:yes|no)\b)"
    words = [match[1] for match in re.finditer(cued, text) if not is_asked(match)]
    return ("yes" if words[-1][0] in "yY" else "no") if words else None


def opening_word(text: str) -> YesNo | None:
    """Read the word at the start of a longer reply: `Yes - the man ...`, `No; he is ...`, `Yes the man is`."""
    share = r"\w+\W{0,4}[0-9]{1,3}\s?%\W{0,3}(?:yes|no)\b"
    word = rf"(yes\b(?!\?\s?no\b)|no\b(?=\s?[^\w\s]|\s?\n|\s{_AFTER_NO}))"
    match = re.match(rf"(?i)\W{{0,3}}(?!{share}){word}", text)
    return _word(match[1]) if match else None


def closing_word(text: str) -> YesNo | None:
    """Read the last sentence or line if it is only the word."""
    return _word(sentences(text)[-1])


def concluded(text: str) -> YesNo | None:
    """Read the word as a conclusion at the end of the last sentence: `I see a dog, so yes`."""
    match = re.search(
        r"(?i)(?:,|;|-|—|–|^)\s?(?:so|hence|thus|therefore),?\s(?:it's\s)?(yes|no)\W*$", sentences(text)[-1]
    )
    return _word(match[1]) if match else None


def absent(text: str) -> YesNo | None:
    """Read a reply that only states that something is not in the picture: `There is no cat in the picture`."""
    return "no" if denies_existence(text) else None


RULES: Final = (only_word, first_clause, announced, opening_word, closing_word, concluded, absent)
AGAIN: Final = (only_word, announced, concluded)


def parse_yes_no(text: str) -> Parsed[YesNo]:
    """Read the yes or no in any text; None if there is neither, or both are offered ("yes or no")."""
    clean = statement(text)
    if not clean or _EITHER.match(clean):
        return undecided()
    for correction in corrections(clean):
        for candidate in filter(sentences, correction.texts):
            parsed: Parsed[YesNo] = first_match(AGAIN, candidate)
            if parsed.value is not None:
                return parsed
    return first_match(RULES, clean)
