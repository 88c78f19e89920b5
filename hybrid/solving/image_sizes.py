"""Names and sizes of the images of a prompt, for a model that calls tools or reads their findings.

    image_sizes([*prompt.images, *prompt.derived], ctx.frame)
    # "img:1, 640 x 480 px; img:1.1, the left half of img:1 (x 0 to 320), 320 x 480 px"

Questions speak of fractions and of halves, tools of pixels: without the sizes neither can be turned into the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid.solving.coordinates import CoordinateSystem
from hybrid.types import Box, ImageRef, StoredImage


def image_sizes(images: Sequence[ImageRef], frame: CoordinateSystem) -> str:
    """Name and size in pixels of every image, and of which region of which image it is a copy.

    For an image that the model gets scaled down and addresses in pixels, the size at which it is shown is added.
    """
    known = {ref.name: ref.image for ref in images}
    return "; ".join(f"{ref.name}, {_region(ref, known)}{_size(ref.image, frame)}" for ref in images)


def _size(image: StoredImage, frame: CoordinateSystem) -> str:
    size = f"{image.width} x {image.height} px"
    if frame.name != "pixels":
        return size
    scale, _ = frame.point(1.0, 1.0, (image.width, image.height))
    if scale == 1.0:
        return size
    return f"{size} (shown to you, and to be spoken of, at {image.width / scale:.0f} x {image.height / scale:.0f} px)"


def _region(ref: ImageRef, known: Mapping[str, StoredImage]) -> str:
    """The part of its parent that an image shows, with a comma after it; empty for an original image."""
    parent = known.get(ref.parent or "")
    if ref.box is None or parent is None:
        return ""
    side = _side(ref.box, parent)
    if side is not None:
        return f"the {side} half of {ref.parent} (x {ref.box.x0:g} to {ref.box.x1:g}), "
    box = ref.box
    return f"region ({box.x0:g}, {box.y0:g}) to ({box.x1:g}, {box.y1:g}) of {ref.parent}, "


def _side(box: Box, parent: StoredImage) -> str | None:
    """The side of a box that is half of an image from top to bottom, up to a column in the middle; else None."""
    if (box.y0, box.y1) != (0, parent.height) or abs(box.x1 - box.x0 - parent.width / 2) > 1:
        return None
    return {(True, False): "left", (False, True): "right"}.get((box.x0 == 0, box.x1 == parent.width))
