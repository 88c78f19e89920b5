"""Growth of work with the size of its input, measured without a clock that a busy machine could affect.

with Steps(limit=10_000) as steps:          # calls of Python and of C functions
    read(text)
assert_grows_linearly(read, text_of, size)  # for patterns, whose steps cannot be counted
"""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

# A quadratic reader grows 64-fold between the sizes, a linear one 8-fold: the geometric mean is 22.
GROWTH, MOST_GROWTH = 8, 24
TRIES = 5
# Shorter measurements are useless: the clock of the processor moves in steps.
LEAST_S = 0.002


class TooManyStepsError(AssertionError):
    """Work exceeded its limit of steps."""


class Steps:
    """Counts the function calls of its `with` block in this thread; beyond `limit` the work ends with an error."""

    def __init__(self, limit: int) -> None:
        self.limit, self.count = limit, 0

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _count(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            self.count += 1
            if self.count > self.limit:
                sys.setprofile(None)
                raise TooManyStepsError(f"more than {self.limit:,} steps")


def assert_grows_linearly(work: Callable[[str], object], text_of: Callable[[int], str], size: int) -> None:
    """Check that work on a text takes at most `MOST_GROWTH` times the processor time of work on an eighth of it.

    The longer text has `size` characters. One success in `TRIES` is enough, because other work on the machine only adds
    time. Both sizes are measured in turns.
    """
    small, large = text_of(size // GROWTH), text_of(size)
    least_small = least_large = float("inf")
    for _ in range(TRIES):
        # The short text takes little time, and a slow measurement of it would hide that the work grows too fast.
        least_small = min(least_small, *(_seconds(work, small) for _ in range(TRIES)))
        least_large = min(least_large, _seconds(work, large))
        if least_large <= MOST_GROWTH * max(least_small, LEAST_S):
            return
    raise AssertionError(f"{least_small:.4f} s for {size // GROWTH:,} characters, {least_large:.4f} s for {size:,}")


def _seconds(work: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    work(text)
    return time.thread_time() - start
