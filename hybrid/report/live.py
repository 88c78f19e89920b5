"""The pages of a run in progress, served to a browser on this machine.

    with LiveSite(RunFolder(path)) as site, PageServer(site) as server:
        server.serve_forever()                     # http://127.0.0.1:PORT/

The pages poll `live.json`, which triggers a check of the run's files. When there are new answers, the pages are rebuilt
in a new folder, at most every few seconds and only a limited share of the time, and `live.json` reports a new version.
The run is only read: no lock is taken and no score is written.

docs/security.md describes the server's exposure: it listens on 127.0.0.1, serves only the known files of the pages,
rejects other hosts and origins, and writes nothing.
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
PAUSE_S = 3.0  # Minimum seconds between two builds of the pages
# After a build of T seconds, wait at least SHARE * T seconds, because the run needs the processors.
SHARE = 4
KEPT = 2  # Number of builds kept on disk, because a browser may still be reading the previous one
# Media types by suffix; nothing else is served.
MEDIA_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    **{f".{suffix}": media_type for media_type, suffix in SUFFIXES.items()},
}
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

# The state of a run's answers: path, size and modification time of each file.
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Made:
    """One build of the pages: its folder, its files by URL path, and the state of the run that it shows."""

    folder: Path
    files: Mapping[str, Path]
    stamp: Stamp


class LiveSite:
    """The pages of a run, rebuilt on a browser's request when there are new answers.

    Args:
        run: the run, which may be in progress or have no answers yet.
        title: title of the pages; empty for the benchmark's.
        pause_s: minimum seconds between two builds.
        clock: a monotonic clock in seconds.
        tell: called with the reason if pages could not be rebuilt; the previous ones stay.

    Raises:
        HybridError: the first pages cannot be built.
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
        """Check the run, and start a build if needed; return at once whether pages are being built."""
        with self._changed:
            if self._making or self._closed or self._clock() < self._not_before:
                return self._making
            if stamp_of(self._run) == self._kept[-1].stamp:
                return False
            self._making = True
        threading.Thread(target=self._make_anew, name="hybrid view", daemon=True).start()
        return True

    def wait(self) -> None:
        """Wait until no pages are being built."""
        with self._changed:
            self._changed.wait_for(lambda: not self._making)

    def close(self) -> None:
        """Remove the pages, after any build in progress."""
        with self._changed:
            self._closed = True
        self.wait()
        shutil.rmtree(self._root, ignore_errors=True)

    def _make_anew(self) -> None:
        start, pages = self._clock(), None
        try:
            pages = self._make()
        except (HybridError, OSError) as error:
            # The run may have been writing the files just read; the next check tries again.
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
        # Take the stamp first, so that answers which arrive during the build trigger the next one.
        stamp = stamp_of(self._run)
        self._number += 1
        folder = self._root / str(self._number)
        write_site(collect_run(self._run, self._title), folder)
        # Every regular file of the pages by its URL path; links and other file types are excluded.
        served = (path for path in folder.rglob("*") if path.suffix in MEDIA_TYPES)
        plain = (path for path in served if path.is_file() and not path.is_symlink())
        files = {f"/{path.relative_to(folder).as_posix()}": path for path in plain}
        return Made(folder, {**files, "/": folder / INDEX}, stamp)


def stamp_of(run: RunFolder) -> Stamp:
    """Return the current state of the run's answers."""

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
        port: the port; 0 for a free one.

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
        self.url = f"http://{ADDRESS}:{self.port}/"  # The address for a browser
        # Accepted values of `Host`; any other name that leads here is an attack (DNS rebinding).
        self.hosts = frozenset((f"{ADDRESS}:{self.port}", f"localhost:{self.port}"))


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for the files of the pages."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; with Nagle's algorithm the second would wait 40 ms for an acknowledgement.
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
            # A newer build has replaced this one.
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
        """Return why a request is rejected: it is for another host, or comes from another page."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        origins = self.headers.get_all("Origin", [])
        if any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return HTTPStatus.FORBIDDEN
        return None

    def end_headers(self) -> None:
        """Add the security headers to every response, including protocol errors."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Log nothing, because paths contain question ids and a terminal is not a log."""
