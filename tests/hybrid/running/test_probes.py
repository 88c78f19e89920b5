"""Questions that show what a model can do: what their replies mean, and the pictures that go with them."""

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hybrid.errors import UsageError
from hybrid.running.probes import FRAME_POINT, FRAME_SIZE, disc, numbered, read_frame
from hybrid.solving.coordinates import FRAMES, CoordinateSystem

WIDTH, HEIGHT = FRAME_SIZE
WRITTEN: Mapping[str, Callable[[float, float], tuple[float, float]]] = {
    "pixels": lambda x, y: (x, y),
    "fractions": lambda x, y: (x / WIDTH, y / HEIGHT),
    "thousandths": lambda x, y: (1000 * x / WIDTH, 1000 * y / HEIGHT),
    "fractions_yx": lambda x, y: (y / HEIGHT, x / WIDTH),
    "thousandths_yx": lambda x, y: (1000 * y / HEIGHT, 1000 * x / WIDTH),
}
"""A place as a model of each frame writes it."""


@given(
    st.sampled_from(sorted(FRAMES)),
    st.floats(-25, 25),
    st.floats(-25, 25),
    st.sampled_from(["{}", "The centre is at {}.", "**{}**", "point: {}\n"]),
)
def test_the_probe_tells_the_frames_apart(name: str, dx: float, dy: float, words: str) -> None:
    """A model that is off by 25 pixels each way still says in which frame it speaks."""
    first, second = WRITTEN[name](FRAME_POINT[0] + dx, FRAME_POINT[1] + dy)
    assert read_frame(words.format(f"({first:.3f}, {second:.3f})")).name == name


def test_the_probe_knows_the_copy_that_was_sent() -> None:
    """At a quarter of the pixels the target is sent at half its size."""
    sent = WIDTH * HEIGHT // 4
    assert read_frame(f"({FRAME_POINT[0] / 2}, {FRAME_POINT[1] / 2})", sent) == CoordinateSystem("pixels", sent)
    assert read_frame("(700, 220)", sent) == CoordinateSystem("thousandths", sent)


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


def test_the_disc_is_where_it_is_said_to_be() -> None:
    picture = np.asarray(Image.open(io.BytesIO(disc())))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    rows, columns = np.nonzero(picture[..., 0].astype(int) - picture[..., 1] > 100)
    assert (columns.mean(), rows.mean()) == pytest.approx(FRAME_POINT, abs=0.5)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_number_is_large_and_whole_in_its_picture(form: str) -> None:
    picture = np.asarray(Image.open(io.BytesIO(numbered("7306", (448, 224), form))).convert("L")) < 128
    rows, columns = np.nonzero(picture)
    assert picture.shape == (224, 448)
    assert np.ptp(rows) > 80
    assert (rows.min(), columns.min()) > (0, 0)
    assert (rows.max(), columns.max()) < (223, 447)
