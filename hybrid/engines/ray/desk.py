"""The run's side of a question under way on Ray: all that a worker may ask of the run, or tell it.

line.tell(Desk.notice, "depth runs on the CPU")         # in the worker (`line.py`); a method travels by its name
caption = await line.want(Desk.take, image)
answer = await call.method(desk, *call.args)            # in the run
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hybrid.engines.ray.images import SharedImages
from hybrid.engines.ray.messages import ModelReply
from hybrid.running.replies import RunReplies
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from hybrid.solving.captions import CaptionCache
from hybrid.types import StoredImage, Usage

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

    # Of `ToolActor`, whose module stands above this one.
    ToolActors = tuple[ActorHandle[Any], ...]


class QuestionHandler:
    """Serves one question. What its worker began and did not end is ended by `close`.

    Args:
        meter: the budget of the run.
        cache: its captions.
        shelf: its images.
        replies: where replies of models are kept.
        said: the replies to this question so far; new ones are added.
        notices: lines for the user.
        start_tools: gives the actors that run tools, which start when they are first wanted.
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
        # Model calls that the run's budget has allowed and that have not ended, and captions that are to be made.
        self._open = 0
        self._making: set[StoredImage] = set()

    async def images(self, sha256s: Iterable[str]) -> dict[str, ObjectRef[bytes]]:
        """Of these images those that the run has, as objects by hash."""
        return self._shelf.refs(sha256s)

    async def tools(self) -> ToolActors:
        """The actors that run tools."""
        return await self._start_tools()

    async def notice(self, line: str) -> None:
        """Keep a line about tools for the user, once."""
        if line not in self._notices:
            self._notices.append(line)

    async def reply(self, reply: ModelReply) -> None:
        """Keep what a model said."""
        self._said.append(reply)
        # A full disk is met again, and told, where answers are written.
        with suppress(OSError):
            self._replies.keep(reply.call, reply.request_sha256, reply.reply)

    async def begin_call(self) -> str | None:
        """Allow a model call; else why the run's budget does not."""
        try:
            await self._meter.begin()
        except RunBudgetSpent as error:
            return str(error)
        self._open += 1
        return None

    async def end_call(self, used: Usage) -> None:
        """Count what a call that was allowed has used."""
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
        """The question has ended, or its worker is lost."""
        while self._open:
            # The end of the call was never reported: the provider may charge for it.
            await self.end_call(Usage(model_calls=1))
        for image in tuple(self._making):
            await self.give_up(image)
