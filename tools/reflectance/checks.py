"""Known answers of reflectance: of a dark and a light paint in one light the dark one, in either order.

Between narrow stripes an albedo that lies 8 px beside the picture, or at another scale, has them exchanged. The stripes
are a band on a wall: a picture of nothing but stripes asks whether a tool takes texture for paint, which is another
question.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hybrid.tool import CheckCase, KnownAnswer
from tools._shared.known_answers import expects, point_args

HEIGHT, WIDTH, STRIPE = 320, 440, 14
# The stripes that there are, counted from the border: three beside either of the two that are asked about.
BAND = range(18, 26)
WALL, DARK, LIGHT = (150, 145, 138), (60, 38, 34), (232, 214, 150)


def _paints(place: int) -> CheckCase:
    import cv2

    canvas = np.full((HEIGHT, WIDTH, 3), WALL, np.float32)
    centres = ((120, 160), (320, 160))
    for centre, colour in zip(centres, (DARK, LIGHT), strict=True):
        cv2.circle(canvas, centre, 80, colour, -1, cv2.LINE_AA)
    light = np.linspace(1.05, 0.85, canvas.shape[0], dtype=np.float32)[:, None, None]
    picture = np.clip(canvas * light, 0, 255).astype(np.uint8)
    return CheckCase((picture,), {"points": point_args(centres[:: -1 if place else 1])}, expects("darker_index", place))


def _stripes(place: int, scale: int, *, turned: bool) -> CheckCase:
    """Stripes of two paints; the points lie in the middle of a dark and a light one, far from the origin."""
    canvas = np.full((HEIGHT, WIDTH, 3), WALL, np.uint8)
    for number in BAND:
        canvas[:, number * STRIPE : (number + 1) * STRIPE] = LIGHT if number % 2 else DARK
    picture = np.repeat(np.repeat(canvas, scale, axis=0), scale, axis=1)
    # About 320 px from the origin, where 5 % is a stripe.
    centres = [((number + 0.5) * STRIPE * scale - 0.5, HEIGHT / 2 * scale) for number in (22, 21)]
    if turned:
        picture, centres = np.ascontiguousarray(picture.swapaxes(0, 1)), [(y, x) for x, y in centres]
    return CheckCase((picture,), {"points": point_args(centres[:: -1 if place else 1])}, expects("darker_index", place))


CHECKS = (
    *(KnownAnswer(f"dark paint at point {'AB'[place]}", partial(_paints, place)) for place in (0, 1)),
    KnownAnswer("dark stripe at point A", partial(_stripes, 0, 1, turned=False)),
    KnownAnswer("dark stripe at point B, across", partial(_stripes, 1, 1, turned=True)),
    KnownAnswer("dark stripe of a large picture", partial(_stripes, 1, 3, turned=False)),
)
