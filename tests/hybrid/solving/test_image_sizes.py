"""The line that names the images of a prompt with their sizes, and who gets it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs._controller_texts import opening_message
from hybrid.benchmarks.mvp_bench.images import half_box
from hybrid.messages import user_message
from hybrid.registry import load, load_solver
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.image_sizes import image_sizes
from hybrid.types import Box, ImageRef, Kind, Prompt, StoredImage
from tests import fakes


def stored(width: int, height: int) -> StoredImage:
    return StoredImage("0" * 64, width, height, "image/png")


def pair(width: int, height: int) -> tuple[ImageRef, ImageRef, ImageRef]:
    """A picture that is two side by side, and its halves as tools are given them."""
    whole = stored(width, height)
    left, right = (half_box(whole, half) for half in (0, 1))
    return (
        ImageRef("img:1", whole),
        ImageRef("img:1.1", stored(int(left.x1 - left.x0), height), "img:1", left),
        ImageRef("img:1.2", stored(int(right.x1 - right.x0), height), "img:1", right),
    )


def test_every_image_has_its_size_and_halves_have_their_columns() -> None:
    assert image_sizes(pair(640, 480), CoordinateSystem()) == (
        "img:1, 640 x 480 px; img:1.1, the left half of img:1 (x 0 to 320), 320 x 480 px; "
        "img:1.2, the right half of img:1 (x 320 to 640), 320 x 480 px"
    )


@given(st.integers(2, 4000), st.integers(1, 4000))
def test_the_halves_of_any_pair_picture_are_called_left_and_right(width: int, height: int) -> None:
    _, left, right = image_sizes(pair(width, height), CoordinateSystem()).split("; ")
    assert left.startswith("img:1.1, the left half of img:1 (x 0 to ")
    assert right.startswith("img:1.2, the right half of img:1 (x ")
    assert f" to {width}), {width // 2} x {height} px" in right


@pytest.mark.parametrize("box", [Box(0, 0, 320, 470), Box(0, 0, 200, 480), Box(160, 0, 480, 480)])
def test_what_is_no_half_is_a_region(box: Box) -> None:
    whole = ImageRef("img:1", stored(640, 480))
    told = image_sizes([whole, ImageRef("img:1.1", stored(9, 9), "img:1", box)], CoordinateSystem())
    assert f"img:1.1, region ({box.x0:g}, {box.y0:g}) to ({box.x1:g}, {box.y1:g}) of img:1, 9 x 9 px" in told
    assert "half" not in told


def test_an_image_that_is_sent_smaller_has_the_size_at_which_it_is_sent() -> None:
    large = [ImageRef("img:1", stored(4000, 3000))]
    sent = CoordinateSystem("pixels", 1000 * 750)
    assert image_sizes(large, sent) == "img:1, 1000 x 750 px, shrunk to 25% of its sides"
    assert image_sizes(large, CoordinateSystem("pixels", 4000 * 3000)) == "img:1, 4000 x 3000 px"
    assert image_sizes(large, CoordinateSystem("thousandths", 1000 * 750)) == image_sizes(large, sent)


def test_the_controller_tells_sizes_after_the_question_and_changes_no_word_of_it() -> None:
    images = pair(640, 480)
    prompt = Prompt(("Which half?", images[0]), Kind.FREE, derived=images[1:])
    ctx = fakes.context_of(prompt)
    assert opening_message(prompt, ctx) == ctx.message(prompt), "without tools nothing is told"
    offered = replace(ctx, tools_offered=(load("tools", "crop"),))
    question, image, told, *closing = opening_message(prompt, offered).parts
    assert (question, image) == user_message(prompt.parts).parts
    assert told == f"The images that can be given to tools: {image_sizes(images, ctx.frame)}."
    assert (question, image, *closing) == ctx.message(prompt).parts


async def test_the_mllm_alone_is_told_no_sizes() -> None:
    prompt = Prompt(("Which half?", pair(640, 480)[0]), Kind.FREE)
    model = fakes.QueueModel(["left"])
    ctx = replace(fakes.context_of(prompt), model=fakes.ContextModel(model))
    await load_solver("mllm").ask(prompt, ctx)
    ((messages, *_),) = model.calls
    assert "640 x 480" not in "\n".join(message.text for message in messages)
