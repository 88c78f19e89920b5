"""Parse a reply to a counting question (HVSBench Q2) to an integer, or None.

Follows Table 8 of the HVSBench paper: digits and number words are accepted. A number that is followed by the numbers of
its parts counts as the total. The scorer chooses the value for a reply without a number.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from hybrid.answers._precedence import read_corrected, read_own
from hybrid.answers.base import CUE, Parsed, bare, denies_existence, first_match, sentences, statement, undecided
from hybrid.answers.lexicon import ELSEWHERE, HAN, TENS, UNITS, WORDS

# Counts in these questions are small; a longer run of digits is not a count.
MAX_DIGITS: Final = 9
_DIGITS: Final = r"(?<![A-Za-z0-9_.,])-?[0-9][0-9,]*(?:\.[0-9]+)?(?![A-Za-z_0-9]|\.[0-9])"
# Commas separate groups of three digits; "1,2,3" is a list and "0,5" a fraction.
_WHOLE: Final = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+")
_LIST: Final = re.compile(r"[0-9]+(?:,\s?[0-9]+)+")
_TEN: Final = "|".join(TENS)
_UNIT: Final = "|".join(sorted(UNITS, key=len, reverse=True))
# "one" is a pronoun after these: "the one on the left", "no one".
_PRONOUN: Final = "".join(
    rf"(?<!\b{word}\s)" for word in ("no", "the", "this", "that", "each", "every", "which", "any")
)
_WORD: Final = rf"{_PRONOUN}\b(?:(?:{_TEN})(?:[-\s](?:{_UNIT}))?|{_UNIT})\b"
_NUMBER: Final = re.compile(rf"{_DIGITS}|{_WORD}", re.IGNORECASE)


def _value(number: str) -> int | None:
    """Return the integer that a match of `_NUMBER` spells; None for fractions, lists, negative and too long numbers."""
    if number[0] in "-0123456789":
        integer_part, _, fraction = number.rstrip(",").partition(".")
        digits = integer_part.replace(",", "")
        ok = _WHOLE.fullmatch(integer_part) is not None and len(digits) <= MAX_DIGITS and not fraction.strip("0")
        return int(digits) if ok else None
    return sum(WORDS[part] for part in re.split(r"[-\s]", number.casefold()))


# A range or a bound is not a number: `10-12`, `3 or 4`, `between 5 and 7`, `at least 3`, `5+`.
_N: Final = rf"(?:(?<![A-Za-z0-9_.,])[0-9]{{1,9}}|{_WORD})"
_TO: Final = r"(?:[–—~]|(?:to|or|bis|oder|à|ou|a|o)\b|到|至|或|(?:or so)?,?\s?(?:maybe|perhaps|possibly|or)\b)"
_MORE: Final = (
    r"(?:more|less|fewer|greater|at least|at most|up to|over|under|above|below|maximum|minimum|no more|not more)"
)
_RANGE: Final = re.compile(
    rf"(?i)\bbetween\s{_N}\sand\s{_N}|[0-9]{{1,9}}\s?[-/]\s?[0-9]|{_N}\s?{_TO}\s?{_N}|\b{_MORE}(?:\sthan)?\s{_N}|{_N}\s?\+(?!\s?(?:[0-9]|{_WORD}))"
    rf"|{_N}\s(?:hundred|thousand|million|billion)\b"
)
_SOME: Final = " some "

# Numbers with grouped digits: `1 000`, `1'000`, `120 000`; `120 340` may also be two numbers, and in brackets it is a
# point.
_GROUPED: Final = re.compile(
    r"(?<![\w.,'(\[-])(?<![0-9]\s)(?:(?:[0-9]{1,2}(?:\s[0-9]{3})+|[0-9]{1,3}(?:\s000)+|[0-9]{1,3}(?:'[0-9]{3})+)"
    r"|([0-9]{3}(?:\s[0-9]{3})+))(?![\w']|,[0-9]|\s[0-9])"
)
_DOZEN: Final = re.compile(r"(?i)\b(?:(half\s(?:a\s)?)|(an?|one|two|three|four|[0-9]{1,2})\s)dozen\b(\sor\b.*)?")
_GLOSS: Final = re.compile(rf"(?i)({_DIGITS}|{_WORD})\s?\(({_DIGITS}|{_WORD})\)")
# A numeral inside other words (`一些`, `第一`) is not a count: it must begin the reply or follow "is" or "has".
_HAN_NUMBER: Final = re.compile(
    rf"(?:^|(?<=[是为為有共见見:は和与與、,]))\s?([{''.join(HAN)}]?)(十?)([{''.join(HAN)}]?)\s?"
    r"(?=[个個只隻人台本匹つ枚头頭条條辆輛位张張名件です。.!]|$)"
)
# A number word as the whole reply: `drei`, `drei Autos`, `Hay tres perros`; not `keine Ahnung`, `seis to`.
_ALONE: Final = re.compile(
    r"(?:(?:hay|es (?:sind|gibt)|il y a|há|ci sono)\s)?"
    r"([^\W\d]+)(\s(?!(?:to|ahnung|zweifel|id[eé]e|idea|ideia|problem\w*|doute|duda|dúvida|dubbio)\b)[^\W\d]+)?"
)


_SIX_THINGS: Final = re.compile(
    r"(?!(?:gentile|grande|felice|triste|forte|intelligente|importante|capace|utile|geniale|speciale|certe|qui|mai)$)"
    r"(?:[^\W\d]+[ie]|auto|foto|moto|video|euro|bar|film|città|persone)"
)


def spelled_out(text: str) -> str:
    """Write the numbers of a text in plain digits: `1 000`, `a dozen`, `5 (five)`, `三个`, a lone `drei`."""
    text = _GROUPED.sub(lambda match: _SOME if match[1] else re.sub(r"[\s']", "", match[0]), text)
    text = re.sub(r"(?i)\bnot a single one\b", "none", text)
    text = _DOZEN.sub(lambda m: _SOME if m[3] else str(6 if m[1] else 12 * (only_number(m[2]) or 1)), text)
    text = _GLOSS.sub(lambda match: match[1] if _value(match[1]) == _value(match[2]) else match[0], text)
    text = _HAN_NUMBER.sub(_from_han, text)
    alone = _ALONE.fullmatch(bare(text))
    value = ELSEWHERE.get(alone[1]) if alone else None
    # The word for 1 can also be an article: `un peu`, `ein Problem`. Italian `sei` means "you are" if no plural
    # follows: `sei bravo`.
    other = alone and alone[2] and (value == 1 or (alone[1] == "sei" and not _SIX_THINGS.fullmatch(alone[2].strip())))
    return text if alone is None or value is None or other else str(value)


def _from_han(match: re.Match[str]) -> str:
    tens, ten, units = match.groups()
    # In `是一个好问题`, the numeral is an article.
    lead, tail = match.string[: match.start()], match.string[match.end() + 1 :]
    article = (tens or units) == "一" and not ten and lead.endswith("是") and tail
    if article or not (tens or ten or units) or (tens and units and not ten):
        return match[0]
    return f" {10 * HAN.get(tens, 1) + HAN.get(units, 0) if ten else HAN[tens or units]}"


def numbers(text: str) -> tuple[int | None, ...]:
    """Return all numbers in a text in order; a number that is not a count, or is part of a range or bound, is None."""
    ends = {place for match in _RANGE.finditer(text) for place in range(match.start(), match.end())}
    return tuple(None if m.start() in ends else _value(m[0]) for m in _NUMBER.finditer(text))


# Numbers that are not counts: a point or a size, a share, a label, a year, a score, a denied number.
_ASIDE: Final = re.compile(
    r"(?i)[(\[]\s?-?[0-9.]{1,9}(?:\s?[,;x×]\s?-?[0-9.]{1,9}){1,9}\s?[)\]]|\b[0-9]{1,5}\s?(?:[x×]|by)\s?[0-9]{1,5}\b|\b[0-9.]{1,6}\s?%"
    r"|(?<!\bthe\s)(?<!\bthis\s)\b(?:image|picture|figure|step|row|column|line|frame|part|view|option|question|section|panel|page)"
    r"\s#?[0-9]+\b|\b[a-z]{1,20}-[0-9]{1,9}\b|\b[0-9]{1,9} times\b|\b(?:in|from|since|year)\s(?:19|20)[0-9]{2}\b"
    rf"|\b(?:confidence|score|probability)\b[^0-9\n]{{0,12}}[0-9.]{{1,9}}|\bnot\s{_N}"
)
_LEFT_OUT: Final = re.compile(
    r"(?i)\b(?:can't|cannot|can not|unable|not able|don't know)\b"
    r"|^(?:is|are|how|which|what|do|does|can|could|was|were)\b.*\?$"
)


def drop_uncounted(text: str) -> str:
    """Remove questions, refusals, ranges, and numbers that are not counts from the text."""
    text_left = "\n".join(s for s in sentences(_ASIDE.sub(" ", spelled_out(text))) if not _LEFT_OUT.search(s))
    return _RANGE.sub(_SOME, text_left).strip()


def only_number(text: str) -> int | None:
    """Read a reply that is only the number: `10`, `"22"`, `8.`, `Five`."""
    match = _NUMBER.fullmatch(bare(text)) if not text.startswith("-") else None
    return _value(match[0]) if match else None


def announced(text: str) -> int | None:
    """Read the last number that is announced as the answer: `Answer: 5`."""
    numbers = re.findall(rf"(?i)(?:{CUE})[\s:=\"'\-]{{0,6}}({_NUMBER.pattern})(?!\s[0-9])", text)
    return _value(numbers[-1]) if numbers else None


_SUM: Final = (
    r"(?:in total|in all|altogether|overall|(?:all )?together|combined|remain|insgesamt|(?:en|au) total|in totale)"
)
_TOTAL: Final = re.compile(
    rf"(?i)({_NUMBER.pattern})(?:\s\w+){{0,3}}\s{_SUM}\b"
    rf"|(?:\b(?:{_SUM}|total(?:s|ing)?(?: of| is)?|(?:adds?|sums?) (?:up )?to)\b|一共|总共|共|合計|全部で)"
    rf"(?:,? there (?:are|is))?[\s:,|]{{0,4}}({_NUMBER.pattern})"
    rf"|(?:\b(?:mak(?:es|ing)|giv(?:es|ing)|yielding|equal(?:s|ling)"
    r"|that(?:'s| is)|(?:so|thus|therefore|hence),?(?: there (?:are|is))?)\s|=>|[=→⇒])"
    rf"\s?({_NUMBER.pattern})"
)


def total(text: str) -> int | None:
    """Read the last number stated as the sum: `2 on the left and 3 on the right, so 5 in total`, `2 + 3 = 5`."""
    totals = list(_TOTAL.finditer(text))
    if not totals or (totals[-1][3] and any_number(text[totals[-1].end() :])):
        return None
    return _value(totals[-1][1] or totals[-1][2] or totals[-1][3])


def closing_field(text: str) -> int | None:
    """Read the number at the end of the reply after the only label with a number: `... empty. Number of dogs: 2`."""
    fields = re.findall(rf"(?i)[^\W\d_]\s?[:=]\s?({_NUMBER.pattern})", text)
    return _value(fields[0]) if len(fields) == 1 and text.rstrip(" .!").endswith(fields[0]) else None


def any_number(text: str) -> bool:
    """Return whether a text from `drop_uncounted` has a number, or had a range."""
    return _SOME in f" {text} " or _NUMBER.search(text) is not None


def closing_number(text: str) -> int | None:
    """Read the last of several lines if it is only a number."""
    *earlier_lines, last = text.split("\n")
    return only_number(last) if earlier_lines else None


def none_at_all(text: str) -> int | None:
    """Return 0 if the reply has no number and states that there are none: `None`, `There are no people in it`."""
    if any_number(text):
        return None
    first, *rest = sentences(text) or ("",)
    word = bare(first)
    if any(_MORE_TO_SAY.search(sentence) for sentence in rest):
        return None
    none = word in ("nil", "answer: none") or _NONE.fullmatch(word) or _NO_THINGS.fullmatch(word)
    return 0 if none or denies_existence(text) else None


_NONE: Final = re.compile(
    r"(?i)(?:there (?:are|is|were) )?none(?: (?:is|are|were)(?: visible| present)?)?(?: (?:here|there))?"
    r"|there (?:is|are|were)(?:n't| not) any|there isn't (?:even )?(?:a single|one) \w+|i (?:can )?see none"
)
_MORE_TO_SAY: Final = re.compile(r"(?i)\b(?:but|however|although|though|yet|there|only|unless|if)\b")
# Statements that there are none: `There are no cars`, `no people are visible`, `I don't see any dogs`; not `no
# results`.
_NO_THINGS: Final = re.compile(
    r"(?i)(?:(?:there (?:are|were)|i (?:can )?(?:see|count|find|spot)) (?:no|zero)|(?:no|zero)"
    r"|there (?:are|were)(?:n't| not) any|i (?:do not|don't|did not|didn't) (?:see|find|spot|count) any)"
    r" (?!(?:other|additional|further|extra|such|many|longer|distinct|clear|obvious|new)\b"
    r"|(?:\w+ )?(?:images|pictures|photos|results|details|instructions|tools|options|choices|words|numbers"
    r"|answers|ways|clues|signs|objections|doubts|comments|problems|errors"
    r"|issues|worries|questions|concerns|others|more)\b)(?:[\w-]+ ){0,2}?"
    r"(?:[\w-]+[^\Ws]s|people|men|women|children|fish|sheep|deer|geese|mice)"
    r"(?: (?:are |were )?(?:in|on|at|visible|present|here|there|to be seen)\b[^,;]*)?"
)
# A number of some of the things that were counted before: `6 people, 2 of them sitting`
_OF_THEM: Final = re.compile(r"(?i)\s(?:\w+\s)?of\s(?:them|these|those|which|whom)\b")


_PARTS: Final = re.compile(r"[^.;:\n(,–—-]*[:(,–—-]")
_AND_MORE: Final = re.compile(r"(?i)(?:\s\w+){1,3}\sand\s(?:an?|another|some|several|many)\s")


def first_number(text: str) -> int | None:
    """Read the only number of a reply, or a first number whose parts follow: `five objects: four boats, one car`.

    The result is None for a list, a range, and parts without their sum.
    """
    if _LIST.fullmatch(bare(text)) or _SOME in f" {text} ":
        return None
    numbers = list(_NUMBER.finditer(text))
    values = [_value(m[0]) for place, m in enumerate(numbers) if not place or not _OF_THEM.match(text, m.end())]
    if len(set(values)) <= 1 and not (numbers and _AND_MORE.match(text, numbers[-1].end())):
        clauses = [clause for clause in re.split(r"[.:;\n]", text) if len(_NUMBER.findall(clause)) > 1]
        return values[0] if values and not (clauses and len(values) > 1) else None
    first, *rest = values
    parts = _PARTS.match(text, numbers[0].end()) is not None and first == sum(value or 0 for value in rest)
    return first if parts else None


RULES: Final = (only_number, announced, closing_number, total, closing_field, none_at_all, first_number)


def parse_integer(text: str) -> Parsed[int]:
    """Read the count, 0 or more, in any text.

    The result is None if there is no number, for a list or a range of numbers, for parts without their sum, and if the
    relevant number is a fraction or negative.
    """

    def read(rules: Sequence[Callable[[str], int | None]], reply: str) -> Parsed[int]:
        return first_match(rules, drop_uncounted(reply)) if reply else undecided()

    # A number after "actually" may be the count of something else, so it must be the whole text or be announced.
    reread = partial(read, (only_number, announced))
    return read_own(statement(text), lambda part: read_corrected(part, partial(read, RULES), reread))
