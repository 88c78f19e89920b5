"""Probes of a model's abilities: how replies are interpreted, and which pictures are shown."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import UsageError
from hybrid.running.probes import FRAME_POINT, FRAME_SIZE, read_frame
from hybrid.solving.coordinates import FRAMES

WIDTH, HEIGHT = FRAME_SIZE
# Formats of a position in each coordinate frame.
WRITTEN: Mapping[str, Callable[[float, float], tuple[float, float]]] = {
    "pixels": lambda x, y: (x, y),
    "fractions": lambda x, y: (x / WIDTH, y / HEIGHT),
    "thousandths": lambda x, y: (1000 * x / WIDTH, 1000 * y / HEIGHT),
    "fractions_yx": lambda x, y: (y / HEIGHT, x / WIDTH),
    "thousandths_yx": lambda x, y: (1000 * y / HEIGHT, 1000 * x / WIDTH),
}


@given(
    st.sampled_from(sorted(FRAMES)),
    st.floats(-25, 25),
    st.floats(-25, 25),
    st.sampled_from(["{}", "The centre is at {}.", "**{}**", "point: {}\n"]),
)
def test_the_probe_tells_the_frames_apart(name: str, dx: float, dy: float, words: str) -> None:
    """A model that is off by 25 pixels in each direction still reveals its coordinate frame."""
    first, second = WRITTEN[name](FRAME_POINT[0] + dx, FRAME_POINT[1] + dy)
    assert read_frame(words.format(f"({first:.3f}, {second:.3f})")).name == name


@pytest.mark.parametrize("reply", ["", "I cannot see a disc.", "(12)", "(5, 480)", "(450, 250)", "(-630, -110)"])
def test_a_reply_that_names_no_target_is_refused(reply: str) -> None:
    with pytest.raises(UsageError, match=r"frame=probe: .*declare one of: pixels, fractions"):
        read_frame(reply)


@given(st.lists(st.floats() | st.integers(-(10**400), 10**400), max_size=4))
def test_a_reply_with_any_numbers_is_read_or_refused(numbers: list[Any]) -> None:
    try:
        name = read_frame(f"({', '.join(map(str, numbers))})").name
    except UsageError as error:
        name = str(error)
    assert name in FRAMES or "names no point near the target" in name
