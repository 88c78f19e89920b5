"""A selection of tools that other programs call by name: their descriptions, and one shared service.

    toolbox = Toolbox.of(["crop", "depth"], folder=Folder(Path("pictures")))
    finding = await toolbox.call("crop", {"image": "photo.jpg", "grid": {"rows": 2, "columns": 2}})

Weights are loaded on the first call and stay loaded; outputs are cached in the cache that runs share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config import ServiceOptions
from hybrid.core.errors import ToolError, UsageError
from hybrid.core.images import SHOWN_IMAGES, ImageStore, home
from hybrid.core.types import Fault, ImageRef, StoredImage
from hybrid.display.notes import tell
from hybrid.integrations.pictures import Folder, read_image
from hybrid.interface.findings import ShownFinding, show_finding, stored_image
from hybrid.models.toolspec import IMAGE, IMAGES, spec
from hybrid.plugins.discovery import add_path
from hybrid.plugins.registry import load, names
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools

if TYPE_CHECKING:
    from hybrid.tool import Tool

COORDINATES = (
    "Coordinates, in arguments and in findings, are pixels of the image as a person sees it: origin at the top left, "
    "x to the right, y down."
)


def tools_of(selected: Iterable[str | Tool] | None) -> dict[str, Tool]:
    """Return the tools with these names and the given tool objects, by name, in order; for None, all tools.

    Raises:
        UsageError: there is no tool of that name, it cannot be imported, or two tools have the same name. With None,
            tools that cannot be imported are left out.
    """
    tools: dict[str, Tool] = {}
    for item in names("tools") if selected is None else selected:
        try:
            tool: Tool = load("tools", item) if isinstance(item, str) else item
        except UsageError as error:
            if selected is not None:
                raise
            tell(f"note: not served: {error}")
            continue
        if tools.setdefault(tool.card.name, tool) is not tool:
            raise UsageError(f"there are two tools {tool.card.name!r}: give one of them another name")
    return tools


@dataclass(frozen=True)
class Toolbox:
    """Tools by name with the service that runs them. `close` ends its threads.

    Args:
        tools: the tools that can be called, by name.
        service: the service that runs them.
        folder: the folder whose images a caller may name; None to accept only image data.
        in_run: whether the caller is an agent in a run, which names the images of its question (`img:1`).
    """

    tools: Mapping[str, Tool]
    service: CachedTools
    folder: Folder | None = None
    in_run: bool = False

    @classmethod
    def of(
        cls,
        selected: Iterable[str | Tool] | None,
        options: ServiceOptions | None = None,
        folder: Folder | None = None,
        *,
        path: str | Path | Sequence[str | Path] = (),
        in_run: bool = False,
    ) -> Toolbox:
        """Return a toolbox of tools, given by name or as objects; None: all. Raises `UsageError` like `tools_of`.

        `path` names folders of further tools, as `--path` does.
        """
        add_path(path)
        tools = tools_of(selected)
        store = ImageStore(home() / "images")
        # Always send PNG to other programs, whatever format the image had.
        options = replace(options or ServiceOptions(), pictures="png")
        return cls(tools, CachedTools(store, FindingCache(home() / "findings", store), options), folder, in_run)

    def describe(self, name: str) -> str:
        """Return the description of a tool: summary, limits and backends from its card."""
        card = self.tools[name].card
        backends = " ".join(f"{backend.name} ({backend.version}): {backend.summary}" for backend in card.backends)
        return f"{card.summary}\n\nLimits: {card.limits}\n\nBackends: {backends}\n\n{COORDINATES}"

    def schema(self, name: str) -> dict[str, Any]:
        """Return the JSON schema of the arguments: those of the tool, plus `image` or `images`."""
        parameters: dict[str, Any] = spec(self.tools[name])["function"]["parameters"]
        if self.in_run:
            return parameters
        fields = parameters["properties"]
        by_name = "" if self.folder is None else ", or the path of a file from the allowed folder on"
        image = {
            "description": f"base64 or a data URL (data:image/png;base64,...){by_name}; an object has base64 in data",
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]},
            ],
        }
        if IMAGE in fields:
            return {**parameters, "properties": {**fields, IMAGE: image}}
        fewest, most = self.tools[name].card.images
        several = {"type": "array", "items": image, "minItems": fewest, "maxItems": most}
        return {**parameters, "properties": {**fields, IMAGES: several}}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ShownFinding:
        """Run a tool.

        Args:
            name: its name.
            arguments: its own arguments, and `image` or `images`: whatever `read_image` accepts, and from a program
                also what `hybrid.tool(NAME).run` accepts in addition to strings (a `Path`, bytes, a Pillow image, an
                array).

        Raises:
            ToolError: unknown tool, wrong arguments, or images that it cannot answer for.
            DataError: an image that cannot be read.
            WeightsError: a learned backend was requested and its weights are unusable.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r:.80}; available: {', '.join(self.tools)}", Fault.UNKNOWN_TOOL)
        under = [key for key in (IMAGE, IMAGES) if key in arguments]
        if len(under) != 1:
            raise ToolError(f'{name} takes its images under "{IMAGE}" or "{IMAGES}"', Fault.BAD_ARGUMENTS)
        args = tool.parse({key: value for key, value in arguments.items() if key not in under})
        argument = arguments[under[0]]
        images = argument if isinstance(argument, list | tuple) else [argument]
        if len(images) > tool.card.images[1]:
            # Check before reading, because the list may be long.
            raise ToolError(
                f"{name} takes at most {tool.card.images[1]} images, not {len(images)}", Fault.BAD_ARGUMENTS
            )
        # Decode in a thread, because the server's event loop has other callers.
        stored = [await asyncio.to_thread(self._stored, image, place) for place, image in enumerate(images, 1)]
        refs = [ImageRef(f"img:{place}", image) for place, image in enumerate(stored, 1)]
        finding = await self.service.call(tool, args, refs)
        needs = [*tool.card.needs, *(need for backend in tool.card.backends for need in backend.needs)]
        tool_names = (name, *(need.tool for need in needs))
        notes = [
            line for line in self.service.notices if line.startswith(tuple(f"{tool_name}:" for tool_name in tool_names))
        ]
        return show_finding(finding, self.service.store, notes)

    def close(self) -> None:
        """End the threads of the service."""
        self.service.close()

    def _stored(self, image: Any, place: int) -> StoredImage:
        import numpy as np
        from PIL import Image

        if self.in_run and isinstance(image, str) and (ref := SHOWN_IMAGES.get().get(image)) is not None:
            return ref
        if isinstance(image, Path | bytes | Image.Image | np.ndarray):
            return stored_image(self.service.store, image)
        return self.service.store.put(read_image(image, self.folder), f"image {place}")
