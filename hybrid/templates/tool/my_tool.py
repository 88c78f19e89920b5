"""How light an image is, as a whole or in one half: an example to be changed.

`hybrid tools run my_tool photo.jpg --path my_tools`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from hybrid.tool import Args, BackendCard, Card, CheckCase, Evidence, KnownAnswer, Request, Tool


class MyToolArgs(Args):
    """The arguments of a call."""

    side: Literal["all", "left", "right"] = Field("all", description="The whole image, or its left or right half.")


class Classical:
    """The weight-free backend."""

    def setup(self, device: str, weights: str | None) -> None:
        """Nothing to load."""

    def run(self, requests: Sequence[Request[MyToolArgs]]) -> list[Evidence]:
        """One evidence a request, in order. Raise `ToolError` for a request that cannot be answered."""
        results = []
        for request in requests:
            pixels = request.images[0]
            half = max(1, pixels.shape[1] // 2)
            part = {"all": pixels, "left": pixels[:, :half], "right": pixels[:, -half:]}[request.args.side]
            light = float(part.mean()) / 255
            text = f"Mean lightness ({request.args.side}): {light:.2f} of 1."
            results.append(Evidence(text, {"lightness_0_1": light}, confidence=1.0))
        return results


def white_left_half() -> CheckCase:
    """A question whose answer is known."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20] = 255
    return CheckCase((pixels,), {"side": "left"}, lambda it: None if it.data["lightness_0_1"] == 1 else "it is white")


TOOL = Tool(
    card=Card(
        name="my_tool",
        summary="Says how light an image is, as a whole or in its left or right half.",
        limits="Says nothing about what the image shows.",
        backends=(BackendCard("classical", "1", Classical, "Mean of all channels."),),
    ),
    args=MyToolArgs,
    checks=(KnownAnswer("white left half", white_left_half),),
)
