"""A prompt's images as the model is shown them: as they are, on one sheet, described, or not at all."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hybrid.images import OUR_JOINT, ImageStore, Joint
from hybrid.solving.image_forms import STRIP_PX, shown_parts, side_by_side
from hybrid.types import ImageRef, Kind, Prompt

GAP_PX = OUR_JOINT.gap_px


@dataclass
class Describer:
    """Gives the name of an image for its caption."""

    asked: list[str] = field(default_factory=list)

    async def __call__(self, image: ImageRef) -> str:
        self.asked.append(image.name)
        return f"a picture called {image.name}"


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images")


@pytest.fixture
def prompt(store: ImageStore, fakes: Any) -> Prompt:
    first = fakes.refs(store, 1, size=(120, 40))[0]
    second = ImageRef("img:2", fakes.stored(store, 2, (70, 90)))
    return Prompt(("Look at", first, "and then at", second, "Which?"), Kind.CHOICE, ("a", "b"))


async def test_separate_is_the_prompt_itself(prompt: Prompt, store: ImageStore) -> None:
    model = Describer()
    assert await shown_parts(prompt, "separate", model, store) == prompt.parts
    assert model.asked == []


async def test_none_leaves_the_words(prompt: Prompt, store: ImageStore) -> None:
    assert await shown_parts(prompt, "none", Describer(), store) == ("Look at", "and then at", "Which?")


async def test_caption_puts_the_models_own_words_in_the_place_of_each_image(prompt: Prompt, store: ImageStore) -> None:
    model = Describer()
    parts = await shown_parts(prompt, "caption", model, store)
    assert parts == (
        "Look at",
        "img:1: a picture called img:1",
        "and then at",
        "img:2: a picture called img:2",
        "Which?",
    )
    assert model.asked == ["img:1", "img:2"]


async def test_without_labels_no_name_is_told(prompt: Prompt, store: ImageStore, fakes: Any) -> None:
    model = Describer()
    parts = await shown_parts(prompt, "caption", model, store, labelled=False)
    assert parts == ("Look at", "a picture called img:1", "and then at", "a picture called img:2", "Which?")
    sheet = (await shown_parts(prompt, "concat", model, store, labelled=False))[1]
    assert isinstance(sheet, ImageRef)
    # 120 x 40 and 70 x 90 pixels with a gap between them and no strip above.
    assert (sheet.image.width, sheet.image.height) == (120 + GAP_PX + 70, 90)
    pixels = store.pixels(sheet.image)
    assert np.array_equal(pixels[:40, :120], fakes.pixels(1, (120, 40)))
    assert np.array_equal(pixels[:, 120 + GAP_PX :], fakes.pixels(2, (70, 90)))


async def test_concat_is_one_picture_in_the_place_of_the_first(prompt: Prompt, store: ImageStore) -> None:
    parts = await shown_parts(prompt, "concat", Describer(), store)
    assert [part if isinstance(part, str) else part.name for part in parts] == [
        "Look at",
        "img:all",
        "and then at",
        "Which?",
    ]


def test_side_by_side_holds_every_pixel_unscaled(prompt: Prompt, store: ImageStore) -> None:
    sheet = store.pixels(side_by_side(prompt.images, store).image)
    assert sheet.shape == (STRIP_PX + 90, 120 + GAP_PX + 70, 3)
    first, second = (store.pixels(ref.image) for ref in prompt.images)
    assert np.array_equal(sheet[STRIP_PX : STRIP_PX + 40, :120], first)
    assert np.array_equal(sheet[STRIP_PX:, 120 + GAP_PX :], second)
    # Each strip holds ink: the name of what stands below it.
    assert sheet[:STRIP_PX, :120].min() < 100
    assert sheet[:STRIP_PX, 120 + GAP_PX :].min() < 100
    assert (sheet[STRIP_PX + 40 :, :120] == 255).all()


def test_a_single_image_stays_itself(store: ImageStore, fakes: Any) -> None:
    (only,) = fakes.refs(store, 5)
    assert side_by_side([only], store) is only


def test_a_sliver_still_gets_its_whole_name(store: ImageStore, fakes: Any) -> None:
    slivers = fakes.refs(store, 1, 2, size=(1, 1))
    sheet = store.pixels(side_by_side(slivers, store).image)
    assert sheet.shape[1] >= 2 * 60
    assert np.array_equal(sheet, store.pixels(side_by_side(slivers, store).image))


@pytest.mark.parametrize("form", ["concat", "caption", "none"])
async def test_a_prompt_without_images_has_one_form(form: Any, store: ImageStore) -> None:
    plain = Prompt(("Only words.",), Kind.FREE)
    model = Describer()
    assert await shown_parts(plain, form, model, store) == plain.parts
    assert model.asked == []


def released(pictures: list[Any], margin: int = 10) -> Any:
    """The sheet of BLINK's released code (`eval/test_benchmark.py`), written anew: black, pasted at the middle."""
    sheet = Image.new(
        "RGB", (sum(p.shape[1] for p in pictures) + margin * (len(pictures) - 1), max(map(len, pictures)))
    )
    left = 0
    for picture in pictures:
        sheet.paste(Image.fromarray(picture), (left, (sheet.height - len(picture)) // 2))
        left += picture.shape[1] + margin
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


async def test_a_joint_of_its_own_is_used_for_a_prompt(prompt: Prompt, store: ImageStore) -> None:
    parts = await shown_parts(prompt, "concat", Describer(), store, labelled=False, joint=Joint(3, (9, 9, 9), "middle"))
    assert isinstance(parts[1], ImageRef)
    pixels = store.pixels(parts[1].image)
    assert pixels.shape == (90, 120 + 3 + 70, 3)
    # 40 pixels high, 25 above and below it.
    assert (pixels[:25, :120] == 9).all()
    assert (pixels[:, 120:123] == 9).all()
    assert not (pixels[25:65, :120] == 9).all()
