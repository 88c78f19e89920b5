"""The sentence on how the questions of a comparison ended."""

import pytest

from hybrid.scoring.compare import compare
from hybrid.scoring.sections.outcomes import lead
from tests.hybrid.scoring.solvers import solver


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("rw", "Of 2 requested answers, 0 were unreadable or missing, and 0 failed."),
        ("rwa", "Of 3 requested answers, 1 was unreadable or missing, and 0 failed."),
        ("rwaaf", "Of 5 requested answers, 2 were unreadable or missing, and 1 failed."),
    ],
)
def test_one_unreadable_answer_was_and_more_were(letters: str, words: str) -> None:
    assert lead(compare([solver("a", {"Jigsaw": letters})]), ()) == words
