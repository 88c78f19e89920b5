"""`hybrid tools up`, `down` and `status`: a server that keeps networks loaded for other commands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._help import Grouped
from hybrid.cli._options import check_name_conflict, logging_options_of, path_option, shared_option, tables_option
from hybrid.core.errors import UsageError, WeightsError
from hybrid.display.notes import tell
from hybrid.display.terminal import TEXT, Shape, how_many

if TYPE_CHECKING:
    from hybrid.config import ServiceOptions
    from hybrid.core.types import Json
    from hybrid.serving.protocol import ServerFacts
    from hybrid.tool import Tool

# Seconds between two checks of a server that is loading.
POLL_S = 0.2
# Seconds that a server is given to shut down before it is killed.
END_S = 10.0
# Number of lines of the log that an error shows.
LOG_LINES = 5


@click.command("up", cls=Grouped, rare=("tool_dtype", "tool_compile", "unchecked_weights", "idle"))
@click.option(
    "--tools",
    "tool_names",
    metavar="A,B",
    shell_complete=types.tool_lists,
    help="Tools to load.  [default: all whose weights are on disk]",
)
@shared_option("weights")
@shared_option("device")
@shared_option("tool_dtype")
@shared_option("tool_compile")
@shared_option("unchecked_weights")
@click.option("--idle", type=types.AMOUNT, metavar="MINUTES", help="End the server after this time without a client.")
@click.option("--foreground", is_flag=True, help="Stay in this terminal; Ctrl-C ends the server.")
@path_option
@logging_options_of
def up(
    tool_names: str | None,
    weights: tuple[str, ...],
    device: str,
    tool_dtype: Literal["auto", "float32", "bfloat16", "float16"],
    *,
    tool_compile: bool,
    unchecked_weights: bool,
    idle: float | None,
    foreground: bool,
) -> int:
    """Load networks once and keep them for other commands. Returns when they are loaded. Exit code 3 if loading fails.

    Runs, studies, `tools run`, MCP servers and notebooks of the same user and cache folder then use these networks
    instead of loading their own, if code, weights, device and versions are the same; otherwise, a note gives the
    reason. Answers do not depend on the server. If the server is lost, a run loads the networks itself and continues.

    \b
    Examples:
      hybrid tools up --tools depth,detection --device cuda
      hybrid tools status
      hybrid tools down
    """
    from hybrid.config import ServiceOptions
    from hybrid.plugins.weights_option import tools_named, weights_by_tool
    from hybrid.serving.loader import refuse_absent

    selected = None if tool_names is None else _names(tool_names)
    refuse_absent(device)
    by_tool = weights_by_tool(weights, tools_named(selected or ()))
    options = ServiceOptions(
        "learned", by_tool, device, unchecked=unchecked_weights, dtype=tool_dtype, compiled=tool_compile
    )
    tools = _to_load(selected, options)
    if foreground:
        return _serve(tools, options, None if idle is None else idle * 60)
    return _start()


def _names(tool_names: str) -> list[str]:
    """Return the names in the value of `--tools`. Raises `UsageError` for an unknown name or no name."""
    from hybrid.plugins.registry import refuse_unknown

    names = list(dict.fromkeys(name.strip() for name in tool_names.split(",") if name.strip()))
    if not names:
        raise UsageError("--tools names no tool")
    for name in names:
        try:
            refuse_unknown("tools", name)
        except UsageError as error:
            raise UsageError(f"--tools: {error}") from error
        check_name_conflict("tools", name)
    return names


def _to_load(selected: list[str] | None, options: ServiceOptions) -> list[Tool]:
    """Return the tools to load: the selected tools, else all tools whose weights are on disk.

    Raises:
        UsageError: a selected tool loads no network, `--weights` cannot be loaded, or there is nothing to load.
        WeightsError: the weights of a selected tool are not on disk.
    """
    from hybrid.plugins.registry import load, names
    from hybrid.serving.tool_server.facts import weights_facts

    tools: list[Tool] = []
    for name in selected or names("tools"):
        try:
            tool: Tool = load("tools", name)
            has_network = weights_facts(tool, options) is not None
        except (UsageError, WeightsError) as error:
            if name in options.weights:
                raise UsageError(f"--weights {name}={options.weights[name]}: {error}") from error
            if selected:
                raise
            continue
        if has_network:
            tools.append(tool)
        elif selected:
            raise UsageError(f"--tools {name}: it loads no network and needs no server; leave it out")
    for name in options.weights.keys() - {tool.card.name for tool in tools}:
        reason = "this tool is not among --tools" if selected else "this tool loads no network"
        raise UsageError(f"--weights {name}={options.weights[name]}: {reason}")
    if not tools:
        raise UsageError("no tool has weights on disk: download some with `hybrid tools fetch`, or give --weights")
    return tools


def _serve(tools: list[Tool], options: ServiceOptions, idle_s: float | None) -> int:
    """Serve in this process until a signal. Return the exit code."""
    from hybrid.serving.tool_server.address import listening
    from hybrid.serving.tool_server.process import ToolServer

    with listening() as listener:
        reason = asyncio.run(ToolServer(tools, options, idle_s).serve(listener))
    tell("ended" if reason is None else f"hybrid: the tool server has ended: {reason}")
    return 0 if reason is None else 3


def _start() -> int:
    """Start the server as a process of its own, and wait until it has loaded its tools. Return the exit code."""
    from hybrid.serving.tool_server.address import UP, connect, locked, log_path
    from hybrid.serving.worker_process import start_detached

    # An unusable folder or a running server is reported here, before anything starts.
    with locked():
        pass
    words = [sys.executable, "-P", "-m", "hybrid", *sys.argv[1:], "--foreground"]
    log = log_path()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "ab") as file:
        process = start_detached(words, file)
    tell(f"starting the tool server; its log is {log}")
    try:
        facts = _wait(process)
    except BaseException:
        process.terminate()
        raise
    if facts is None:
        # Another server may have started at the same time.
        if process.returncode == 2 and connect() is not None:
            raise UsageError(UP)
        lines = " | ".join(log.read_text("utf-8", "replace").splitlines()[-LOG_LINES:])
        click.echo(f"hybrid: the tool server has ended (exit code {process.returncode}): {lines}", err=True)
        return 3
    click.echo(f"the tool server is running with {', '.join(facts.tools)} (process {facts.process}, {facts.device})")
    return 3 if facts.failed else 0


def _wait(process: subprocess.Popen[bytes]) -> ServerFacts | None:
    """Return the facts of a starting server when it has loaded its tools, or None if it has ended."""
    from hybrid.serving.tool_server.address import ServerUnusable, connect

    printed: set[str] = set()
    while process.poll() is None:
        try:
            connection = connect()
        except ServerUnusable:
            connection = None
        if connection is not None:
            connection[0].close()
            facts = connection[1]
            _tell_progress(facts, printed)
            if facts.process == process.pid and not facts.loading:
                return facts
        time.sleep(POLL_S)
    return None


def _tell_progress(facts: ServerFacts, printed: set[str]) -> None:
    """Print which networks were loaded or failed since the last call, and which are being loaded."""
    lines = [f"{name}: {reason}" for name, reason in facts.failed.items()]
    lines += [f"loaded {name} ({served.answering.version})" for name, served in facts.tools.items()]
    lines += [f"loading {name} ..." for name in facts.loading[:1]]
    for line in lines:
        if line not in printed:
            printed.add(line)
            tell(line)


@click.command("down")
@logging_options_of
def down() -> int:
    """End the tool server of this cache folder. Runs that use it then load what they need themselves and continue."""
    from hybrid.serving.tool_server.address import listening_process, remove_stale

    process = listening_process()
    if process is None:
        is_stale = remove_stale()
        click.echo(
            "no tool server is up" + ("; removed the socket that an earlier server had left" if is_stale else "")
        )
        return 0
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            break
        if _ends(process):
            break
    remove_stale()
    click.echo("the tool server is down")
    return 0


def _ends(process: int) -> bool:
    """Wait for a server to end; return whether it ended in time."""
    from hybrid.serving.tool_server.address import listening_process

    until = time.monotonic() + END_S
    while time.monotonic() < until:
        if listening_process() != process:
            return True
        time.sleep(POLL_S)
    return False


@click.command("status")
@tables_option
@shared.as_json
def status(tables: Shape, as_json: bool) -> int:
    """Print whether a tool server is up, its networks, memory and use. Exit code 3 if none is up.

    loads: how often the server loaded the network; hits: how often a client found it loaded; calls: computed calls.
    Outputs from the cache are not counted.

    \b
    Example:
      hybrid tools status --json
    """
    from hybrid.serving.tool_server.address import ServerUnusable, connect, log_path

    try:
        connection = connect()
    except ServerUnusable as error:
        connection, reason = None, str(error)
    else:
        reason = (
            f"the log of the last server is {log_path()}" if log_path().is_file() else "`hybrid tools up` starts one"
        )
    if connection is None:
        click.echo(json.dumps({"up": False, "reason": reason}) if as_json else f"no tool server is up: {reason}")
        return 3
    connection[0].close()
    click.echo(json.dumps(_as_json(connection[1])) if as_json else _as_text(connection[1], tables))
    return 0


def _as_json(facts: ServerFacts) -> Mapping[str, Json]:
    """Return the facts about a server as an object for programs."""
    tools: dict[str, Json] = {
        name: {
            "state": "loaded",
            "version": tool.answering.version,
            "device": tool.answering.device,
            "precision": tool.answering.precision,
            "weights": tool.weights,
            "bytes": tool.bytes,
            "loads": tool.loads,
            "hits": tool.hits,
            "calls": tool.requests,
        }
        for name, tool in facts.tools.items()
    }
    tools |= {name: {"state": "loading"} for name in facts.loading}
    tools |= {name: {"state": "failed", "reason": reason} for name, reason in facts.failed.items()}
    return {
        "up": True,
        "process": facts.process,
        "started": facts.started,
        "device": facts.device,
        "bytes": facts.bytes,
        "device_bytes": facts.device_bytes,
        "clients": facts.clients,
        "log": str(facts.log),
        "tools": tools,
    }


def _as_text(facts: ServerFacts, tables: Shape) -> str:
    """Return the facts about a server as lines for people."""
    from hybrid.display.tables import NONE, RENDERERS, Column, Table

    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(facts.started))
    memory = f"{facts.bytes / 1e6:,.0f} MB of memory"
    memory += f" and {facts.device_bytes / 1e6:,.0f} MB on GPUs" if facts.device_bytes else ""
    head = f"up since {since}: process {facts.process}, {facts.device}, {memory}, {how_many(facts.clients, 'client')}"
    columns = (
        *(Column(name, "left") for name in ("tool", "state", "version")),
        *map(Column, ("MB", "loads", "hits", "calls")),
    )
    rows = [
        (
            name,
            "loaded",
            tool.answering.version,
            f"{tool.bytes / 1e6:,.1f}",
            str(tool.loads),
            str(tool.hits),
            str(tool.requests),
        )
        for name, tool in facts.tools.items()
    ]
    rows += [(name, "loading", *(NONE,) * 5) for name in facts.loading]
    rows += [(name, "failed", *(NONE,) * 5) for name in facts.failed]
    table = RENDERERS[TEXT[tables]](Table("", columns, tuple(rows)))
    failed = [f"{name}: {reason}" for name, reason in facts.failed.items()]
    return "\n".join((head, table.rstrip("\n"), *failed, f"log: {facts.log}"))
