"""ActiView's verdicts and numbers: the released rule for answers, and recall of the chosen views, right and as printed.

The released code counts views from 0 while shifting and compares them with ground truth that counts from 1, so that
four views seen give 641 of 859 clue views, the 74.62 % of the paper's Table 13; `recall_shift` counts both from 1 and
`recall_shift_paper` does as the paper did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

CUE = "Answer:"
LETTERS_LISTED = tuple("ABCDEFGHZ")


def official_answer(text: str, choices: Sequence[str], gold: str) -> str | None:
    """The option letter by the released `cal_acc` (`toolkit/evaluator.py`); None for a reply that cannot be right.

    Where "Answer:" stands, what follows the first one up to the next, stripped, is read, else the reply as it is. What
    is before its first full stop must be one of the list of letters, exactly: neither "AB" nor " B" nor "(A)" is. Else
    the read text must equal the gold option's text (case and outer blanks apart). `gold` is its letter.
    """
    answer = text.split(CUE)[1].strip() if CUE in text else text
    head = answer.split(".", maxsplit=1)[0]
    if head in LETTERS_LISTED:
        return head if LETTERS_LISTED.index(head) < len(choices) else None
    option = choices[LETTERS_LISTED.index(gold)]
    return gold if answer.lower().strip() == option.lower().strip() else None


def hits(seen: Collection[int], clues: Collection[int]) -> int:
    """How many of the views with clues were shown; both count from 1."""
    return len(set(seen) & set(clues))


def hits_as_printed(seen: Collection[int], clues: Collection[int]) -> int:
    """How many views with clues were shown, with shown views counted from 0 as in the shifting columns of Table 13."""
    return len({number - 1 for number in seen} & set(clues))
