"""Saliency on generated things that stand out in a known order, on odd images, and the learned path."""

import re

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hybrid.benchmarks.actiview.sample import item
from hybrid.benchmarks.actiview.views import GRIDS, lined, shrink_to_part
from hybrid.core.types import LETTERS
from hybrid.samples.pop_out import PopOutScene
from hybrid.tool import Evidence, Pixels, Request
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.args import BoxArg
from tools.saliency import SaliencyArgs, SaliencyCues
from tools.saliency.cues import LEVELS, boolean_maps, conspicuity, promote, stretch, without_lines
from tools.saliency.models import contrasted


def ask(pixels: Pixels, args: SaliencyArgs | None = None) -> Evidence:
    return SaliencyCues().run([Request((pixels,), args or SaliencyArgs())])[0]


def boxes(scene: PopOutScene, order: list[int]) -> tuple[BoxArg, ...]:
    return tuple(
        BoxArg(**dict(zip(("x0", "y0", "x1", "y1"), scene.objects[rank].box, strict=True)), label=f"t{rank}")
        for rank in order
    )


@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (2000, 2), (3000, 4000)])
def test_flat_images_of_any_shape_have_nothing_that_stands_out(shape: tuple[int, int]):
    output = ask(np.full((*shape, 3), 128, np.uint8))
    assert output.data["objects"] == []
    assert output.data["count"] == 0
    assert output.data["map"]["peak_px"] is None
    assert output.confidence <= 0.5
    assert "nothing stands out" in output.text


@pytest.mark.parametrize(
    ("heights", "others"),
    [
        pytest.param([1.0], 0.0, id="a single peak keeps its height"),
        pytest.param([1.0, 1.0], 1.0, id="of two equal peaks one remains to be averaged"),
        pytest.param([1.0] * 6, 1.0, id="many equal peaks"),
        pytest.param([1.0, 0.2, 0.4], 0.3, id="one odd peak among lower ones"),
    ],
)
@pytest.mark.parametrize("side", [1, 5])
def test_a_map_is_weighted_by_the_mean_of_its_peaks_except_the_highest(heights: list[float], others: float, side: int):
    values = np.zeros((60, 60), np.float32)
    for place, height in enumerate(heights):
        # Peaks of several equal cells count once, like peaks of one cell.
        row, column = 10 + 20 * (place // 3), 5 + 20 * (place % 3)
        values[row : row + side, column : column + side] = height
    assert promote(values) == pytest.approx(values * ((1 - others) ** 2 + 0.05), abs=1e-6)


def test_a_single_thing_is_the_most_conspicuous_on_texture():
    rng = np.random.default_rng(3)
    texture = cv2.GaussianBlur(rng.normal(0, 1, (240, 320)), (0, 0), 3)
    picture = np.repeat(np.clip(128 + 30 * texture[..., None] / texture.std(), 0, 255), 3, axis=2).astype(np.uint8)
    cv2.circle(picture, (200, 120), 12, (200, 70, 60), cv2.FILLED, cv2.LINE_AA)
    values = conspicuity(picture)
    row, column = np.unravel_index(int(values.argmax()), values.shape)
    assert np.hypot(2 * column - 200, 2 * row - 120) < 20


def grid(number: int, label: str = "") -> SaliencyArgs:
    """Return this many boxes in rows of ten on an image of 60 x 200 px, called A, B, ... or by long names."""
    corners = [(20 * (place % 10), 20 * (place // 10)) for place in range(number)]
    names = [f"{label}{LETTERS[place % 26]}" for place in range(number)]
    return SaliencyArgs(
        boxes=tuple(
            BoxArg(x0=x, y0=y, x1=x + 18, y1=y + 18, label=name) for (x, y), name in zip(corners, names, strict=True)
        )
    )


@pytest.mark.parametrize(
    ("number", "label", "complete"), [(17, "", True), (26, "", True), (26, "the thing no. ", False)]
)
def test_as_many_boxes_as_letters_are_ranked_and_the_text_says_how_many_it_names(
    number: int, label: str, complete: bool
):
    picture = np.random.default_rng(4).integers(60, 120, (60, 200, 3)).astype(np.uint8)
    picture[22:38, 62:78] = (230, 40, 40)
    output = ask(picture, grid(number, label))
    ranked = [entry["label"] for entry in output.data["objects"]]
    assert len(ranked) == len(set(ranked)) == number
    assert len(output.text) <= 450
    assert output.text.startswith(f"Image 1 (200 x 60 px): box {ranked[0]} is the most salient, confidence ")
    order = re.search(r"^Order, (?:first (\d+) of (\d+)|with the share.*): (.*)\.$", output.text, re.MULTILINE)
    values = [re.sub(r" \d\.\d\d$", "", entry) for entry in order[3].split(", ")]
    assert values == ranked[: len(values)]
    assert (len(values) == number) == complete
    assert complete or (int(order[1]), int(order[2])) == (len(values), number)
    with pytest.raises(ValidationError, match="at most 26"):
        grid(27)


@pytest.mark.parametrize("splits", [4, pytest.param(9, marks=pytest.mark.system)])
def test_drawn_lines_do_not_stand_out_where_the_grid_is_given(splits: int):
    columns, rows = GRIDS[splits]
    divided = lined(shrink_to_part(item("counting", 0, 1000).pixels, 4), splits)
    args = SaliencyArgs(columns=columns, rows=rows)
    previous, after = (ask(divided, selected).data["objects"] for selected in (SaliencyArgs(), args))
    assert any(long(entry["box_px"], divided) for entry in previous)
    assert after
    assert not any(long(entry["box_px"], divided) for entry in after)
    disc = np.full((270, 360, 3), 120, np.uint8)
    disc[40:70, 50:90] = (200, 30, 30)
    (result,) = ask(lined(disc, splits), args).data["objects"]
    assert result["box_px"] == pytest.approx([50, 40, 90, 70], abs=4)


def long(box: list[int], pixels: Pixels) -> bool:
    return box[2] - box[0] > 0.4 * pixels.shape[1] or box[3] - box[1] > 0.4 * pixels.shape[0]


@settings(max_examples=15)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 8), st.integers(1, 8), st.integers(0, 255))
def test_lines_of_any_grid_in_any_image_of_one_colour_change_nothing(
    height: int, width: int, columns: int, rows: int, grey: int
):
    pixels = np.full((height, width, 3), grey, np.uint8)
    assert np.array_equal(without_lines(pixels, columns, rows), pixels)


def test_attention_to_artifacts_is_that_of_their_sound_neighbours():
    from tools.saliency.models import without_artifacts

    attention = np.arange(20, dtype=np.float32).reshape(4, 5)
    lengths = np.ones((4, 5), np.float32)
    assert without_artifacts(attention, lengths) is attention
    attention[1, 2], lengths[1, 2] = 500, 2.5
    mended = without_artifacts(attention, lengths)
    assert mended[1, 2] == np.median([1, 2, 3, 6, 8, 11, 12, 13])
    attention[1, 2] = mended[1, 2]
    assert np.array_equal(mended, attention)
    # Mark a 2 x 2 block in the corner as artifacts: the corner patch itself has no valid neighbour.
    lengths[:2, :2] = 3
    assert without_artifacts(np.where(lengths > 2, 900, attention).astype(np.float32), lengths).max() <= 19


@pytest.mark.parametrize("family", ["dinov2", "dinov3"])
def test_the_class_tokens_attention_of_the_last_layer_is_read(things_checkpoint: Checkpoints, family: str) -> None:
    """The attention is row 0 of the last layer, averaged over the heads, without the class token and the registers."""
    import torch

    from tools.saliency.models import Attention

    model = Attention(str(things_checkpoint(family)), "cpu")
    prepared = model.prepare(np.random.default_rng(0).integers(0, 256, (80, 120, 3)).astype(np.uint8))
    (prediction,) = model.predict([prepared])
    network = model._checkpoint.model
    with torch.inference_mode():
        last = network(pixel_values=prepared.values, output_attentions=True).attentions[-1][0].mean(dim=0)
    patches = prediction.size
    assert last.shape[-1] == patches + (1 if family == "dinov2" else 5)
    assert np.allclose(prediction.ravel(), last[0, -patches:].numpy(), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_boolean_maps_count_parts_that_the_border_does_not_touch(seed: int) -> None:
    import cv2

    rng = np.random.default_rng(seed)
    rough = cv2.GaussianBlur(rng.normal(size=(40, 60, 3)), (0, 0), 0.5 + seed)
    pixels = np.clip(128 + rough * (60 / rough.std()), 0, 255).astype(np.uint8)
    attention = np.zeros((40, 60), np.float32)
    for channel in cv2.split(cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)):
        levels = (channel - channel.min()) * (255 / float(channel.max() - channel.min()))
        for number in range(LEVELS):
            above = levels > (number + 0.5) * 255 / LEVELS
            for region in (above, ~above):
                _, labels = cv2.connectedComponents(region.astype(np.uint8), connectivity=8)
                outside = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
                enclosed = (region & ~np.isin(labels, outside)).astype(np.float32)
                if enclosed.any():
                    attention += cv2.dilate(enclosed, np.ones((5, 5))) / float(np.sqrt(enclosed.sum()))
    expected = stretch(cv2.GaussianBlur(attention, (0, 0), 4))
    assert (boolean_maps(pixels) == expected).all()


def test_even_attention_marks_no_place() -> None:
    noise = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    assert not contrasted(np.float32(1 / 600) * (1 + 0.005 * noise)).any()
    assert contrasted(np.float32(1 / 600) * (1 + 0.5 * noise)).max() == 1
