"""Plug-ins are first imported in a worker process. Tools stay there, and this process gets their descriptions.

    with described_by(ProcessDescriber):                  # hybrid.plugins.registry
        load("tools", "redness")                   # from the user's folder: a `Tool` with `code`
        load("baselines", "always_a")              # imported here after a successful import there

The project's own files are trusted. For any other file, an import that hangs, crashes or ends its process affects only
that plug-in. A tool's card and argument schema are transferred. The functions of a tool stay with its code: the worker
validates the arguments of a call, determines what the tool needs, and runs its rules (`rules.py`). Solvers, benchmarks,
models, statistics and formats run in this process, so for them the trial only shows that they can be imported and have
the right type.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from hybrid.config import ServiceOptions
from hybrid.core.error_text import raised_at
from hybrid.core.errors import DataError, Outage, ToolError, UsageError
from hybrid.core.images import ImageStore, home
from hybrid.core.toml_records import as_data, made_of
from hybrid.plugins.registry import place_of
from hybrid.serving.cache import FindingCache
from hybrid.serving.protocol import ImportResponse, RuleRequest, RuleResponse
from hybrid.serving.rules import DescribedRule, NextStep
from hybrid.serving.supervisor import ProcessExecutor
from hybrid.tool import Card, KnownAnswer, Tool
from hybrid.tool.args import args_of_schema
from hybrid.tool.card_file import CodeElsewhere


class ProcessDescriber:
    """Imports plug-ins by name, each once; its worker process starts with the first import and runs until `close`."""

    def __init__(self, options: ServiceOptions | None = None) -> None:
        self._worker = ProcessExecutor(FindingCache(None, ImageStore(home() / "images")), options or ServiceOptions())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="describe", daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._closed = False
        self._known: dict[tuple[str, str], Tool | UsageError | None] = {}

    def __call__(self, package: str, name: str) -> Tool | None:
        """Return a tool, with its `code`; None for any other kind of plug-in.

        Raises:
            UsageError: the plug-in cannot be imported, or has the wrong type; the same error each time.
        """
        with self._lock:
            if (package, name) not in self._known:
                self._known[package, name] = self._ask(package, name)
        tool = self._known[package, name]
        if isinstance(tool, UsageError):
            raise tool
        return tool

    def _ask(self, package: str, name: str) -> Tool | UsageError | None:
        try:
            response = asyncio.run_coroutine_threadsafe(self._worker.describe(package, name), self._loop).result()
            return tool_of(response, self._next_step)
        except UsageError as error:
            return error
        except DataError as error:
            return UsageError(f"{place_of(package, name)}: {error}")
        except ToolError as error:
            place = f" ({at})" if (at := raised_at(error.trace)) else ""
            words = str(error).removeprefix(name).lstrip()
            return UsageError(f"{place_of(package, name)}: cannot be imported: {words}{place}")

    async def _next_step(self, request: RuleRequest) -> RuleResponse:
        """Like `ProcessExecutor.next_step`, but callable from any event loop."""
        if self._closed:
            raise Outage("the process that described the tools has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._worker.next_step(request), self._loop))

    def close(self) -> None:
        """Stop the worker process."""
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._worker.close()
        self._loop.close()


def tool_of(response: ImportResponse, next_step: NextStep) -> Tool | None:
    """Return an imported tool whose code is elsewhere and whose rules `next_step` runs; None for other plug-ins.

    Raises:
        DataError: the card is invalid.
    """
    if response.card is None:
        return None
    card = made_of(response.card, Card, CodeElsewhere())
    checks = tuple(made_of(check, KnownAnswer, CodeElsewhere()) for check in response.checks)
    rules = {route: DescribedRule(card.name, route, tools, next_step) for route, tools in response.rules.items()}
    args = args_of_schema(response.schema, partial(_completed, response.schema))
    return Tool(card, args, checks, rules=rules, output=response.output, code=response.code)


def _completed(schema: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with defaults for missing ones. Raises `ValueError` if a missing one has no default."""
    if absent := [name for name in schema.get("required", ()) if name not in values]:
        raise ValueError(f"{absent[0]}: Field required")
    fields: Mapping[str, Any] = schema.get("properties", {})
    return {**{name: field["default"] for name, field in fields.items() if "default" in field}, **values}


def description_of(number: int, tool: Tool, code: str) -> ImportResponse:
    """Describe a tool imported in this process, without its functions; `code` is the hash of its code."""
    rules = {route: tuple(rule.tools) for route, rule in tool.rules.items()}
    card, checks = as_data(tool.card), tuple(map(as_data, tool.checks))
    return ImportResponse(
        number, card, checks=checks, rules=rules, schema=tool.args.model_json_schema(), code=code, output=tool.output
    )
