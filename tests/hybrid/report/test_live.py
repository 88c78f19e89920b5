"""The server of `hybrid view` over a real socket: what it serves, what it refuses, and how it adds new answers."""

import http.client
import json
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench._large_run import write_run
from hybrid.core.errors import UsageError
from hybrid.log.folder import RunFolder
from hybrid.report.live import KEPT, LiveSite, PageServer, ViewedRun
from tests.servers import listening
from tests.tables import cases

COUNT = 14


@dataclass
class Clock:
    """A clock that only moves when a test advances it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class View:
    """A run of which the controller has finished some questions, with its pages and their server."""

    folder: RunFolder
    remaining: list[bytes]
    clock: Clock
    site: LiveSite
    server: PageServer
    notices: list[str]

    def append(self, count: int = 1) -> None:
        """Finish this many more questions."""
        journal = self.folder.journal("controller")
        journal.append(*(self.remaining.pop(0) for _ in range(count)))
        journal.close()

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def live(self) -> dict[str, object]:
        status, _, body = self.get("/1/live.json")
        assert status == 200
        results: dict[str, object] = json.loads(body)
        return results


@pytest.fixture
def view(large_run: Callable[[int], Path]) -> Iterator[View]:
    with viewed(large_run(COUNT)) as built:
        yield built


@pytest.fixture(scope="module")
def seen(large_runs: Callable[[int], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """A view shared by all tests that finish no question."""
    text = large_runs(COUNT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(text / "home"))
        with viewed(shutil.copytree(text / "run", tmp_path_factory.mktemp("seen") / "run")) as built:
            yield built


@contextmanager
def viewed(run: Path) -> Iterator[View]:
    folder = RunFolder(run)
    path = folder.path / "controller" / "attempts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    manifest = folder.manifest
    del manifest["files"]["controller/attempts.jsonl"]
    folder.write_manifest(manifest)
    values = [line.removesuffix(b"\n") for line in lines[4:]]
    clock, text = Clock(), list[str]()
    with (
        LiveSite(folder, pause_s=3, clock=clock, tell=text.append) as site,
        listening(PageServer([ViewedRun(folder, site=site)])) as server,
    ):
        yield View(folder, values, clock, site, server, text)


def test_the_pages_are_served_with_a_policy(seen: View) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/style.css", "text/css"),
        ("/progress.json", "application/json"),
        ("/1/", "text/html"),
        ("/1/index.html?x=1", "text/html"),
        ("/1/assets/style.css", "text/css"),
    ):
        status, headers, body = seen.get(path)
        assert (status, headers["Content-Type"].split(";")[0]) == (200, kind)
        assert len(body) == int(headers["Content-Length"])
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    assert seen.server.url.startswith("http://127.0.0.1:")
    status, headers, body = seen.get("/", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_a_link_in_the_pages_leads_nowhere(seen: View, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (seen.site.newest.folder / "link.json").symlink_to(tmp_path / "secret.json")
    assert seen.get("/1/link.json")[0] == 404


def test_other_hosts_and_origins_are_refused(seen: View) -> None:
    for headers, status in cases(__file__, "HEADERS")[1]:
        by_header = {name: value.replace("PORT", str(seen.server.port)) for name, value in headers.items()}
        result, _, body = seen.get("/", **by_header)
        assert result == status, by_header
        assert (b"<html" in body) == (status == 200)


def test_a_request_without_a_host_is_refused(seen: View) -> None:
    for heads in (b"", b"Host: 127.0.0.1:%d\r\nHost: example.org\r\n" % seen.server.port):
        with socket.create_connection(("127.0.0.1", seen.server.port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n" + heads + b"Connection: close\r\n\r\n")
            assert connection.makefile("rb").readline().split()[1] == b"421"


def test_it_listens_on_this_machine_alone(seen: View) -> None:
    assert seen.server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.system
def test_pages_are_not_made_more_often_than_said(view: View) -> None:
    view.append()
    view.live()
    view.site.wait()
    built = view.live()
    view.append()
    view.clock.now += 2.9
    view.live()
    view.site.wait()
    assert view.live() == built
    view.clock.now += 0.2
    view.live()
    view.site.wait()
    assert view.live() != built


@pytest.mark.system
def test_older_pages_go(view: View) -> None:
    folders = [view.site.newest.folder]
    for _ in range(3):
        view.append()
        view.clock.now += 100
        view.site.look()
        view.site.wait()
        folders.append(view.site.newest.folder)
    assert [folder.exists() for folder in folders] == [False] * (4 - KEPT) + [True] * KEPT
    view.site.close()
    assert not folders[-1].parent.exists()


@pytest.mark.system
def test_what_cannot_be_read_now_leaves_the_pages_as_they_were(view: View) -> None:
    first = view.live()
    content = (view.folder.path / "questions.jsonl").read_bytes()
    (view.folder.path / "questions.jsonl").write_bytes(content[:100])
    view.append()
    view.clock.now += 100
    view.live()
    view.site.wait()
    assert view.live() == first
    assert len(view.notices) == 1
    assert "questions.jsonl" in view.notices[0]
    (view.folder.path / "questions.jsonl").write_bytes(content)
    view.clock.now += 100
    view.live()
    view.site.wait()
    assert view.live()["answers"] == 5 + 2 * COUNT


def test_a_run_of_hidden_answers_is_refused(view: View) -> None:
    manifest = view.folder.manifest
    manifest["identity"]["split"] = "test"
    view.folder.write_manifest(manifest)
    with pytest.raises(UsageError, match="hidden"):
        LiveSite(view.folder)


def test_a_run_that_has_just_begun_is_shown(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", COUNT)
    for name in ("controller", "mllm", "specialist"):
        shutil.rmtree(folder.path / name)
    folder.write_manifest({**folder.manifest, "files": {}})
    with LiveSite(folder) as site:
        assert site.newest.files.get("/index.html") is not None
        assert not site.look()
