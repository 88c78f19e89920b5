"""A server that speaks the part of the hub's protocol that downloads of data sets and weights need.

    with serving() as hub:
        sha = hub.commit("owner/name", folder)      # HF_ENDPOINT=hub.url

It serves the info of a data set or model with its commit, its file list in pages, and `resolve` with the hub's headers:
large files redirect to another address that answers ranges. A gated repository is listed for everyone, but its files
are sent only for the tokens in `readers`. `faults` is a queue: each fault takes the place of one response that would
contain a file.
"""

import asyncio
import hashlib
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.time_limits import join, wait_until

# Files per page of a list; the real hub's pages are longer and are followed in the same way.
PAGE = 3
# Suffixes of files that the hub stores with LFS.
LARGE = (".parquet", ".jpg", ".png", ".safetensors")


@dataclass(frozen=True)
class Commit:
    sha: str
    files: dict[str, bytes]


@dataclass
class DataSet:
    commits: list[Commit] = field(default_factory=list)
    # Tokens that have access; None means everyone.
    readers: frozenset[str] | None = None

    def at(self, revision: str) -> Commit | None:
        if revision == "main":
            return self.commits[-1]
        return next((commit for commit in self.commits if commit.sha == revision), None)


@dataclass
class HubServer:
    url: str = ""
    # Data sets and models by id; no data set has the id of a model.
    sets: dict[str, DataSet] = field(default_factory=dict)
    # `cut` ends the connection in the middle of the content; a number is the status of an HTTP error.
    faults: deque[str] = field(default_factory=deque)
    # Whether every response is a 503.
    down: bool = False
    # Method, path and range of each request, in order.
    requests: list[str] = field(default_factory=list)

    def commit(self, name: str, folder: Path, readers: frozenset[str] | None = None) -> str:
        """Publish the folder as the data set's newest commit; return its sha."""
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        files["README.md"] = f"# {name}\n".encode()
        sha = _oid(repr(sorted((path, _oid(content)) for path, content in files.items())).encode())[:40]
        built = self.sets.setdefault(name, DataSet())
        built.commits.append(Commit(sha, files))
        built.readers = readers
        return sha

    @property
    def contents(self) -> list[str]:
        """Return the files whose content was requested, with the ranges."""
        lines = [line.removeprefix("GET ") for line in self.requests if line.startswith("GET ")]
        return [line for line in lines if line.startswith("/cdn/") or "/resolve/" in line]

    def application(self) -> web.Application:
        @web.middleware
        async def count_requests(request: web.Request, handler):  # type: ignore[no-untyped-def]
            self.requests.append(" ".join((request.method, request.path, request.headers.get("Range", ""))).strip())
            return web.Response(status=503) if self.down else await handler(request)

        app = web.Application(middlewares=[count_requests])
        for kind, prefix in (("datasets", "/datasets"), ("models", "")):
            app.router.add_get(f"/api/{kind}/{{owner}}/{{name}}", self._info)
            app.router.add_get(f"/api/{kind}/{{owner}}/{{name}}/revision/{{revision}}", self._info)
            app.router.add_get(f"/api/{kind}/{{owner}}/{{name}}/tree/{{revision}}", self._tree)
            app.router.add_get(f"{prefix}/{{owner}}/{{name}}/resolve/{{revision}}/{{path:.+}}", self._resolve)
        app.router.add_get("/cdn/{oid}/{path:.+}", self._content)
        return app

    def _find_commit(self, request: web.Request) -> tuple[str, DataSet, Commit]:
        """Return data set and commit of a request; raise an HTTP error like the hub's if they do not exist."""
        name = f"{request.match_info['owner']}/{request.match_info['name']}"
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token == "revoked":  # noqa: S105 - what a test sends
            raise web.HTTPUnauthorized(headers={"X-Error-Message": "Invalid credentials in Authorization header"})
        if name not in self.sets:
            raise web.HTTPUnauthorized(headers={"X-Error-Code": "RepoNotFound", "X-Error-Message": "Not found"})
        commit = self.sets[name].at(request.match_info.get("revision", "main"))
        if commit is None:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev"})
        return name, self.sets[name], commit

    async def _info(self, request: web.Request) -> web.Response:
        name, result, commit = self._find_commit(request)
        siblings = [{"rfilename": path, "size": len(content)} for path, content in commit.files.items()]
        gated = "manual" if result.readers is not None else False
        return web.json_response(
            {"_id": "0", "id": name, "sha": commit.sha, "private": False, "gated": gated, "siblings": siblings}
        )

    async def _tree(self, request: web.Request) -> web.Response:
        _, _, commit = self._find_commit(request)
        first = int(request.query.get("cursor", "0"))
        paths = list(commit.files)
        headers = {}
        if first + PAGE < len(paths):
            following = f"{self.url}{request.path}?recursive=True&cursor={first + PAGE}"
            headers["Link"] = f'<{following}>; rel="next"'
        entries = [_entry(path, commit.files[path]) for path in paths[first : first + PAGE]]
        return web.json_response(entries, headers=headers)

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        _, result, commit = self._find_commit(request)
        headers = {"X-Repo-Commit": commit.sha}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if result.readers is not None and token not in result.readers:
            refused = web.HTTPForbidden if token else web.HTTPUnauthorized
            raise refused(headers={**headers, "X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        path = request.match_info["path"]
        if path not in commit.files:
            raise web.HTTPNotFound(headers={**headers, "X-Error-Code": "EntryNotFound"})
        content = commit.files[path]
        if path.endswith(LARGE):
            headers |= {"X-Linked-Etag": f'"{_oid(content)}"', "X-Linked-Size": str(len(content))}
            # Redirect to another host, as the real hub does: clients follow a redirection on the same host before they
            # read the headers.
            elsewhere = self.url.replace("127.0.0.1", "localhost")
            return web.Response(status=302, headers={**headers, "Location": f"{elsewhere}/cdn/{_oid(content)}/{path}"})
        return await self._send(request, content, headers)

    async def _content(self, request: web.Request) -> web.StreamResponse:
        sets = (
            content for built in self.sets.values() for commit in built.commits for content in commit.files.values()
        )
        content = next((item for item in sets if _oid(item) == request.match_info["oid"]), None)
        if content is None:
            raise web.HTTPNotFound
        return await self._send(request, content, {})

    async def _send(self, request: web.Request, content: bytes, headers: dict[str, str]) -> web.StreamResponse:
        http_range = request.http_range
        part = content[http_range]
        ranged = http_range.start is not None
        answer = web.StreamResponse(status=206 if ranged else 200, headers={**headers, "ETag": f'"{_oid(content)}"'})
        answer.content_length = len(part)
        if ranged:
            answer.headers["Content-Range"] = (
                f"bytes {http_range.start}-{http_range.start + len(part) - 1}/{len(content)}"
            )
        fault = self.faults.popleft() if self.faults and request.method == "GET" else None
        if fault and fault != "cut":
            return web.Response(status=int(fault))
        await answer.prepare(request)
        if request.method == "GET":
            await answer.write(part[: len(part) // 2] if fault else part)
            if fault and request.transport is not None:
                request.transport.close()
        return answer


def _oid(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": _oid(content)[:40]}
    if path.endswith(LARGE):
        entry["lfs"] = {"oid": _oid(content), "size": len(content), "pointerSize": 134}
    return entry


@contextmanager
def serving() -> Iterator[HubServer]:
    """Start a hub without data sets, on a free port of this machine, in its own thread."""
    hub, loop, ready = HubServer(), asyncio.new_event_loop(), threading.Event()
    event: asyncio.Event = asyncio.Event()

    async def run() -> None:
        runner = web.AppRunner(hub.application(), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        hub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await event.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    wait_until(lambda: ready.is_set() or not thread.is_alive(), "the hub server")
    assert ready.is_set(), "the hub server failed to start"
    try:
        yield hub
    finally:
        loop.call_soon_threadsafe(event.set)
        join(thread)
        loop.close()
