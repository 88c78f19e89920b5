"""The run's side of one question on Ray: the methods that a worker may call in the run's process.

line.tell(QuestionHandler.notice, "depth runs on the CPU")      # in the worker (`line.py`); sent by method name
caption = await line.request(QuestionHandler.take, image)
answer = await call.method(handler, *call.args)                 # in the run
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hybrid.core.types import StoredImage, Usage
from hybrid.engines.ray.images import SharedImages
from hybrid.engines.ray.messages import ModelReply
from hybrid.running.replies import RunReplies
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from hybrid.solving.captions import CaptionCache

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

    # The type is `ActorHandle[ToolActor]`, but that module imports this one.
    ToolActors = tuple[ActorHandle[Any], ...]


class QuestionHandler:
    """Serves one question; `close` ends what its worker started and did not finish.

    Args:
        meter: the budget of the run.
        cache: captions of the run.
        shelf: images of the run.
        replies: stores the replies of models.
        logged_replies: the replies to this question so far; new ones are appended.
        notices: lines for the user.
        start_tools: returns the actors that run tools, and starts them on first use.
    """

    def __init__(
        self,
        meter: RunMeter,
        cache: CaptionCache,
        shelf: SharedImages,
        replies: RunReplies,
        logged_replies: list[ModelReply],
        notices: list[str],
        start_tools: Callable[[], Awaitable[ToolActors]],
    ) -> None:
        self._meter, self._cache, self._shelf = meter, cache, shelf
        self._replies, self._said, self._notices, self._start_tools = replies, logged_replies, notices, start_tools
        # Number of model calls in progress that the budget has allowed, and images whose captions are being made.
        self._open = 0
        self._making: set[StoredImage] = set()

    async def images(self, sha256s: Iterable[str]) -> dict[str, ObjectRef[bytes]]:
        """Return Ray objects of the images that the run has, by hash."""
        return self._shelf.refs(sha256s)

    async def tools(self) -> ToolActors:
        """Return the actors that run tools."""
        return await self._start_tools()

    async def notice(self, line: str) -> None:
        """Keep a line about tools for the user, unless the same line is already kept."""
        if line not in self._notices:
            self._notices.append(line)

    async def reply(self, reply: ModelReply) -> None:
        """Store a model's reply."""
        self._said.append(reply)
        # A full disk will be reported when answers are written.
        with suppress(OSError):
            self._replies.keep(reply.call, reply.request_sha256, reply.reply)

    async def begin_call(self) -> str | None:
        """Reserve a model call in the budget; returns the reason if the budget is spent."""
        try:
            await self._meter.begin()
        except RunBudgetSpent as error:
            return str(error)
        self._open += 1
        return None

    async def end_call(self, used: Usage) -> None:
        """Add the usage of a reserved call to the budget."""
        self._open -= 1
        self._meter.end(used)

    async def take(self, image: StoredImage) -> str | None:
        """See `CaptionCache`."""
        caption = await self._cache.take(image)
        if caption is None:
            self._making.add(image)
        return caption

    async def keep(self, image: StoredImage, caption: str) -> str:
        """See `CaptionCache`."""
        result = await self._cache.keep(image, caption)
        self._making.discard(image)
        return result

    async def give_up(self, image: StoredImage) -> None:
        """See `CaptionCache`."""
        if image in self._making:
            self._making.discard(image)
            await self._cache.give_up(image)

    async def close(self) -> None:
        """Release the resources of the question, which has ended or lost its worker."""
        while self._open:
            # The end of the call was never reported: the provider may charge for it.
            await self.end_call(Usage(model_calls=1))
        for image in tuple(self._making):
            await self.give_up(image)
