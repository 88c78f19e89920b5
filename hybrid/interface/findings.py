"""Runs a tool from Python, even where an event loop already runs, and shows its output in a notebook.

finding = hybrid.tool("depth").run("photo.jpg", labels=["A", "B"])
finding.images[0].show()
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from PIL import Image, ImageOps

from hybrid.config import ServiceOptions
from hybrid.config.python_words import python_errors
from hybrid.core.error_text import describe_error
from hybrid.core.errors import DataError, HybridError, ToolError, UsageError, WeightsError
from hybrid.core.images import ImageStore, home, read_image_file, to_rgb
from hybrid.core.types import Finding, ImageRef, Json, StoredImage
from hybrid.plugins.weights_option import weights_from_python
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Pixels, Tool

R = TypeVar("R")

# Types of a picture: an image file or its bytes, a Pillow image, or an RGB array of shape (H, W, 3) and type uint8.
ImageInput: TypeAlias = "str | Path | bytes | Image.Image | Pixels"


@dataclass(frozen=True)
class FailedCall:
    """The result of `RunnableTool.map` for a picture whose call failed; its truth value is False."""

    # Index of the picture, counted from 0.
    place: int
    reason: str
    error: HybridError

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"picture {self.place}: {self.reason}"


@dataclass(frozen=True, repr=False)
class ShownFinding:
    """A tool output; a notebook shows its text and its pictures.

    `data` is JSON with units in its keys, `confidence` in 0..1; `backend` and `version` name the code that answered.
    `notes` are whole sentences about the output, such as why no learned backend was available.
    """

    text: str
    data: Mapping[str, Json]
    confidence: float
    backend: str
    version: str
    # The pictures as PNG files: overlays of the same size as their input, and derived images.
    pngs: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> tuple[Image.Image, ...]:
        """The pictures as Pillow images."""
        return tuple(Image.open(io.BytesIO(png)) for png in self.pngs)

    def as_json(self) -> dict[str, Any]:
        """Return everything except the pictures, in types that `json.dumps` accepts."""
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
            weights: folder or hub id for the learned backend; if the tool needs other tools with weights, a
                mapping by tool name.
            device: `cpu`, `mps`, `cuda` or `cuda:N,cuda:M`.
            seed: for tools that use random numbers.
            args: the tool's own arguments, as `hybrid tools show NAME` lists them.

        Raises:
            ToolError: wrong arguments, or images that the tool cannot answer for.
            DataError: an image that cannot be read.
            WeightsError: a learned backend was asked for and its weights cannot be used.
            UsageError: the tool loads no weights, or it is not clear which tool loads them.
        """
        with closing(self._service(backend, weights, device)) as service:
            try:
                return wait_for(self._call(service, images, args, seed))
            except ToolError as error:
                error.marked = describe_error(error)
                raise

    def map(
        self,
        pictures: Iterable[ImageInput | Sequence[ImageInput]],
        *,
        batch: int = 8,
        progress: bool = True,
        backend: Literal["auto", "learned", "classical"] = "auto",
        weights: str | Path | Mapping[str, str | Path] | None = None,
        device: str = "cpu",
        seed: int = 0,
        **args: Json,
    ) -> Iterator[ShownFinding | FailedCall]:
        """Run the tool on many pictures, which are read on demand, and yield its outputs in the same order.

        A learned backend answers several pictures at a time, as in a run. A failed call yields a `FailedCall`, whose
        truth value is False: `[output for output in outputs if output]` omits failures.

        Args:
            pictures: one item per call: a picture, or a list or tuple of the pictures of that call.
            batch: number of pictures that a backend may take at a time; twice as many are in progress.
            progress: whether to show a bar on stderr if that is a terminal.
            backend: as in `run`.
            weights: as in `run`.
            device: as in `run`.
            seed: as in `run`.
            args: the tool's own arguments, the same for all.

        Raises:
            ToolError: wrong arguments.
            WeightsError: a learned backend was asked for and its weights cannot be used.
            UsageError: as in `run`; also a batch of less than 1.
        """
        if batch < 1:
            raise UsageError(f"batch={batch}: must be at least 1")
        service = self._service(backend, weights, device)
        try:
            self.tool.parse(args)
        except ToolError:
            service.close()
            raise
        return self._results(service, pictures, batch, args, seed, progress=progress)

    def _results(
        self,
        service: CachedTools,
        pictures: Iterable[ImageInput | Sequence[ImageInput]],
        batch: int,
        args: Mapping[str, Json],
        seed: int,
        *,
        progress: bool,
    ) -> Iterator[ShownFinding | FailedCall]:
        from tqdm import tqdm

        total = len(pictures) if isinstance(pictures, Sized) else None
        # For tqdm, None means that the bar is shown only in a terminal.
        hidden = None if progress else True
        name = self.tool.card.name
        with closing(service), _loop_in_thread() as loop, tqdm(total=total, desc=name, disable=hidden) as bar:
            waiting: deque[Future[ShownFinding | FailedCall]] = deque()
            for place, item in enumerate(pictures):
                images = tuple(item) if isinstance(item, list | tuple) else (item,)
                call = self._call_or_failure(service, place, images, args, seed)
                waiting.append(asyncio.run_coroutine_threadsafe(call, loop))
                if len(waiting) >= 2 * batch:
                    yield waiting.popleft().result()
                    bar.update()
            while waiting:
                yield waiting.popleft().result()
                bar.update()

    def _service(self, backend: Literal["auto", "learned", "classical"], weights: Any, device: str) -> CachedTools:
        """Return a service that runs the tool. Raises `UsageError` for weights that no tool loads."""
        with python_errors():
            by_tool = weights_from_python(weights, [self.tool])
        store = ImageStore(home() / "images")
        options = ServiceOptions(backend=backend, weights=by_tool, device=device, pictures="png")
        return CachedTools(store, FindingCache(home() / "findings", store), options)

    async def _call(
        self, service: CachedTools, images: Sequence[ImageInput], args: Mapping[str, Json], seed: int
    ) -> ShownFinding:
        # Decode images in a thread while other calls continue.
        stored = [await asyncio.to_thread(stored_image, service.store, image) for image in images]
        refs = [ImageRef(f"img:{place}", image) for place, image in enumerate(stored, 1)]
        finding = await service.call(self.tool, self.tool.parse(args), refs, seed)
        return show_finding(finding, service.store, service.notices)

    async def _call_or_failure(
        self, service: CachedTools, place: int, images: Sequence[ImageInput], args: Mapping[str, Json], seed: int
    ) -> ShownFinding | FailedCall:
        try:
            return await self._call(service, images, args, seed)
        except WeightsError:
            # The call would fail for every other picture, too.
            raise
        except HybridError as error:
            return FailedCall(place, describe_error(error), error)


def show_finding(finding: Finding, store: ImageStore, notes: Sequence[str]) -> ShownFinding:
    """Return a tool output with the PNG bytes of its pictures. Raises `DataError` as `ImageStore.read` does."""
    pngs = tuple(store.read(ref.image) for ref in finding.images)
    facts = (finding.text, finding.data, finding.confidence, finding.backend, finding.version)
    return ShownFinding(*facts, pngs, tuple(notes))


def stored_image(store: ImageStore, image: ImageInput) -> StoredImage:
    """Store an image, and return its record. Raises `DataError` for an object of another type."""
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


@contextmanager
def _loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in its own thread; cancel unfinished work at the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="calls of a tool", daemon=True)
    thread.start()

    async def cancel_all() -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(cancel_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def wait_for(work: Coroutine[Any, Any, R]) -> R:
    """Run some work and return its result; if an event loop already runs (in a notebook), use a separate thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, work).result()
