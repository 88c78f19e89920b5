"""A progress bar over the items of a long command, with the time left.

    for question in with_progress(questions, "blink", total=20_000):

On a terminal or in a notebook the bar moves; elsewhere, as in a log, its state is added every `LOG_S` seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from hybrid.display.notebook import line_in_place
from hybrid.display.notes import is_quiet

T = TypeVar("T")

BAR_S: Final = 0.5
LOG_S: Final = 30.0


def with_progress(items: Iterable[T], name: str, total: int, unit: str = "q", *, delay_s: float = 0.0) -> Iterator[T]:
    """Yield the items while showing their number, rate (`unit` per second) and time left on stderr.

    Nothing is shown if they take less than `delay_s` seconds.
    """
    from tqdm import tqdm

    place = line_in_place()
    moves = place is not None or (sys.stderr is not None and sys.stderr.isatty())
    interval = BAR_S if moves else LOG_S
    yield from tqdm(
        items,
        desc=name,
        total=total,
        unit=unit,
        mininterval=interval,
        maxinterval=max(interval, 10.0),
        delay=delay_s,
        disable=is_quiet() or (place is None and sys.stderr is None),
        file=place,
    )
