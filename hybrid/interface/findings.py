"""A tool from Python, also where an event loop already runs, and its finding as a notebook shows it.

finding = hybrid.tool("depth").run("photo.jpg", labels=["A", "B"])
finding.images[0].show()
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from PIL import Image, ImageOps

from hybrid.config import ServiceOptions
from hybrid.core.error_text import describe_error
from hybrid.core.errors import DataError, ToolError
from hybrid.core.images import ImageStore, home, read_image_file, to_rgb
from hybrid.core.python_words import python_errors
from hybrid.core.types import Finding, ImageRef, Json, StoredImage
from hybrid.plugins.weights_option import weights_from_python
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Pixels, Tool

R = TypeVar("R")

# An image file or its bytes, a Pillow image, or an RGB array of shape (H, W, 3) and type uint8.
ImageInput: TypeAlias = "str | Path | bytes | Image.Image | Pixels"


@dataclass(frozen=True, repr=False)
class ShownFinding:
    """A finding; a notebook shows its text and its pictures.

    `data` is JSON with units in its keys, `confidence` in 0..1; `backend` and `version` say what answered. `notes` are
    whole sentences about that, such as why a learned backend could not be had.
    """

    text: str
    data: Mapping[str, Json]
    confidence: float
    backend: str
    version: str
    # The pictures as PNG files: overlays the size of their input, and derived images.
    pngs: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> tuple[Image.Image, ...]:
        """The pictures as Pillow images."""
        return tuple(Image.open(io.BytesIO(png)) for png in self.pngs)

    def as_json(self) -> dict[str, Any]:
        """All but the pictures, as `json.dumps` takes it."""
        data = json.loads(json.dumps(self.data))
        facts = {"confidence": self.confidence, "backend": self.backend, "version": self.version}
        return {"text": self.text, "data": data, **facts, "notes": list(self.notes)}

    def __str__(self) -> str:
        details = f"confidence {self.confidence:.2f}, {self.backend} backend, version {self.version}"
        return "\n".join([self.text, details, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())
        encoded = (base64.b64encode(png).decode() for png in self.pngs)
        return lines + "".join(f'<img src="data:image/png;base64,{png}" style="max-width: 100%">' for png in encoded)


@dataclass(frozen=True)
class RunnableTool:
    """A specialist that can be run on images from Python."""

    tool: Tool

    def run(
        self,
        *images: ImageInput,
        backend: Literal["auto", "learned", "classical"] = "auto",
        weights: str | Path | Mapping[str, str | Path] | None = None,
        device: str = "cpu",
        seed: int = 0,
        **args: Json,
    ) -> ShownFinding:
        """Run the tool on one image or several.

        Args:
            images: in the order in which the tool takes them.
            backend: which code may answer.
            weights: folder or hub id for the learned backend; a mapping by tool, where it asks others.
            device: `cpu`, `mps`, `cuda` or `cuda:N,cuda:M`.
            seed: for tools that draw lots.
            args: the tool's own arguments, as `hybrid tools show NAME` lists them.

        Raises:
            ToolError: wrong arguments, or images that the tool cannot answer for.
            DataError: an image that cannot be read.
            WeightsError: a learned backend was asked for and its weights cannot be used.
            UsageError: the tool loads no weights, or it is not clear which tool loads them.
        """
        store = ImageStore(home() / "images")
        refs = [ImageRef(f"img:{place}", stored_image(store, image)) for place, image in enumerate(images, 1)]
        with python_errors():
            by_tool = weights_from_python(weights, [self.tool])
        options = ServiceOptions(backend=backend, weights=by_tool, device=device, pictures="png")
        with closing(CachedTools(store, FindingCache(home() / "findings", store), options)) as service:
            try:
                finding: Finding = wait_for(service.call(self.tool, self.tool.parse(args), refs, seed))
            except ToolError as error:
                error.marked = describe_error(error)
                raise
        return show_finding(finding, store, service.notices)


def show_finding(finding: Finding, store: ImageStore, notes: Sequence[str]) -> ShownFinding:
    """A finding of a service that stores pictures as PNG, with their bytes. Raises `DataError` as `ImageStore.read`."""
    pngs = tuple(store.read(ref.image) for ref in finding.images)
    facts = (finding.text, finding.data, finding.confidence, finding.backend, finding.version)
    return ShownFinding(*facts, pngs, tuple(notes))


def stored_image(store: ImageStore, image: ImageInput) -> StoredImage:
    """The image in the store. Raises `DataError` for what is none."""
    if isinstance(image, bytes):
        return store.put(image, "the image")
    if isinstance(image, str | Path):
        try:
            return store.put(read_image_file(Path(image), str(image)), str(image))
        except OSError as error:
            raise DataError(f"{image}: {error.strerror or error}") from error
    if isinstance(image, Image.Image):
        return store.put_pixels(np.array(to_rgb(ImageOps.exif_transpose(image))))
    return store.put_pixels(image)


def wait_for(work: Coroutine[Any, Any, R]) -> R:
    """The result of some work; where an event loop already runs (a notebook), it runs in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, work).result()
