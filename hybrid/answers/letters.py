"""Parse a reply to a multiple-choice question to the letter of an offered choice, or None.

Rules are ordered from explicit to implicit forms, and the first match counts. A reply that declines, hedges or names an
option that was not offered is None, never a guess. The forms were collected from the published outputs of the BLINK
benchmark (Fu et al. 2024) and Table 9 of HVSBench.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from hybrid.answers._letter_claims import CLAIM_RULES, declines
from hybrid.answers._letter_clauses import CLAUSE_RULES
from hybrid.answers._letter_reasons import reasoned_letter
from hybrid.answers._letter_reply import LetterReply, read
from hybrid.answers._letter_rules import OTHER_RULES, STATED_RULES, only_choice
from hybrid.answers._precedence import read_corrected, read_own
from hybrid.answers.base import Parsed, bare, first_match, only_asks, undecided
from hybrid.core.types import LETTERS

# Labels that are always searched for. With more labels, words and initials would be read as labels.
USUAL_LETTERS = LETTERS[:8]


_BETWEEN = (re.compile(r"[,;&]|\b(?:and|or)\b"), re.compile(r"/"))


def labels_of(choices: Sequence[str], letters: str) -> str:
    """Return the labels to search for: `letters`, or by default the first eight, or one per choice if there are more.

    Raises `ValueError` for more choices than labels.
    """
    labels = letters or LETTERS[: max(len(USUAL_LETTERS), len(choices))]
    if len(choices) > len(labels):
        raise ValueError(f"{len(choices)} choices, but only {len(labels)} letters ({labels!r}) to label them")
    return labels


def parse_letter(text: str, choices: Sequence[str], *, letters: str = "") -> Parsed[str]:
    """Read the letter of the choice in `text`.

    Args:
        text: the reply, any text.
        choices: the option texts in the order shown, or empty strings if they are unknown: letters still work. Without
            choices nothing is offered and the result is always None.
        letters: the labels, one upper-case character per choice; `letters[i]` is the label of `choices[i]`. By default
            those of `labels_of`.

    Returns:
        `Parsed` with one of `letters[:len(choices)]` and the matching rule, or None and "none".

    Raises:
        ValueError: more choices than letters.
    """
    reply = read(text, tuple(choices), labels_of(choices, letters))

    def read_part(part: str) -> Parsed[str]:
        return _read(replace(reply, text=part))

    return read_own(reply.text, lambda part: read_corrected(part, read_part, read_part))


def _read(reply: LetterReply) -> Parsed[str]:
    if not reply.text or not reply.offered:
        return undecided()
    # A question or a list of choices is not an answer, unless it is the text of one choice: `Is it red?`, `red, green`.
    asks, marks = only_asks(reply.text), [mark for mark in _BETWEEN if mark.search(reply.text)]
    if (asks or marks) and only_choice(reply) is None:
        name_sets = [{dict(reply.forms).get(bare(text)) for text in mark.split(reply.text)} for mark in marks]
        if asks or any(len(names) > 1 and None not in names for names in name_sets):
            return undecided()
    explicit = first_match((*STATED_RULES, reasoned_letter, *OTHER_RULES, *CLAUSE_RULES), reply)
    if explicit.value is not None:
        return explicit if explicit.value in reply.offered else undecided()
    if declines(reply):
        return undecided()
    return first_match(CLAIM_RULES, reply)
