"""ActiView's scoring: the released rule for answers, and the recall of the chosen views, corrected and as printed.

In shifting, the released code counts views from 0 and compares them with ground truth that counts from 1. Therefore
even all four views together match only 641 of 859 clue views: this is the recall of 74.62 % in the paper's Table 13.
`recall_shift` counts views and ground truth from 1; `recall_shift_paper` reproduces the paper.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

CUE = "Answer:"
LETTERS_LISTED = tuple("ABCDEFGHZ")


def official_answer(text: str, choices: Sequence[str], gold: str) -> str | None:
    """Return the option letter by the released `cal_acc` (`toolkit/evaluator.py`); None if wrong or unreadable.

    It reads the stripped text from the first "Answer:" to the next, else the full reply. The text before the first full
    stop must be exactly one of the letters: "AB", " B" and "(A)" are not. Otherwise the text without outer blanks must
    equal the gold option's text, ignoring case; an option with outer blanks is never equal. `gold` is its letter.
    """
    answer = text.split(CUE)[1].strip() if CUE in text else text
    head = answer.split(".", maxsplit=1)[0]
    if head in LETTERS_LISTED:
        return head if LETTERS_LISTED.index(head) < len(choices) else None
    option = choices[LETTERS_LISTED.index(gold)]
    return gold if answer.lower().strip() == option.lower() else None


def hits(seen: Collection[int], clues: Collection[int]) -> int:
    """Return the number of views with clues that were shown; `seen` and `clues` count from 1."""
    return len(set(seen) & set(clues))


def hits_as_printed(seen: Collection[int], clues: Collection[int]) -> int:
    """Return the number of shown views with clues, counting shown views from 0, as for shifting in Table 13."""
    return len({number - 1 for number in seen} & set(clues))
