"""Modules from outside the project, imported in a worker process first; tools in no other, which describes them.

    with described_by(Describer):                  # hybrid.registry
        load("tools", "redness")                   # from a folder of the user: a `Tool` with `code`
        load("baselines", "always_a")              # imported here, after its import there has ended well

The files of the project are trusted; an import of any other that hangs, crashes or ends its process costs that thing
alone. Of a tool the card and the schema of the arguments cross. Its functions are where its code is: its worker checks
the arguments of a call, finds out what the tool needs, and runs its rules (`rules.py`). Solvers, benchmarks, models,
statistics and formats work in this process, so that the trial shows only that they can be imported and are what they
must be.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from hybrid.config import ServiceOptions
from hybrid.errors import Outage, ToolError, UsageError
from hybrid.images import ImageStore, home
from hybrid.raised import raised_at
from hybrid.registry import place_of
from hybrid.serving.cache import FindingCache
from hybrid.serving.protocol import (
    BackendDescription,
    CheckDescription,
    RuleDescription,
    RuleRequest,
    RuleResponse,
    ToolDescription,
)
from hybrid.serving.rules import DescribedRule, NextStep
from hybrid.serving.supervisor import WorkerExecutor
from hybrid.tool import BackendCard, Card, KnownAnswer, Need, Tool
from hybrid.tool.args import args_of_schema


class Describer:
    """Imports things by name, each once; its worker process starts with the first and is there until `close`."""

    def __init__(self, options: ServiceOptions | None = None) -> None:
        self._worker = WorkerExecutor(FindingCache(None, ImageStore(home() / "images")), options or ServiceOptions())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="describe", daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._closed = False
        self._known: dict[tuple[str, str], Tool | UsageError | None] = {}

    def __call__(self, package: str, name: str) -> Tool | None:
        """The tool, with its `code`; None for another thing.

        Raises:
            UsageError: it cannot be imported, or is not what it must be; the same each time.
        """
        with self._lock:
            if (package, name) not in self._known:
                self._known[package, name] = self._ask(package, name)
        thing = self._known[package, name]
        if isinstance(thing, UsageError):
            raise thing
        return thing

    def _ask(self, package: str, name: str) -> Tool | UsageError | None:
        try:
            said = asyncio.run_coroutine_threadsafe(self._worker.describe(package, name), self._loop).result()
            return tool_of(said, self._next_step) if isinstance(said, ToolDescription) else None
        except UsageError as error:
            return error
        except ToolError as error:
            place = f" ({at})" if (at := raised_at(error.trace)) else ""
            words = str(error).removeprefix(name).lstrip()
            return UsageError(f"{place_of(package, name)}: cannot be imported: {words}{place}")

    async def _next_step(self, request: RuleRequest) -> RuleResponse:
        """As `WorkerExecutor.next_step`, for any event loop."""
        if self._closed:
            raise Outage("the process that described the tools has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._worker.next_step(request), self._loop))

    def close(self) -> None:
        """End the worker process."""
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._worker.close()
        self._loop.close()


def tool_of(description: ToolDescription, next_step: NextStep) -> Tool:
    """The tool that was described; its rules are run by `next_step`."""
    card = Card(
        name=description.tool,
        summary=description.summary,
        limits=description.limits,
        backends=tuple(map(_backend_of, description.backends)),
        images=description.images,
        needs=_needs_of(description.needs),
        measured=description.measured,
    )
    checks = tuple(KnownAnswer(check.name, _elsewhere, check.series) for check in description.checks)
    rules = {rule.route: DescribedRule(card.name, rule.route, rule.tools, next_step) for rule in description.rules}
    args = args_of_schema(description.schema, partial(_completed, description.schema))
    return Tool(card, args, checks, rules=rules, code=description.code)


def _backend_of(description: BackendDescription) -> BackendCard:
    return BackendCard(
        name=description.name,
        version=description.version,
        make=_elsewhere,
        summary=description.summary,
        weights=description.weights,
        provenances=description.provenances,
        reliability=description.reliability,
        counted_on=description.counted_on,
        batch=description.batch,
        learned_tolerance=description.learned_tolerance,
        reduced=description.reduced,
        needs=_needs_of(description.needs),
        package=description.package,
        library=description.library,
    )


def _needs_of(names: Sequence[str]) -> tuple[Need, ...]:
    return tuple(Need(name, _elsewhere) for name in names)


def _elsewhere(*_: object) -> NoReturn:
    raise RuntimeError("the code of this tool is in the worker process of the tools alone")


def _completed(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the defaults of those that are left out. Raises `ValueError` where one has none."""
    if absent := [name for name in schema.get("required", ()) if name not in given]:
        raise ValueError(f"{absent[0]}: Field required")
    fields: Mapping[str, Any] = schema.get("properties", {})
    return {**{name: field["default"] for name, field in fields.items() if "default" in field}, **given}


def description_of(number: int, tool: Tool, code: str) -> ToolDescription:
    """The description of a tool that this process has imported; `code` is the hash of its code."""
    card = tool.card
    return ToolDescription(
        number=number,
        tool=card.name,
        summary=card.summary,
        limits=card.limits,
        measured=card.measured,
        backends=tuple(map(_backend_description, card.backends)),
        images=card.images,
        needs=tuple(need.tool for need in card.needs),
        checks=tuple(CheckDescription(check.name, check.series) for check in tool.checks),
        schema=tool.args.model_json_schema(),
        rules=tuple(RuleDescription(route, tuple(rule.tools)) for route, rule in tool.rules.items()),
        code=code,
    )


def _backend_description(card: BackendCard) -> BackendDescription:
    return BackendDescription(
        name=card.name,
        version=card.version,
        summary=card.summary,
        weights=card.weights,
        provenances=card.provenances,
        reliability=card.reliability,
        counted_on=card.counted_on,
        batch=card.batch,
        learned_tolerance=card.learned_tolerance,
        reduced=card.reduced,
        needs=tuple(need.tool for need in card.needs),
        package=card.package,
        library=card.library,
    )
