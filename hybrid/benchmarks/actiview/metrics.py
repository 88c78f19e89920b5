"""ActiView's verdicts and numbers: the released rule for answers, and recall of the chosen views, right and as printed.

The released code counts views from 0 while shifting and compares them with ground truth that counts from 1, so that
four views seen give 641 of 859 clue views, the 74.62 % of the paper's Table 13; `recall_shift` counts both from 1 and
`recall_shift_paper` does as the paper did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

CUE = "Answer:"
INDEX = "ABCDEFGHZ"


def official_answer(text: str, choices: Sequence[str], gold: str) -> str | None:
    """The option letter by the released `cal_acc`: a letter, or None where it cannot count as any answer.

    Text after "Answer:" where that stands; what is before the first full stop is looked up in "ABCDEFGHZ", otherwise
    the whole must equal the gold option's text (case and outer blanks apart). `gold` is its letter. As that look-up
    finds longer pieces too, "AB" is an A; an empty reply, which it would find at A as well, is no answer here.
    """
    answer = text.split(CUE, 1)[1].strip() if CUE in text else text.strip()
    head = answer.split(".", maxsplit=1)[0]
    at = INDEX.find(head) if head else -1
    if 0 <= at < len(choices):
        return INDEX[at]
    return gold if answer and answer.casefold() == choices[INDEX.index(gold)].strip().casefold() else None


def hits(shown: Collection[int], clues: Collection[int]) -> int:
    """How many of the views with clues were shown; both count from 1."""
    return len(set(shown) & set(clues))


def hits_as_printed(shown: Collection[int], clues: Collection[int]) -> int:
    """How many views with clues were shown, with shown views counted from 0 as in the shifting columns of Table 13."""
    return len({number - 1 for number in shown} & set(clues))
