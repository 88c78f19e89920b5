"""Runs in progress, served to a browser on this machine: their progress, and the pages of each.

    with ViewedRun(RunFolder(path)) as run, PageServer([run]) as server:
        server.serve_forever()                     # http://127.0.0.1:PORT/, and the report at /1/

The first page shows the progress of all runs (`progress.py`), even of those that have not started. The pages of a run
poll `live.json`, which triggers a check of the run's files. When there are new answers, the pages are rebuilt in a new
folder, at most every few seconds and only a limited share of the time, and `live.json` reports a new version. The run
is only read: its lock is tested but not taken, and no score is written.

docs/security.md describes the server's exposure: it listens on 127.0.0.1, serves only the known files of the pages,
rejects other hosts and origins, and writes nothing.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hybrid.core.errors import HybridError
from hybrid.core.types import Json
from hybrid.display.local_server import LocalHandler, LocalServer
from hybrid.log.folder import ATTEMPTS, RunFolder
from hybrid.report.collect import collect_run
from hybrid.report.pictures import SUFFIXES
from hybrid.report.progress import RunProgress
from hybrid.report.site import write_site

INDEX = "index.html"
LIVE = "live.json"
PROGRESS = "/progress.json"
_FOLDER = Path(__file__).parents[1] / "templates" / "progress"
# The files of the progress page, by URL path.
FRONT: Mapping[str, Path] = {
    "/": _FOLDER / INDEX,
    "/page.js": _FOLDER / "page.js",
    "/style.css": _FOLDER / "style.css",
}
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
    def newest(self) -> Made:
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
            # The run may have been writing the files that were just read; the next check tries again.
            self._tell(f"the pages were not updated: {error}")
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
        # Take the stamp first, so that answers that arrive during the build trigger the next one.
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


class ViewedRun:
    """A run that may not have started yet: its progress, and its pages, which are built when they are first opened.

    Args:
        run: where the run is, or will be.
        title: title of the pages; empty for the benchmark's.
        tell: called with the reason if pages could not be built.
        site: pages that are built already.
    """

    def __init__(
        self,
        run: RunFolder,
        title: str = "",
        tell: Callable[[str], None] = lambda line: None,
        site: LiveSite | None = None,
    ) -> None:
        self.progress = RunProgress(run)
        self._run, self._title, self._tell = run, title, tell
        self._site = site
        self._opening = threading.Lock()
        self._reading = threading.Lock()

    def __enter__(self) -> ViewedRun:
        return self

    def __exit__(self, *_: object) -> None:
        with self._opening:
            if self._site is not None:
                self._site.close()

    def read_progress(self) -> dict[str, Json]:
        """Return the progress of the run; only one thread reads it at a time."""
        with self._reading:
            return self.progress.as_json()

    def open_site(self) -> LiveSite | None:
        """Return the pages, built on the first call; None if the run has not begun or cannot be shown."""
        with self._opening:
            if self._site is None and self._run.is_begun():
                try:
                    self._site = LiveSite(self._run, self._title, tell=self._tell)
                except (HybridError, OSError) as error:
                    self._tell(f"the pages of {self._run.path} cannot be shown: {error}")
            return self._site


class PageServer(LocalServer):
    """Serves runs on 127.0.0.1: their progress at `/`, and the pages of the first run at `/1/`.

    Args:
        runs: the runs, in the order of the page.
        port: the port; 0 for a free one.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, runs: Sequence[ViewedRun], port: int = 0) -> None:
        self.runs = tuple(runs)
        super().__init__(_Handler, port)


class _Handler(LocalHandler):
    """Answers GET and HEAD for the progress and the files of the pages."""

    server: PageServer

    def do_GET(self) -> None:  # noqa: N802 - the name of the standard library
        if refused := self.refused():
            self.respond(refused)
            return
        path = unquote(urlsplit(self.path).path)
        if path == PROGRESS:
            runs = [run.read_progress() for run in self.server.runs]
            # ASCII, because UTF-8 cannot encode a lone surrogate in a reply. Browsers cannot parse JSON with numbers
            # that are not finite, which a damaged run may contain.
            finite = json.loads(json.dumps({"runs": runs}), parse_constant=lambda _: None)
            self.respond(HTTPStatus.OK, MEDIA_TYPES[".json"], json.dumps(finite).encode("ascii"))
        elif path in FRONT:
            file = FRONT[path]
            self.respond(HTTPStatus.OK, MEDIA_TYPES[file.suffix], file.read_bytes())
        else:
            self._respond_page(path)

    do_HEAD = do_GET  # noqa: N815

    def _respond_page(self, path: str) -> None:
        """Respond with a file of a run's pages: `/1/index.html`."""
        number, slash, rest = path.removeprefix("/").partition("/")
        runs = {str(place): run for place, run in enumerate(self.server.runs, 1)}
        site = runs[number].open_site() if slash and number in runs else None
        if site is not None and rest == LIVE:
            site.look()
        file = None if site is None else site.newest.files.get(f"/{rest}")
        try:
            data = None if file is None else file.read_bytes()
        except FileNotFoundError:
            # A newer build has replaced this build.
            data = None
        if file is None or data is None:
            self.respond(HTTPStatus.NOT_FOUND)
        else:
            self.respond(HTTPStatus.OK, MEDIA_TYPES[file.suffix], data)
