"""What the model is shown of a prompt's images: as they are, on one sheet, described, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, ImagePart, Message, images_of, parts_of
from hybrid.solving.image_forms import CAPTION, GAP_PX, STRIP_PX, shown_parts, side_by_side
from hybrid.solving.kit import Log
from hybrid.tool import Tool
from hybrid.types import ImageRef, Kind, Prompt


@dataclass
class Describer:
    """A kit's model that says the names of the images it is asked about."""

    asked: list[Sequence[Message]] = field(default_factory=list)

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> AssistantMessage:
        self.asked.append(messages)
        return AssistantMessage(f" a picture called {images_of(messages)[0].name}\n")


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
    assert await shown_parts(prompt, "separate", model, store, Log()) == prompt.parts
    assert model.asked == []


async def test_none_leaves_the_words(prompt: Prompt, store: ImageStore) -> None:
    assert await shown_parts(prompt, "none", Describer(), store, Log()) == ("Look at", "and then at", "Which?")


async def test_caption_puts_the_models_own_words_in_the_place_of_each_image(prompt: Prompt, store: ImageStore) -> None:
    model = Describer()
    parts = await shown_parts(prompt, "caption", model, store, Log())
    assert parts == (
        "Look at",
        "img:1: a picture called img:1",
        "and then at",
        "img:2: a picture called img:2",
        "Which?",
    )
    # Each image is described by itself, and nothing of the question is told.
    assert [[ref.name for ref in images_of(messages)] for messages in model.asked] == [["img:1"], ["img:2"]]
    assert {message.text for messages in model.asked for message in messages} == {CAPTION}


async def test_without_labels_no_name_is_told(prompt: Prompt, store: ImageStore, fakes: Any) -> None:
    model = Describer()
    parts = await shown_parts(prompt, "caption", model, store, Log(), labelled=False)
    assert parts == ("Look at", "a picture called img:1", "and then at", "a picture called img:2", "Which?")
    sent = [part for (message,) in model.asked for part in parts_of(message) if isinstance(part, ImagePart)]
    assert [part.labelled for part in sent] == [False, False]
    sheet = (await shown_parts(prompt, "concat", model, store, Log(), labelled=False))[1]
    assert isinstance(sheet, ImageRef)
    # 120 x 40 and 70 x 90 pixels with a gap between them and no strip above.
    assert (sheet.image.width, sheet.image.height) == (120 + GAP_PX + 70, 90)
    pixels = store.pixels(sheet.image)
    assert np.array_equal(pixels[:40, :120], fakes.pixels(1, (120, 40)))
    assert np.array_equal(pixels[:, 120 + GAP_PX :], fakes.pixels(2, (70, 90)))


async def test_concat_is_one_picture_in_the_place_of_the_first(prompt: Prompt, store: ImageStore) -> None:
    parts = await shown_parts(prompt, "concat", Describer(), store, Log())
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
    assert await shown_parts(plain, form, model, store, Log()) == plain.parts
    assert model.asked == []
