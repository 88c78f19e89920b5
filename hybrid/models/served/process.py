"""Servers as processes: one for each command, started when first needed, ended with the program.

server = server_for(command)
await server.wait_until_ready()
stop_servers()
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final, NoReturn
from weakref import WeakKeyDictionary

from hybrid.core.images import home
from hybrid.core.secrets import redact
from hybrid.display.notes import loads, tell
from hybrid.log.folder import SERVER_LOG, SERVER_LOGS
from hybrid.models.base import ModelRefused
from hybrid.models.served.commands import KINDS, ServerCommand

# Seconds to wait until a server is ready: a download of weights or a slow disk may take this long.
START_S: Final = 3600.0
POLL_S: Final = 0.5
HEALTH_TIMEOUT_S: Final = 5.0
# Seconds between notes on a server that is still starting.
NOTE_EVERY_S: Final = 60.0
# Seconds to wait for a server to end: longer than the watcher's grace period.
STOP_S: Final = 20.0
LOG_LINES: Final = 8

_servers: dict[tuple[str, ...], OwnServer] = {}
_lock = threading.Lock()


def server_for(command: ServerCommand) -> OwnServer:
    """Return the server for a command, which is shared and may have been started already."""
    with _lock:
        server = _servers.get(command.key)
        if server is None or server.has_ended:
            server = _servers[command.key] = OwnServer(command)
        return server


def stop_servers() -> None:
    """End all servers that this process has started."""
    with _lock:
        servers = [*_servers.values()]
        _servers.clear()
    for server in servers:
        server.close_pipe()
    for server in servers:
        server.stop()


class OwnServer:
    """One server. Its port is reserved from the beginning, so that its address is known before it starts."""

    def __init__(self, command: ServerCommand) -> None:
        self.command = command
        self._reserved: socket.socket | None = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port: int = self._reserved.getsockname()[1]
        self.log: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        # Runs of one process follow each other, each in its own event loop.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def base_url(self) -> str:
        """The address for clients of OpenAI's API."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def has_ended(self) -> bool:
        """Whether the server was started and has ended."""
        return self._process is not None and self._process.poll() is not None

    async def wait_until_ready(self, start_s: float = START_S) -> None:
        """Start the server if it does not run, and wait until it answers.

        Raises:
            ModelRefused: the server ended, or did not answer within `start_s` seconds.
        """
        if self._is_ready and not self.has_ended:
            return
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            if self.has_ended:
                raise ModelRefused(self.describe_end())
            if not self._is_ready:
                await self._start(start_s)

    async def wait_until_ended(self) -> NoReturn:
        """Wait while the server runs. Raises `ModelRefused` when it has ended."""
        while not self.has_ended:
            await asyncio.sleep(POLL_S)
        raise ModelRefused(self.describe_end())

    async def ends_within(self, seconds: float) -> bool:
        """Return whether the server has ended, or ends within `seconds`."""
        try:
            await asyncio.wait_for(self.wait_until_ended(), seconds)
        except ModelRefused:
            return True
        except TimeoutError:
            return False

    async def _start(self, start_s: float) -> None:
        started_at = time.monotonic()
        if self._process is None:
            self._launch()
        noted = started_at
        try:
            while not await asyncio.to_thread(self._answers):
                waited = time.monotonic() - started_at
                if self.has_ended:
                    raise ModelRefused(self.describe_end())
                if waited > start_s:
                    raise ModelRefused(f"{self.command.name}: no answer after {start_s:.0f} s; its log is {self.log}")
                # The steps of ten seconds keep the progress bar from flickering.
                loads(self, (f"the server of {self.command.name} ({waited // 10 * 10:.0f} s)",))
                if time.monotonic() - noted > NOTE_EVERY_S:
                    noted = time.monotonic()
                    tell(f"note: {self.command.name}: still starting after {waited:.0f} s: {self._last_line()}")
                await asyncio.sleep(POLL_S)
        finally:
            loads(self, ())
        self._is_ready = True
        tell(f"note: {self.command.name}: ready after {time.monotonic() - started_at:.0f} s")

    def _launch(self) -> None:
        folder = SERVER_LOGS.get() or home() / "servers"
        self.log = folder / SERVER_LOG
        words = self.command.words(self.port)
        title = KINDS[self.command.kind].title
        tell(f"note: starting {title} for {self.command.name}; its log is {self.log}")
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            log.write(f"$ {redact(shlex.join(words))}\n".encode())
            log.flush()
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-E", str(Path(__file__).with_name("watcher.py")), *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_environment(),
                start_new_session=True,
            )

    def _answers(self) -> bool:
        # Ignore the environment's proxies, because the server is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self.port}/health", timeout=HEALTH_TIMEOUT_S) as reply:
                return bool(reply.status == 200)
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def describe_end(self) -> str:
        """Return how the server ended, with the place and the last lines of its log."""
        code = self._process.poll() if self._process is not None else None
        cause = f"signal {code - 128}" if code is not None and code > 128 else f"exit code {code}"
        lines = " | ".join(line.strip() for line in self._log_lines()[-LOG_LINES:] if line.strip())
        return f"the server of {self.command.name} ended ({cause}); its log is {self.log}: {redact(lines)}"

    def _log_lines(self) -> list[str]:
        try:
            return self.log.read_text("utf-8", errors="replace").splitlines() if self.log is not None else []
        except OSError:
            return []

    def _last_line(self) -> str:
        return next((line.strip() for line in reversed(self._log_lines()) if line.strip()), "")

    def close_pipe(self) -> None:
        """Let the watcher end the server; in a forked process, only close this end of the pipe."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def stop(self) -> None:
        """End the server and all its processes."""
        self.close_pipe()
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        if self._process is None:
            return
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._is_ready = False


def _environment() -> dict[str, str]:
    """Return the environment variables without secrets such as API keys, which a local server does not need.

    All `HF_*` variables are kept.
    """
    return {name: value for name, value in os.environ.items() if name.startswith("HF_") or redact(value) == value}


def _forget_in_child() -> None:
    """Close a forked child's copies of the pipes: the servers must end with the program, not with its last child."""
    for server in _servers.values():
        server.close_pipe()
    _servers.clear()


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(stop_servers)
