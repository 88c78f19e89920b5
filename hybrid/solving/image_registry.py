"""The images of one prompt, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hybrid.core.errors import ToolError
from hybrid.core.types import Fault, ImageRef


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
