"""Findings that the cache has, looked up where they are asked for: what is there needs no worker process.

    kept = KeptFindings(cache, options)
    kept.answering["depth"] = Answering("learned", "depth_anything@0123456789ab", "cuda")      # as a worker says
    finding = kept.find(tool, args, refs, seed)         # in a thread; None where somebody has to be asked

A key says which backend answers, in which version and on what. Of a tool that has learned weights only the process that
has loaded them can tell; of one that answers without any, its card does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.config import CPU, ServiceOptions
from hybrid.errors import HybridError
from hybrid.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.loader import Answering
from hybrid.serving.service import Call, asked_of, named
from hybrid.serving.sources import code_of
from hybrid.serving.stages import tool_errors
from hybrid.tool import Tool
from hybrid.types import Finding, ImageRef

if TYPE_CHECKING:
    from hybrid.tool import Args


class KeptFindings:
    """The findings of a cache, for calls as `ToolService.call` gets them."""

    def __init__(self, cache: FindingCache, options: ServiceOptions) -> None:
        self._cache, self._options = cache, options
        self.answering: dict[str, Answering] = {}
        """By the name of the tool what answers for it, where that has been said."""

    def find(self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int) -> Finding | None:
        """The finding of this call, if it is kept and can be told to be."""
        if self._cache.folder is None:
            return None
        try:
            # The needs of a tool are its own code: what goes wrong in it, whoever answers meets and says.
            with tool_errors():
                return self._found(tool, args, tuple(images), seed)
        except HybridError:
            return None

    def _found(self, tool: Tool, args: Args, images: tuple[ImageRef, ...], seed: int) -> Finding | None:
        if tool.code:
            # Only the worker has its code, which fills in its arguments and says what it needs.
            return None
        answering, (fewest, most) = self._answering(tool), tool.card.images
        card = None if answering is None else tool.backend(answering.backend)
        if answering is None or card is None or not fewest <= len(images) <= most:
            return None
        needs: dict[str, tuple[Finding, ...]] = {}
        for need in (*tool.card.needs, *card.needs):
            asked = asked_of(need, args, needs)
            if asked is None:
                continue
            other: Tool = load("tools", need.tool)
            wanted = other.parse(asked)
            found = [self._found(other, wanted, (ref,), seed) for ref in images]
            needs[need.tool] = tuple(finding for finding in found if finding is not None)
            if len(needs[need.tool]) < len(images):
                return None
        call = Call(tool, code_of(tool), card, answering.version, images, args, needs, seed, self._options.pictures)
        finding = self._cache.get(call.key(answering.device))
        return None if finding is None else named(finding, images)

    def _answering(self, tool: Tool) -> Answering | None:
        known, classical = self.answering.get(tool.card.name), tool.backend("classical")
        if known is not None or classical is None:
            return known
        certain = self._options.backend == "classical" or tool.backend("learned") is None
        return Answering("classical", classical.version, CPU) if certain else None
