"""The pictures of conversations: their descriptions, the contents of their parts, and the network's input.

Eyes(folder).conversation(row)                  a conversation with what is seen before its answer
Pictures(folder, processor).batch(names)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hybrid.core.images import ImageStore
from training.architecture import MEAN, PATCH, SIDE, SPREAD
from training.policy import VIEWS
from training.scenes import SCENES
from training.sight import Thing, View, describe_view, patches

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hybrid.tool import Pixels


class Eyes:
    """Descriptions of the pictures of a folder and readings of their parts; each picture is read once."""

    def __init__(self, folder: Path) -> None:
        self._store = ImageStore(folder / "images")
        self._said: dict[tuple[View, str], str] = {}
        self._parts: dict[str, list[Thing | None]] = {}

    def conversation(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Insert the description before the answer of a conversation if its task has a view and no tool ran.

        In a vision lesson the description is the full answer.
        """
        view = view_of(row)
        if view is None:
            return row
        *previous, last = row["turns"]
        name = pictures_of(row)[-1]
        if (view, name) not in self._said:
            self._said[view, name] = describe_view(view, self._pixels(name))
        words = "\n".join(part for part in (self._said[view, name], last["content"]) if part)
        return {**row, "turns": [*previous, {**last, "content": words}]}

    def parts(self, name: str) -> list[Thing | None]:
        """Return what each token of a picture shows."""
        if name not in self._parts:
            self._parts[name] = patches(self._pixels(name), SIDE // PATCH, SIDE // PATCH)
        return self._parts[name]

    def _pixels(self, name: str) -> Pixels:
        import numpy as np
        from PIL import Image

        with Image.open(self._store.path(name)) as picture:
            return np.asarray(picture.convert("RGB"))


def view_of(row: Mapping[str, Any]) -> View | None:
    """Return the description of a conversation's picture; None if there is none."""
    if row["benchmark"] == SCENES:
        return cast("View", row["task"])
    calls = sum(turn["role"] == "assistant" for turn in row["turns"]) > 1
    return None if calls else VIEWS.get((row["benchmark"], row["task"]))


def pictures_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sha256 of each picture of a conversation."""
    contents = (turn["content"] for turn in row["turns"] if isinstance(turn["content"], list))
    return tuple(part["image"] for content in contents for part in content if part["type"] == "image")


class Pictures:
    """The pictures in the network's input size, by sha256: uint8 (3, side, side), not yet normalised."""

    def __init__(self, folder: Path, processor: Any) -> None:
        self._store = ImageStore(folder / "images")
        self._processor = processor.image_processor
        self._made: dict[str, npt.NDArray[np.uint8]] = {}

    def __getitem__(self, sha256: str) -> npt.NDArray[np.uint8]:
        if sha256 not in self._made:
            from PIL import Image

            with Image.open(self._store.path(sha256)) as picture:
                built = self._processor(
                    picture.convert("RGB"), do_rescale=False, do_normalize=False, return_tensors="np"
                )["pixel_values"][0]
            self._made[sha256] = built.astype("uint8")
        return self._made[sha256]

    def batch(self, names: Sequence[str]) -> Any:
        """Return the normalised pictures as one tensor (n, 3, side, side)."""
        import numpy as np
        import torch

        pixels = torch.from_numpy(np.stack([self[name] for name in names])).float() / 255
        mean, spread = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, SPREAD))
        return (pixels - mean) / spread
