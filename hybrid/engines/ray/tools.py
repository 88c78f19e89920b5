"""Specialists for all workers: an actor that runs them, and the `ToolRunner` by which a question reaches it.

The actor itself runs no tool. As a run on one machine does, it has them in a process of their own (`IsolatedTools`), so
that the same rules say which call is to blame for a hang or a crash; and so nothing that a tool does ends the actor. An
actor that is lost was lost with its node: Ray starts it again elsewhere and asks again what it was asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ray.exceptions import RayError, RayTaskError

from hybrid.config import ServiceOptions
from hybrid.config.memory import memory_to_use
from hybrid.engines.ray.cluster import ClusterDown, other_program
from hybrid.engines.ray.images import Shelf, bytes_of, keep, lacking, take
from hybrid.engines.ray.line import Line
from hybrid.engines.ray.messages import (
    Failed,
    Found,
    Lacking,
    Noticed,
    Ready,
    ToolAsked,
    ToolSetup,
    WantImages,
    WantTools,
)
from hybrid.engines.ray.node import here, move_to
from hybrid.errors import Outage, UsageError
from hybrid.images import ImageStore, home
from hybrid.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.serving.isolated import IsolatedTools
from hybrid.serving.service import ToolRunner, ToolService
from hybrid.serving.sources import code_of
from hybrid.timing import CallTime
from hybrid.tool import Args, Tool
from hybrid.types import Finding, ImageRef
from hybrid.weights import backends_in_use

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

MOST_RETRIES = 3
"""How often a call is asked again when its actor is lost."""


class ToolActor:
    """Runs tools on one device. An actor of Ray; it can be started again at any time, from its setup alone."""

    def __init__(self, setup: ToolSetup) -> None:
        move_to(setup.place.folder)
        self._store = ImageStore(home() / "images")
        findings = FindingCache(home() / "findings" if setup.cache else None, self._store)
        options = replace(setup.options, process_bytes=memory_to_use() * 4 // 5 // setup.neighbours)
        kind = IsolatedTools if options.isolated else ToolService
        self._runner: ToolRunner = kind(self._store, findings, options)
        self._told = 0
        self._refusal = other_program(setup.place.code, here(), setup.place.tools) or other_tools(setup, here())

    async def ready(self) -> Ready:
        """That it can be asked, or why it must not be."""
        return Ready(os.getpid(), here(), self._refusal)

    async def find(self, asked: ToolAsked, refs: Mapping[str, ObjectRef[bytes]]) -> Found | Lacking | Failed:
        """The finding of a call, for which these images are at hand if the store lacks them."""
        if self._refusal is not None:
            return Failed(ClusterDown(self._refusal))
        spent = CallTime(asked.left)
        try:
            await take(self._store, refs)
            if wanted := lacking(self._store, (ref.image.sha256 for ref in asked.images)):
                return Lacking(wanted)
            tool: Tool = load("tools", asked.tool)
            finding = await self._runner.call(tool, tool.parse(asked.args), asked.images, asked.seed, spent)
        except Exception as error:
            return Failed.of(error, spent.busy)
        return Found(finding, spent.busy, self._new_notices())

    async def images(self, sha256s: Sequence[str]) -> dict[str, bytes]:
        """Pictures that its tools made."""
        return bytes_of(self._store, sha256s)

    def _new_notices(self) -> tuple[str, ...]:
        new = tuple(self._runner.notices[self._told :])
        self._told += len(new)
        return new


def other_tools(setup: ToolSetup, node: str) -> str | None:
    """Why a node must not run tools: one is not there or is another, or with other weights others would answer."""
    try:
        called: list[Tool] = [load("tools", name) for name in setup.backends]
    except UsageError as error:
        return f"on node {node}: {error}; install the package that offers it on every node"
    for tool in called:
        name = tool.card.name
        if name in setup.codes and code_of(tool) != setup.codes[name]:
            return f"on node {node} the tool {name} is another than in this run: install the same package on every node"
    answering = backends_in_use(called, setup.options.backend, setup.options.weights)
    for name, backend in setup.backends.items():
        if answering[name] != backend:
            return (
                f"on node {node} the backend of {name} is {answering[name]!r}, in this run it is {backend!r}: "
                "put the same weights on every node, or choose with --backend and --weights"
            )
    return None


@dataclass(frozen=True)
class Lender:
    """What the questions of a worker need to reach tools: its store, and what it has put for others."""

    store: ImageStore
    shelf: Shelf
    options: ServiceOptions


class SharedTools:
    """The tools as one question reaches them: a `ToolRunner`. All calls of a question go to one actor."""

    def __init__(self, lender: Lender, line: Line, place: int) -> None:
        self.store = lender.store
        self.cache = FindingCache(None, lender.store)
        self.options = lender.options
        self.computed = 0
        self.notices: list[str] = []
        self._shelf = lender.shelf
        self._line = line
        self._place = place

    async def call(
        self, tool: Tool, args: Args, images: Sequence[ImageRef], seed: int = 0, spent: CallTime | None = None
    ) -> Finding:
        """Find out: as `ToolService.call`.

        Raises:
            Outage: besides, the actor was lost more than `MOST_RETRIES` times.
        """
        spent = spent or CallTime()
        actors: tuple[ActorHandle[ToolActor], ...] = await self._line.want(WantTools())
        actor = actors[self._place % len(actors)]
        asked = ToolAsked(tool.card.name, args.model_dump(mode="json"), tuple(images), seed, spent.rest)
        try:
            return await self._found(actor, asked, spent)
        except RayTaskError:
            raise
        except RayError as error:
            raise Outage(f"{tool.card.name}: the actor that runs the tools was lost: {type(error).__name__}") from error

    async def _found(self, actor: ActorHandle[ToolActor], asked: ToolAsked, spent: CallTime) -> Finding:
        refs: Mapping[str, ObjectRef[bytes]] = {}
        answer: Any = await actor.find.remote(asked, refs)
        if isinstance(answer, Lacking):
            answer = await actor.find.remote(asked, await self._lend(answer.sha256s))
        if isinstance(answer, Lacking):
            raise Outage(f"{asked.tool}: no store has the image {answer.sha256s[0][:12]}")
        spent.busy += answer.busy
        if isinstance(answer, Failed):
            raise answer.error
        for line in answer.notices:
            self._line.tell(Noticed(line))
        await self._fetch(actor, answer.finding)
        return answer.finding

    async def _lend(self, sha256s: tuple[str, ...]) -> dict[str, ObjectRef[bytes]]:
        """The images as objects: those of the run, which are put once for all, and what was made since."""
        refs: dict[str, ObjectRef[bytes]] = await self._line.want(WantImages(sha256s))
        return {**self._shelf.refs(one for one in sha256s if one not in refs), **refs}

    async def _fetch(self, actor: ActorHandle[ToolActor], finding: Finding) -> None:
        """Take the pictures of a finding where the actor's store is not this one."""
        if wanted := lacking(self.store, (ref.image.sha256 for ref in finding.images)):
            for sha256, data in (await actor.images.remote(wanted)).items():
                keep(self.store, sha256, data)

    def warm(self) -> None:
        """Nothing: the actors of the cluster are there before the first question."""

    def close(self) -> None:
        """Nothing is held."""
