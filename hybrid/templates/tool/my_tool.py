"""How light an image is, as a whole or in one half: an example to be changed.

`hybrid tools run my_tool photo.jpg --path my_tools`
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hybrid.tool import Image, ToolOutput, tool


class MyToolOutput(ToolOutput):
    """The values for rules and other tools; the end of a number's name is its unit."""

    lightness_0_1: float


@tool(limits="Says nothing about what the image shows.")
def my_tool(image: Image, side: Literal["all", "left", "right"] = "all") -> MyToolOutput:
    """Says how light an image is, as a whole or in its left or right half.

    Mean of all channels.

    Args:
        image: The picture.
        side: The whole image, or its left or right half.
    """
    half = max(1, image.shape[1] // 2)
    part = {"all": image, "left": image[:, :half], "right": image[:, -half:]}[side]
    light = part.mean() / 255
    return MyToolOutput(f"Mean lightness ({side}): {light:.2f} of 1.", lightness_0_1=light)


@my_tool.check(expect={"lightness_0_1": 1.0}, side="left")
def white_left_half() -> Image:
    """Return a picture whose answer is known."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20] = 255
    return pixels
