"""Images of a run for the pages: path in the site, size, and description.

    pictures = Pictures(home() / "images")
    pictures.of(ref, "question")          # PicturePayload(name="img:1", file="images/ab/abcd....jpg", ...)

A picture's path in the site derives from its sha256; a picture that the store lacks has no path, and its caption says
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybrid.core.images import ImageStore
from hybrid.core.types import Box, ImageRef, StoredImage
from hybrid.report.payload import Mark, PicturePayload

# File suffix by media type.
SUFFIXES: Mapping[str, str] = {
    **{f"image/{kind}": kind for kind in ("png", "webp", "gif", "bmp")},
    "image/jpeg": "jpg",
    "image/tiff": "tif",
}
ABSENT = "the image store does not have this image"


@dataclass(frozen=True)
class Drawn:
    """A tool that drew: its name, and the sizes in pixels of the images that it may have drawn over, by name."""

    tool: str
    sizes: Mapping[str, tuple[int, int]]


class Pictures:
    """Creates pictures from references, and caches which files the store has.

    Args:
        root: the image store's folder.
    """

    def __init__(self, root: Path) -> None:
        self._store = ImageStore(root)
        self._files: dict[StoredImage, str | None] = {}

    def file(self, image: StoredImage) -> str | None:
        """Return an image's path in the site; None if the store does not have it."""
        if image not in self._files:
            name = f"images/{image.sha256[:2]}/{image.sha256}.{SUFFIXES[image.media_type]}"
            self._files[image] = name if self._store.path(image.sha256).is_file() else None
        return self._files[image]

    def of(
        self, ref: ImageRef, what: str, drawing: Drawn | None = None, marks: tuple[Mark, ...] = ()
    ) -> PicturePayload:
        """Return the picture of an image that was shown or made by a tool; `what` is the start of its caption."""
        file = self.file(ref.image)
        over, size = None, (ref.image.width, ref.image.height)
        if drawing is not None and ref.parent not in (None, ref.name) and ref.box in (None, Box(0, 0, *size)):
            # An overlay covers its full parent and has the same size; a crop does not.
            over = ref.parent if drawing.sizes.get(ref.parent or "") == size else None
        facts = [what, f"{ref.image.width} x {ref.image.height} pixels"]
        if over is not None:
            facts.insert(0, f"drawn over {over}")
        elif ref.box is not None:
            box = ref.box
            facts.insert(0, f"crop of {ref.parent}, box ({box.x0:g}, {box.y0:g}, {box.x1:g}, {box.y1:g})")
        elif ref.parent is not None:
            facts.insert(0, f"made of {ref.parent}")
        if ref.scale != 1:
            facts.append(f"enlarged {ref.scale:g} times" if ref.scale > 1 else f"reduced to {ref.scale:g}")
        if file is None:
            facts.append(ABSENT)
        return PicturePayload(
            ref.name,
            file,
            width=ref.image.width,
            height=ref.image.height,
            caption=", ".join(filter(None, facts)),
            over=over,
            marks=marks,
        )
