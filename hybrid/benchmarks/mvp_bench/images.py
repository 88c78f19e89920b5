"""MVP-Bench's gated images: their location, advice if they are missing, and the two halves of a pair picture."""

from __future__ import annotations

from pathlib import Path

from hybrid.benchmarks._shared.paths import inside, read_located
from hybrid.benchmarks.mvp_bench.data import PairRow
from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore
from hybrid.core.types import Box, ImageRef, StoredImage

FOLDERS = ("Cross_Images", "Single_Images")
GATED = (
    "MVP-Bench's images are only available on request: ask for them at https://huggingface.co/datasets/"
    "GZClarence/MVP-Bench or with the form in the readme of https://github.com/GuanzhenLi/MVP-Bench, and put the "
    "folders Cross_Images and Single_Images into the folder Images next to all_questions.json"
)


# Folders to which official image paths are relative.
BELOW = ("Images", "")


def image_file(root: Path, image: str) -> Path | None:
    """Return the file of an official image path, in `Images` or next to the questions; None if it is in neither."""
    return next((path for base in BELOW if inside(root, path := root / base / image)), None)


class PairImages:
    """The images of rows, each read once. A pair picture comes with its left and right half."""

    def __init__(self, root: Path, store: ImageStore) -> None:
        self._root = root
        self._store = store
        self._known: dict[str, tuple[StoredImage, ...] | DataError] = {}

    def of(self, row: PairRow) -> tuple[StoredImage, ...]:
        """Return one picture, or a pair picture and its halves. Raises `DataError` for a missing or broken image."""
        if row.image not in self._known:
            try:
                self._known[row.image] = self._read_images(row)
            except DataError as error:
                self._known[row.image] = error
        images = self._known[row.image]
        if isinstance(images, DataError):
            raise images
        return images

    def _read_images(self, row: PairRow) -> tuple[StoredImage, ...]:
        path = image_file(self._root, row.image)
        if path is None:
            raise DataError(f"{row.where}, field image: {row.image} is not under {self._root / 'Images'}")
        location = f"{row.where}, field image"
        picture = self._store.put(read_located(self._root, row.image, location, BELOW), f"{location}: {path}")
        if row.task != "cross":
            return (picture,)
        if picture.width < 2:
            raise DataError(
                f"{row.where}, field image: {path} is {picture.width} pixel wide and cannot hold two pictures"
            )
        pixels = self._store.pixels(picture)
        boxes = (half_box(picture, 0), half_box(picture, 1))
        return (picture, *(self._store.put_pixels(pixels[:, int(box.x0) : int(box.x1)]) for box in boxes))


def half_box(pair: StoredImage, half: int) -> Box:
    """Return the left (0) or right (1) half of a pair picture, in its pixels.

    The two pictures are side by side with equal widths; the middle column of an odd width belongs to neither.
    """
    wide = pair.width // 2
    x0 = 0 if half == 0 else pair.width - wide
    return Box(float(x0), 0.0, float(x0 + wide), float(pair.height))


def halves(images: tuple[StoredImage, ...], parent: str = "img:1") -> tuple[ImageRef, ...]:
    """Return the halves of a question's pair picture, named `img:1.1` and `img:1.2`; none for a single picture.

    `images` are those of `PairImages.of`: the pair picture, its left half, its right half.
    """
    return tuple(
        ImageRef(f"{parent}.{number}", image, parent, half_box(images[0], number - 1))
        for number, image in enumerate(images[1:], 1)
    )
