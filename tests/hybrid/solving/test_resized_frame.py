"""Coordinates in a picture that a processor has resized, and in crops of crops, are converted to the intended
pixels."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from hybrid.core.coordinates import at, unmarked
from hybrid.core.errors import UsageError
from hybrid.core.types import Box, ImageRef, StoredImage
from hybrid.models.images import Resizing, fit
from hybrid.solving.coordinates import frame_named
from hybrid.solving.evidence import image_sizes
from hybrid.solving.images import ImageRegistry

SIZES = ((4032, 3024), (300, 4000), (64, 64))
RESIZED = ("resized:14", "resized:28:3136:1003520", "resized:28", "resized:32:65536:16777216")
FRAMES = (*RESIZED, "thousandths", "fractions")


def registry(size: tuple[int, int]) -> ImageRegistry:
    """Return a picture, a crop of it, and a crop of the crop, each with its own size."""
    image_registry = ImageRegistry([ImageRef("img:1", StoredImage("a" * 64, *size, "image/png"))])
    for name, share in (("img:1", 3), ("img:1.1", 7)):
        part = size[0] // share, size[1] // 2
        stored = StoredImage(f"{share}" * 64, *part, "image/png")
        image_registry.add(ImageRef("", stored, name, Box(0, 0, *part), 1.0), name)
    return image_registry


@pytest.mark.parametrize(("size", "frame", "sent"), list(itertools.product(SIZES, FRAMES, (None, 200_000, 1_000_000))))
def test_boxes_and_points_land_within_a_pixel(size: tuple[int, int], frame: str, sent: int | None) -> None:
    system, images = replace(frame_named(frame), sent_pixels=sent), registry(size)
    for name in ("img:1", "img:1.1", "img:1.1.1"):
        image = images.get(name).image
        values = image.width, image.height
        seen = fit(*values, sent) if sent else values
        seen = system.resizing.size(*seen) if system.resizing else seen
        units = {"thousandths": (1000, 1000), "fractions": (1, 1)}.get(frame, seen)
        for across, down in ((0.1, 0.9), (0.333, 0.5), (1.0, 1.0)):
            x, y = across * units[0], down * units[1]
            payload = {"point": {"x": x, "y": y}, "boxes": [{"x0": 0, "y0": 0, "x1": x, "y1": y}]}
            read: Any = system.to_pixels(payload, images, [name])
            for result in ((read["point"]["x"], read["point"]["y"]), (read["boxes"][0]["x1"], read["boxes"][0]["y1"])):
                assert abs(result[0] - across * values[0]) <= 1
                assert abs(result[1] - down * values[1]) <= 1


@pytest.mark.parametrize(("size", "frame"), list(itertools.product(SIZES, RESIZED)))
def test_what_a_tool_says_is_the_same_pixel_when_it_is_written_back(size: tuple[int, int], frame: str) -> None:
    system, images = frame_named(frame), registry(size)
    for pixel in (0, 7, min(size) - 1):
        text = system.say(*unmarked(at("x", pixel)), [images.get("img:1")])
        read: Any = system.to_pixels({"point": {"x": float(text), "y": 0}}, images, ["img:1"])
        assert read["point"]["x"] == pixel


def test_the_model_is_told_the_size_that_it_sees() -> None:
    sizes = image_sizes([registry((4032, 3024)).get("img:1")], frame_named("resized:28:3136:1003520"))
    assert sizes.startswith("img:1, 1148 x 840 px")


@pytest.mark.parametrize("word", ["resized", "resized:0", "resized:28:9:3", "resized:28:9", "resized:a", "inches"])
def test_a_frame_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=r"available: pixels, .*, resized:FACTOR\[:MIN:MAX\], probe"):
        frame_named(word)
    assert Resizing(28).size(64, 64) == (56, 56)
