"""The form in which a model gets a prompt's images: `--images separate | concat | caption | none`.

    separate  each image as it is, after its name
    concat    one picture of all of them side by side, each under its name: for models that take one image
    caption   the model's own description of each image, made in a call of its own, instead of the image
    none      no image at all: what the text alone gives away

Tools always get the original images; only what the MLLM is shown changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.images import ImageStore
from hybrid.messages import user_message
from hybrid.solving.empty_replies import words_of
from hybrid.solving.kit import AskModel, ImageForm, Log
from hybrid.types import ImageRef, Prompt

if TYPE_CHECKING:
    from hybrid.tool import Pixels

Parts = tuple[str | ImageRef, ...]

CAPTION = (
    "Describe this image in detail for somebody who has to answer questions about it without seeing it: what is where, "
    "colours, sizes, texts, and every mark drawn on it (circles, boxes, letters) with its place."
)
STRIP_PX = 28
GAP_PX = 12


async def shown_parts(
    prompt: Prompt, form: ImageForm, model: AskModel, store: ImageStore, log: Log, *, labelled: bool = True
) -> Parts:
    """The prompt's parts as the model gets them; without `labelled`, no name is in a picture or a description.

    Raises what the model raises, when it has to describe.
    """
    if form == "separate" or not prompt.images:
        return prompt.parts
    instead: dict[str, str | ImageRef] = {}
    if form == "concat":
        instead[prompt.images[0].name] = side_by_side(prompt.images, store, labelled=labelled)
    elif form == "caption":
        for image in prompt.images:
            told = await _describe(image, model, log, labelled=labelled)
            instead[image.name] = f"{image.name}: {told}" if labelled else told
    shown = (part if isinstance(part, str) else instead.get(part.name) for part in prompt.parts)
    return tuple(part for part in shown if part is not None)


async def _describe(image: ImageRef, model: AskModel, log: Log, *, labelled: bool) -> str:
    return (await words_of(model, [user_message([CAPTION, image], labelled=labelled)], log)).strip()


def side_by_side(images: Sequence[ImageRef], store: ImageStore, *, labelled: bool = True) -> ImageRef:
    """One picture of several on white, left to right, each under a strip with its name; a single one stays itself.

    Nothing is scaled: the height is that of the highest image and the strip. Without `labelled` there is no strip.
    """
    if len(images) == 1:
        return images[0]
    import numpy as np

    pictures = [(store.pixels(ref.image), ref.name) for ref in images]
    tiles = [_titled(pixels, name) if labelled else pixels for pixels, name in pictures]
    height = max(tile.shape[0] for tile in tiles)
    width = sum(tile.shape[1] for tile in tiles) + GAP_PX * (len(tiles) - 1)
    sheet = np.full((height, width, 3), 255, dtype=np.uint8)
    x = 0
    for tile in tiles:
        sheet[: tile.shape[0], x : x + tile.shape[1]] = tile
        x += tile.shape[1] + GAP_PX
    return ImageRef("img:all", store.put_pixels(sheet))


def _titled(pixels: Pixels, name: str) -> Pixels:
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("RGB", (max(pixels.shape[1], 60), STRIP_PX), (255, 255, 255))
    ImageDraw.Draw(strip).text((4, 3), name, fill=(0, 0, 0), font=ImageFont.load_default(size=18))
    width = max(pixels.shape[1], strip.width)
    tile = np.full((STRIP_PX + pixels.shape[0], width, 3), 255, dtype=np.uint8)
    tile[:STRIP_PX, : strip.width] = np.asarray(strip)
    tile[STRIP_PX:, : pixels.shape[1]] = pixels
    return tile
