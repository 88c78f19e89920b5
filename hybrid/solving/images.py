"""The images of one prompt: by name, and in the form in which a model gets them (`--images`).

    separate  each image as it is, after its name
    concat    all images side by side in one picture, each under its name: for models that take one image
    caption   a description of each image instead of the image, by the model itself or by a second one (`captions.py`)
    none      no image; this shows how much the text alone gives away

Tools always get the original images; only what the MLLM is shown changes. Pictures are joined as in the benchmark's
paper if it defines a way (`BenchmarkCard.joint`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config import ImageForm
from hybrid.core.errors import ToolError
from hybrid.core.images import OUR_JOINT, ImageStore, Joint
from hybrid.core.types import Fault, ImageRef, Prompt

if TYPE_CHECKING:
    from hybrid.tool import Pixels


class ImageRegistry:
    """The images of a prompt and those that tools made from them, by name.

    Tools get images only from the registry, so they cannot reach a view that has not been revealed yet.
    """

    def __init__(self, images: Sequence[ImageRef]) -> None:
        self._refs = {ref.name: ref for ref in images}
        self._made: dict[str, int] = {}

    def get(self, name: str) -> ImageRef:
        """Return the image of that name. Raises `ToolError` listing the images."""
        if name not in self._refs:
            names = ", ".join(self._refs) or "none"
            raise ToolError(f"there is no image {name!r:.80}; the images are: {names}", Fault.UNKNOWN_IMAGE)
        return self._refs[name]

    def find(self, name: str) -> ImageRef | None:
        """Return the image of that name, or None."""
        return self._refs.get(name)

    def add(self, ref: ImageRef, of: str) -> ImageRef:
        """Name and register an image made from `of` (`img:1.1`, `img:1.2`, ...).

        An image with a parent gets `of` as its parent.
        """
        number = self._made.get(of, 0) + 1
        while f"{of}.{number}" in self._refs:
            number += 1
        self._made[of] = number
        registered = replace(ref, name=f"{of}.{number}", parent=ref.parent and of)
        self._refs[registered.name] = registered
        return registered

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order of appearance."""
        return tuple(self._refs)


Parts = tuple[str | ImageRef, ...]
# Returns the caption of an image.
Describe = Callable[[ImageRef], Awaitable[str]]

STRIP_PX = 28


async def shown_parts(
    prompt: Prompt,
    form: ImageForm,
    describe: Describe,
    store: ImageStore,
    *,
    labelled: bool = True,
    joint: Joint = OUR_JOINT,
) -> Parts:
    """Return the prompt's parts for the model; without `labelled`, no name is in a picture or before a caption.

    Raises the exceptions of `describe`.
    """
    if form == "separate" or not prompt.images:
        return prompt.parts
    instead: dict[str, str | ImageRef] = {}
    if form == "concat":
        instead[prompt.images[0].name] = side_by_side(prompt.images, store, labelled=labelled, joint=joint)
    elif form == "caption":
        for image in prompt.images:
            caption = await describe(image)
            instead[image.name] = f"{image.name}: {caption}" if labelled else caption
    parts = (part if isinstance(part, str) else instead.get(part.name) for part in prompt.parts)
    return tuple(part for part in parts if part is not None)


def side_by_side(
    images: Sequence[ImageRef], store: ImageStore, *, labelled: bool = True, joint: Joint = OUR_JOINT
) -> ImageRef:
    """Join pictures into one, left to right, each under a strip with its name; a single picture stays unchanged.

    Nothing is scaled: the height is that of the tallest image plus the strip. Without `labelled` there is no strip.
    """
    if len(images) == 1:
        return images[0]
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    tiles: list[Pixels] = []
    for ref in images:
        pixels = tile = store.pixels(ref.image)
        if labelled:
            strip = Image.new("RGB", (max(pixels.shape[1], 60), STRIP_PX), (255, 255, 255))
            font = ImageFont.load_default(size=18)
            ImageDraw.Draw(strip).text((4, 3), ref.name, fill=(0, 0, 0), font=font)
            tile = np.full((STRIP_PX + pixels.shape[0], strip.width, 3), 255, dtype=np.uint8)
            tile[:STRIP_PX] = np.asarray(strip)
            tile[STRIP_PX:, : pixels.shape[1]] = pixels
        tiles.append(tile)
    height = max(tile.shape[0] for tile in tiles)
    width = sum(tile.shape[1] for tile in tiles) + joint.gap_px * (len(tiles) - 1)
    sheet = np.full((height, width, 3), joint.rgb, dtype=np.uint8)
    x = 0
    for tile in tiles:
        y = (height - tile.shape[0]) // 2 if joint.at == "middle" else 0
        sheet[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
        x += tile.shape[1] + joint.gap_px
    return ImageRef("img:all", store.put_pixels(sheet))
