"""A prompt's images as the model sees them: as they are, on one sheet, described, or not at all."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hybrid.core.images import ImageStore
from hybrid.core.types import ImageRef, Kind, Prompt
from hybrid.solving.images import side_by_side


@pytest.fixture
def prompt(store: ImageStore, fakes: Any) -> Prompt:
    first = fakes.refs(store, 1, size=(120, 40))[0]
    second = ImageRef("img:2", fakes.stored(store, 2, (70, 90)))
    return Prompt(("Look at", first, "and then at", second, "Which?"), Kind.CHOICE, ("a", "b"))


def released(pictures: list[Any], margin: int = 10) -> Any:
    """Return the sheet that BLINK's released code (`eval/test_benchmark.py`) makes: black, pictures at mid-height."""
    sheet = Image.new(
        "RGB", (sum(p.shape[1] for p in pictures) + margin * (len(pictures) - 1), max(map(len, pictures)))
    )
    remaining = 0
    for picture in pictures:
        sheet.paste(Image.fromarray(picture), (remaining, (sheet.height - len(picture)) // 2))
        remaining += picture.shape[1] + margin
    return np.asarray(sheet)


SIZES = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=2, max_size=4)


@given(SIZES)
@settings(max_examples=30)
def test_the_joint_of_blink_is_that_of_its_released_code(tmp_path_factory: Any, sizes: list[tuple[int, int]]) -> None:
    from hybrid.benchmarks.blink import BENCHMARK

    store = ImageStore(tmp_path_factory.mktemp("joined"))
    pictures = [np.random.default_rng(n).integers(0, 256, (h, w, 3), np.uint8) for n, (w, h) in enumerate(sizes)]
    refs = [ImageRef(f"img:{n}", store.put_pixels(picture)) for n, picture in enumerate(pictures, 1)]
    sheet = side_by_side(refs, store, labelled=False, joint=BENCHMARK.card.joint)
    assert np.array_equal(store.pixels(sheet.image), released(pictures))
