"""The pages of a run while it goes on, served to a browser on this machine.

    with LiveSite(RunFolder(path)) as site, PageServer(site) as server:
        server.serve_forever()                     # http://127.0.0.1:PORT/

The pages ask for `live.json`; that is when the run's files are looked at. Where answers have come, the pages are made
anew in a folder of their own, at most every few seconds and never for more than a part of the time, and `live.json`
tells another version. Of the run everything is only read: no lock is taken, no score is written.

What the server does for others is in docs/security.md: it listens on 127.0.0.1, knows the files of the pages by name
and looks up nothing else, refuses every other host and origin, and writes nothing.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from hybrid.core.errors import HybridError
from hybrid.log.folder import ATTEMPTS, RunFolder
from hybrid.report.collect import collect_run
from hybrid.report.pictures import SUFFIXES
from hybrid.report.site import write_site
from hybrid.version import __version__

ADDRESS = "127.0.0.1"
INDEX = "index.html"
LIVE = "live.json"
PAUSE_S = 3.0  # Seconds from one making of the pages to the next, at least
# After pages that took T seconds to make, nothing is made for SHARE * T seconds: the run needs the processors.
SHARE = 4
KEPT = 2  # So many makings of the pages stay on disk: a browser may still be reading the one before the last
# By the end of a file's name; nothing else is served.
MEDIA_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    **{f".{suffix}": media_type for media_type, suffix in SUFFIXES.items()},
}
POLICY = (
    # A chart becomes a PNG by way of a data: image.
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

# The state of a run's answers: each file with its size and the time of its last change.
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Made:
    """The pages as they were made once: their folder, the files by the path in a browser, and what they show."""

    folder: Path
    files: Mapping[str, Path]
    stamp: Stamp


class LiveSite:
    """The pages of a run, made anew when answers have come and a browser asks.

    Args:
        run: the run; it may still be going on, or not have begun to answer.
        title: of the pages; empty for the benchmark's.
        pause_s: seconds between two makings, at least.
        clock: seconds that only grow.
        tell: is told why pages could not be made; those from before stay.

    Raises:
        HybridError: the first pages cannot be made.
    """

    def __init__(
        self,
        run: RunFolder,
        title: str = "",
        *,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._run, self._title = run, title
        self._pause_s, self._clock, self._tell = pause_s, clock, tell
        self._root = Path(tempfile.mkdtemp(prefix="hybrid-view-"))
        self._changed = threading.Condition()
        self._making = False
        self._closed = False
        self._not_before = 0.0
        self._number = 0
        self._kept: list[Made] = []
        try:
            self._kept.append(self._make())
        except BaseException:
            shutil.rmtree(self._root, ignore_errors=True)
            raise

    def __enter__(self) -> LiveSite:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def made(self) -> Made:
        """The newest pages."""
        with self._changed:
            return self._kept[-1]

    def look(self) -> bool:
        """Look at the run; whether pages are being made now. Returns at once."""
        with self._changed:
            if self._making or self._closed or self._clock() < self._not_before:
                return self._making
            if stamp_of(self._run) == self._kept[-1].stamp:
                return False
            self._making = True
        threading.Thread(target=self._make_anew, name="hybrid view", daemon=True).start()
        return True

    def wait(self) -> None:
        """Wait until no pages are being made."""
        with self._changed:
            self._changed.wait_for(lambda: not self._making)

    def close(self) -> None:
        """Remove the pages, after those that are being made."""
        with self._changed:
            self._closed = True
        self.wait()
        shutil.rmtree(self._root, ignore_errors=True)

    def _make_anew(self) -> None:
        start, pages = self._clock(), None
        try:
            pages = self._make()
        except (HybridError, OSError) as error:
            # The run may be writing what was just read: the next look makes them.
            self._tell(f"the pages are as they were: {error}")
        finally:
            with self._changed:
                self._not_before = self._clock() + max(self._pause_s, SHARE * (self._clock() - start))
                if pages is not None:
                    self._kept.append(pages)
                old, self._kept = self._kept[:-KEPT], self._kept[-KEPT:]
            for outdated in old:
                shutil.rmtree(outdated.folder, ignore_errors=True)
            with self._changed:
                self._making = False
                self._changed.notify_all()

    def _make(self) -> Made:
        # Answers that come while the pages are made belong to the next ones.
        stamp = stamp_of(self._run)
        self._number += 1
        folder = self._root / str(self._number)
        write_site(collect_run(self._run, self._title), folder)
        # By its path in a browser every file of the pages; of links and of other kinds of file none.
        served = (path for path in folder.rglob("*") if path.suffix in MEDIA_TYPES)
        plain = (path for path in served if path.is_file() and not path.is_symlink())
        files = {f"/{path.relative_to(folder).as_posix()}": path for path in plain}
        return Made(folder, {**files, "/": folder / INDEX}, stamp)


def stamp_of(run: RunFolder) -> Stamp:
    """The state of the run's answers now."""

    def stamps() -> Iterator[tuple[str, int, int]]:
        for path in sorted(run.path.glob(f"*/{ATTEMPTS}")):
            with suppress(FileNotFoundError):
                status = path.stat()
                yield str(path), status.st_size, status.st_mtime_ns

    return tuple(stamps())


class PageServer(ThreadingHTTPServer):
    """Serves a site on 127.0.0.1.

    Args:
        site: the pages.
        port: 0 for one that is free.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    # Another program of this user must not take over the port that a page trusts.
    allow_reuse_address = False

    def __init__(self, site: LiveSite, port: int = 0) -> None:
        self.site = site
        super().__init__((ADDRESS, port), _Handler)
        self.port = int(self.server_address[1])  # The port that it listens on
        self.url = f"http://{ADDRESS}:{self.port}/"  # The address that a browser opens
        # The values of `Host` that are answered: any other name that leads here is a stranger's (DNS rebinding).
        self.hosts = frozenset((f"{ADDRESS}:{self.port}", f"localhost:{self.port}"))


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for the files of the pages."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    # The head and the body go out in two writes: the second would wait 40 ms for the client's word on the first.
    disable_nagle_algorithm = True
    server_version = f"hybrid/{__version__}"
    sys_version = ""
    timeout = 30
    allowed: ClassVar[str] = "GET, HEAD"

    def do_GET(self) -> None:
        refused = self._refused()
        path = unquote(urlsplit(self.path).path)
        if refused is None and path == f"/{LIVE}":
            self.server.site.look()
        file = None if refused else self.server.site.made.files.get(path)
        try:
            data = None if file is None else file.read_bytes()
        except FileNotFoundError:
            # The pages were made anew, and this making is gone.
            data = None
        status = refused or (HTTPStatus.NOT_FOUND if data is None else HTTPStatus.OK)
        media_type = "text/plain; charset=utf-8" if file is None or data is None else MEDIA_TYPES[file.suffix]
        body = f"{status.value} {status.phrase}\n".encode() if data is None else data
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name of the standard library

    def _refused(self) -> HTTPStatus | None:
        """Why a request is not answered: it was meant for another host, or comes from another page."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        origins = self.headers.get_all("Origin", [])
        if any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return HTTPStatus.FORBIDDEN
        return None

    def end_headers(self) -> None:
        """Every answer has them, errors of the protocol too."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Say nothing: paths hold ids of questions, and a terminal is no log."""
