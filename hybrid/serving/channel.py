"""The two ends of a socket between a run and the worker process of its tools; messages are lines.

channel = LoopChannel(sock, on_message, on_end)         # in an event loop; never blocks on the other side
channel.send(LoadRequest(1, "depth"))
channel = ThreadChannel(sock)                           # in threads; the line has been sent when `send` returns
setup = channel.first()
loop.add_reader(sock, lambda: [do(message) for message in channel.waiting()])
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from hybrid.serving.protocol import LineReader, Message, line

CHUNK = 1 << 16


class ThreadChannel:
    """One end of a channel, read by one thread, written by any. Reading raises `EOFError` if the other side is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._lines = LineReader()

    def send(self, message: Message) -> None:
        """Send a message; on return it has left this process, or the other side is gone."""
        data = line(message)
        with self._lock, suppress(OSError):
            self._sock.sendall(data)

    def first(self) -> Message:
        """Wait for the first message; the other side sends nothing else before it gets a response."""
        while True:
            for message in self._lines.take(self._received(0)):
                return message

    def waiting(self) -> list[Message]:
        """Return the messages that have arrived."""
        try:
            return list(self._lines.take(self._received(socket.MSG_DONTWAIT)))
        except BlockingIOError:
            return []

    def _received(self, flags: int) -> bytes:
        try:
            data = self._sock.recv(CHUNK, flags)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        return data


class LoopChannel:
    """One end of a channel, used in one event loop.

    Args:
        sock: the socket, which becomes non-blocking.
        on_message: called with each message.
        on_end: called once when the other side is gone or sends an invalid message.
    """

    def __init__(self, sock: socket.socket, on_message: Callable[[Message], None], on_end: Callable[[], None]) -> None:
        sock.setblocking(False)
        self._sock, self._on_message, self._on_end = sock, on_message, on_end
        self._loop = asyncio.get_running_loop()
        self._lines, self._out, self._open = LineReader(), b"", True
        self._loop.add_reader(sock.fileno(), self._receive)

    def send(self, message: Message) -> None:
        """Send a message as soon as the other side accepts it."""
        waits = bool(self._out)
        self._out += line(message)
        if not waits:
            self._write()

    def close(self) -> None:
        """Stop sending and receiving. The event loop may already be closed."""
        if not self._open:
            return
        self._open = False
        if not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
        self._sock.close()

    def _receive(self) -> None:
        while self._open:
            try:
                data = self._sock.recv(CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self._end()
                return
            try:
                for message in self._lines.take(data):
                    self._on_message(message)
            except ValueError:
                self._end()
                return

    def _end(self) -> None:
        if self._open:
            self.close()
            self._on_end()

    def _write(self) -> None:
        if not self._open:
            return
        try:
            sent = self._sock.send(self._out)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            # Ignore the error, because the reader will see the end, too.
            sent = len(self._out)
        self._out = self._out[sent:]
        if self._out:
            self._loop.add_writer(self._sock.fileno(), self._write)
        else:
            self._loop.remove_writer(self._sock.fileno())
