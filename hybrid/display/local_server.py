"""A server of pages for this machine only: the requests that it accepts, and the headers of every response.

    class Handler(LocalHandler):
        def do_GET(self):
            if not self.refuse():
                self.respond(HTTPStatus.OK, "text/plain; charset=utf-8", b"hello")

    LocalServer(Handler, port).serve_forever()

It listens on 127.0.0.1 and rejects other hosts and origins (docs/security.md).
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hybrid.version import __version__

ADDRESS = "127.0.0.1"
TEXT = "text/plain; charset=utf-8"
POLICY = (
    # Saving a chart as PNG uses a data: image.
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class LocalServer(ThreadingHTTPServer):
    """Serves pages on 127.0.0.1.

    Args:
        handler: answers the requests.
        port: the port; 0 for a free one.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    # Prevent another program of this user from taking over the port that a page trusts.
    allow_reuse_address = False

    def __init__(self, handler: type[LocalHandler], port: int = 0) -> None:
        super().__init__((ADDRESS, port), handler)
        self.port = int(self.server_address[1])  # The port that it listens on
        self.url = f"http://{ADDRESS}:{self.port}/"  # The address for a browser
        # Accepted values of `Host`; any other name that leads here is an attack (DNS rebinding).
        self.hosts = frozenset((f"{ADDRESS}:{self.port}", f"localhost:{self.port}"))

    def serve_until_signal(self) -> None:
        """Serve until SIGINT or SIGTERM. Call it in the main thread."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.getsignal(number) for number in numbers}
        try:
            # Handle both signals: a shell starts background jobs with SIGINT ignored, and without a handler SIGTERM
            # would leave temporary folders behind.
            for number in numbers:
                signal.signal(number, signal.default_int_handler)
            self.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class LocalHandler(BaseHTTPRequestHandler):
    """Rejects requests for another host or from another page, and adds the security headers to every response."""

    server: LocalServer
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; with Nagle's algorithm the second would wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    server_version = f"hybrid/{__version__}"
    sys_version = ""
    timeout = 30

    def refused(self) -> HTTPStatus | None:
        """Return the status that rejects a request for another host or from another page; None if it is accepted."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        origins = self.headers.get_all("Origin", [])
        if any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return HTTPStatus.FORBIDDEN
        return None

    def respond(self, status: HTTPStatus, media_type: str = TEXT, body: bytes | None = None) -> None:
        """Send a response; without `body`, its text is the status in words."""
        data = f"{status.value} {status.phrase}\n".encode() if body is None else body
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def end_headers(self) -> None:
        """Add the security headers to every response, including protocol errors."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Log nothing, because paths contain question ids, which should not appear on a terminal."""
