"""Parse a reply to an ordering question (HVSBench Q3) to the letters in order, such as "BCA", or None.

Follows Table 10 of the HVSBench paper.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import zip_longest
from typing import Final

from hybrid.answers._letter_reply import AFTER_A
from hybrid.answers._precedence import read_corrected
from hybrid.answers.base import CUE, Parsed, first_match, is_asked, sentences, statement, undecided
from hybrid.answers.letters import labels_of

_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_LAST: Final = ("last", "finally", "lastly")
_PLACES: Final = {
    **{word: place for place, word in enumerate(_ORDINALS)},
    **{word: place for place, word in enumerate(("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th"))},
    "last": len(_ORDINALS),
}
# Maximum length of the text between two labels of an order in words.
_GAP_LENGTH: Final = 80
_OPENING: Final = "([\"'"
# Descriptions that may follow a label: `B (the dog)`, `B is the most salient`, `B comes first`.
_GLOSS: Final = (
    r"(?:\s\([^()\n]{2,40}\))?"
    r"(?:\s(?:is|comes|goes|stands out)\b(?:\s(?:the|most|very|clearly|salient|prominent|striking)\b){0,4})?"
    r"(?:\sfirst\b)?"
)
# Words between a label and the next one: `then`, `followed by`, `and thirdly`, `the second is`. A name may precede a
# label in brackets: `then the red cat (A)`.
_LINK: Final = re.compile(
    rf"(?i){_GLOSS}[,;.]?\s(?:(?:and|the)\s){{0,2}}"
    rf"(?:then|next|after(?:wards| that)|followed by|before|ahead of|{'|'.join(_LAST)}"
    rf"|(?:{'|'.join(_ORDINALS[1:])})(?:ly)?)\b"
    r"(?:\s(?:most \w+|one|object|box|item|place|comes?|goes|is|the|an?|by|and)\b){0,4}[,:]?\s"
    r"(?:(?:(?!n?or\b|and\b|image)[a-z][a-z'-]*\s){1,5}(?=[(\[\"']))?[(\[\"']{0,2}"
)
# A sign between labels that have a description: `C (tree) > B (cat)`.
_SIGN: Final = re.compile(rf"{_GLOSS}\s?(?:[=-]{{0,2}}>|→)\s?[(\[\"']{{0,2}}")
_COMMA: Final = re.compile(rf"{_GLOSS}(?:,|,?\sand)\s[(\[\"']{{0,2}}")


@dataclass(frozen=True)
class OrderReply:
    """A normalised reply (`text`), all labels (`letters`), and the labels that the question offers (`offered`)."""

    text: str
    letters: str
    offered: str

    @property
    def item(self) -> str:
        """Return a pattern for one or more adjacent labels: `A`, `[B]`, `BCA`; not the article "A"."""
        k = re.escape(self.letters)
        after = (
            rf"(?:{AFTER_A}|then|next|finally|lastly|last|followed|after|before|ahead|comes|goes|stands|first(?=,))\b"
        )
        article = rf"A\s(?!{after})[a-z]" if "A" in self.letters else r"(?!)"
        return rf"(?!{article})[(\[\"']{{0,2}}[{k}]+[)\]\"']{{0,2}}"

    @property
    def block(self) -> str:
        """Return a pattern for labels in a row: `BCA`, `D B C A`, `B > C, A`, `[A] and [C]`."""
        gap = r"(?:\s?(?:[,;、/-]|[=-]{0,2}>{1,2}|→)\s?(?:(?:and|then)\b\s?)?"
        gap += r"|\s(?:(?:and|then)\b\s)?|(?<=[)\]])(?=[(\[]))"
        return rf"(?<![A-Za-z0-9_']){self.item}(?:{gap}{self.item})*(?![A-Za-z0-9_'])"

    @cached_property
    def chains(self) -> dict[int, str]:
        """Return chains of labels that words connect, by the position of each chain: `B, then A, finally C`."""
        labels = list(re.finditer(rf"(?<![A-Za-z0-9_']){self.item}(?![A-Za-z0-9_'])", self.text))
        runs: dict[int, str] = {}
        run: list[str] = []
        start, linked = 0, False
        for label, following in zip_longest(labels, labels[1:]):
            start = start if run else label.start()
            run.append(label[0])
            # The opening bracket of the next label belongs to the text between the two.
            end = 0 if following is None else following.end() - len(following[0].lstrip(_OPENING))
            between = self.text[label.end() : min(end, label.end() + _GAP_LENGTH)]
            link = _LINK.fullmatch(between) is not None or _SIGN.fullmatch(between) is not None
            linked |= link
            if link or _COMMA.fullmatch(between):
                continue
            if linked:
                runs[start] = "".join(run)
            run, linked = [], False
        return runs


def _order(reply: OrderReply, block: str) -> str | None:
    """Return the labels of a block in order; None if a label was not offered or appears twice."""
    order = "".join(c for c in block if c in reply.letters)
    return order if set(order) <= set(reply.offered) and len(set(order)) == len(order) else None


def only_letters(reply: OrderReply) -> str | None:
    """Read a reply that is only letters in a row: `D B C A`, `BCA`, `[A]`."""
    match = re.fullmatch(rf"[\s\"'(\[]{{0,3}}({reply.block})[\s.\"')\]]{{0,4}}", reply.text)
    return _order(reply, match[1]) if match else None


def numbered_lines(reply: OrderReply) -> str | None:
    """Read a numbered list whose items start with letters: `1. B`, `2. (C) the dog`."""
    lines = [line.strip() for line in reply.text.split("\n")]
    k = re.escape(reply.letters)
    items = [re.match(rf"(\d{{1,2}})[.):]\s?[(\[]?([{k}])(?![A-Za-z0-9_'])", line) for line in lines]
    matches = [m for m in items if m is not None]
    if len(matches) < 2 or [int(m[1]) for m in matches] != list(range(1, len(matches) + 1)):
        return None
    return _order(reply, "".join(m[2] for m in matches))


def announced(reply: OrderReply) -> str | None:
    """Read the letters that are last announced as the answer: `so the answer is BCA`."""
    cue = rf"(?i:{CUE}|\border\b(?: is| should be|:))[\s:=\"'\-]{{0,6}}(?:only\s)?"
    blocks = list(re.finditer(rf"{cue}({reply.block})(?!\s(?:or|vs)\b)", reply.text))
    blocks = [block for block in blocks if not is_asked(block)]
    return _order(reply, reply.chains.get(blocks[-1].start(1), blocks[-1][1])) if blocks else None


def with_places(reply: OrderReply) -> str | None:
    """Read labels with their ranks: `A is second, C is third and B is first`; "" if two labels have the same rank."""
    ordinal = rf"(?i:({'|'.join(_PLACES)}))\b"
    predicate = rf"(?:\s(?:is|comes|goes|ranks|as|the|in)\b){{1,3}}\s{ordinal}|\s{ordinal}(?=\s?(?:[,.;!)\n]|and\b|$))"
    label = rf"(?<![A-Za-z0-9_'])[(\[\"']{{0,2}}([{re.escape(reply.letters)}])[)\]\"']{{0,2}}"
    ranks = {m[1]: _PLACES[(m[2] or m[3]).casefold()] for m in re.finditer(rf"{label}(?:{predicate})", reply.text)}
    if len(ranks) < 2:
        return None
    order = "".join(sorted(ranks, key=lambda name: ranks[name]))
    return _order(reply, order if len(set(ranks.values())) == len(ranks) else "") or ""


def in_words(reply: OrderReply) -> str | None:
    """Read the last labels that are connected by words: `First B, then A, finally C`; "" if they are not an order."""
    chains = list(reply.chains.values())
    return (_order(reply, chains[-1]) or "") if chains else None


# Labels in a row are not an answer if they are only offered, asked about or denied.
_OPEN: Final = re.compile(
    r"(?i)\b(?:not|cannot|unclear|unsure|unknown|either|or|equal(?:ly)?|same|tied?|candidates|options|choices|how|which|what)\b|n't\b|\?"
)


_ASCENDING: Final = re.compile(
    r"(?i)\b(?:least|lowest|last)\b[^.\n]{0,30}\bto\b[^.\n]{0,12}\b(?:most|highest|first)\b|\bascending\b|\breverse"
)


def last_letters(reply: OrderReply) -> str | None:
    """Read the last letters in a row: `The order between the A,B,C should be BCA`, `its A and B`."""
    candidates = [(block, s) for s in sentences(reply.text) for block in re.findall(reply.block, s)]
    return _order(reply, candidates[-1][0]) if candidates and not _OPEN.search(candidates[-1][1]) else None


Rule = Callable[[OrderReply], str | None]

STATED_RULES: Final[tuple[Rule, ...]] = (only_letters, numbered_lines, announced, with_places, in_words)
RULES: Final[tuple[Rule, ...]] = (*STATED_RULES, last_letters)


def parse_order(text: str, choices: Sequence[str], *, letters: str = "", complete: bool = False) -> Parsed[str]:
    """Read the order in `text`.

    Args:
        text: the reply, any text.
        choices: one entry per offered object; only their number counts.
        letters: the labels; `letters[i]` is the label of `choices[i]`. By default those of `labels_of`.
        complete: whether only an order of all labels counts; else, as in the paper's table, "its A and B" is "AB".

    Returns:
        `Parsed` with one or more of `letters[:len(choices)]`, each at most once, or None. An order that contains a
        label that was not offered is None.

    Raises:
        ValueError: more choices than letters.
    """
    letters = labels_of(choices, letters)

    def read(rules: tuple[Rule, ...], reply: str) -> Parsed[str]:
        if not reply or _ASCENDING.search(reply):
            return undecided()
        parsed = first_match(rules, OrderReply(reply, letters, letters[: len(choices)]))
        return parsed if parsed.value else undecided()

    parsed = read_corrected(statement(text), partial(read, RULES), partial(read, STATED_RULES))
    return undecided() if complete and len(parsed.value or "") < len(choices) else parsed
