"""The texts in the list of questions are shown without the opening that many of them share."""

import random
from collections.abc import Sequence
from itertools import takewhile

import pytest

from hybrid.report.columns import MIN_SHARED, MIN_SHARERS, without_shared_openings


def expected(texts: Sequence[str]) -> list[str]:
    """Cut each text after the longest opening that it shares with enough others, by trying every opening."""
    distinct = set(texts)
    sharers = max(MIN_SHARERS, len(distinct) // 10)

    def without(text: str) -> str:
        openings = (text[:length] for length in range(len(text), MIN_SHARED - 1, -1))
        is_rare = lambda opening: sum(other.startswith(opening) for other in distinct) < sharers  # noqa: E731
        most = len(text) - len(list(takewhile(is_rare, openings)))
        return text if most < MIN_SHARED else f"… {text[text.rfind(' ', 0, most) + 1 :]}"

    return [without(text) for text in texts]


@pytest.mark.parametrize("count", [0, 1, MIN_SHARERS - 1, MIN_SHARERS, 29, 30, 31, 120])
@pytest.mark.parametrize("seed", range(4))
def test_every_text_loses_the_longest_opening_that_it_shares(count: int, seed: int) -> None:
    rng = random.Random(f"{count} {seed}")
    heads = [
        "".join(rng.choice("ab ") for _ in range(rng.choice([5, 24, 30, 60]))) for _ in range(rng.choice([1, 2, 5]))
    ]
    ends = ["".join(rng.choice("ab ") for _ in range(rng.randrange(6))) for _ in range(count)]
    texts = [rng.choice(heads)[: rng.choice([10, 24, 60])] + end for end in ends]
    assert without_shared_openings(texts) == expected(texts)
