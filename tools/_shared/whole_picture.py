"""A picture for a network as its checkpoint's own processor makes it, but whole: scaled to a size, nothing cut off.

`values = whole_picture(checkpoint, pixels, 420, 560)` is a tensor (1, 3, 420, 560). Interpolation (bicubic
for DINOv2, as in `dinov2/data/transforms.py` of its authors), rescaling, mean and standard deviation are those of the
processor; only its size is replaced and its centre crop is left out, because what is cut off cannot be pointed at.
"""

from __future__ import annotations

from typing import Any

from hybrid.tool import Pixels
from hybrid.tool.checkpoint import Checkpoint


def whole_picture(checkpoint: Checkpoint, pixels: Pixels, height: int, width: int) -> Any:
    """An RGB image (H, W, 3) as a tensor (1, 3, height, width)."""
    return checkpoint.process(
        images=[pixels],
        # Said explicitly: an image of 3 rows would be taken for one of 3 channels.
        input_data_format="channels_last",
        do_resize=True,
        size={"height": height, "width": width},
        do_center_crop=False,
    )["pixel_values"]


def square_side(processor: Any) -> int:
    """Side, in pixels, of the square that a processor gives to its network. Raises `ValueError` if it names none."""
    size = (getattr(processor, "do_center_crop", False) and processor.crop_size) or processor.size
    side = size.get("height") or size.get("shortest_edge")
    if not side:
        raise ValueError("the image processor names no size")
    return int(side)
