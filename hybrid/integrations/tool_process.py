"""A tool in a separate process that restarts whenever the tool's files change (`hybrid tools try`).

    with ToolProcess(ToolProcessOptions("depth")) as process:
        process.describe()["schema"]                                  # of its arguments
        process.call([Path("photo.jpg")], {"points": [...]})          # {"text": ..., "data": ..., "pictures": [...]}

The process writes a line of JSON that describes the tool, then a line for each request on its stdin. Networks stay
loaded between calls. A call that crashes or hangs ends a worker below it, as in a run.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, Literal

from hybrid.core.errors import HybridError, UsageError
from hybrid.core.types import Json

if TYPE_CHECKING:
    from hybrid.serving.service import CachedTools
    from hybrid.tool import Tool

# Endings of a tool's files, whose change restarts its process.
SUFFIXES = (".py", ".toml")
# The state of a tool's files: path, modification time and size of each.
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class ToolProcessOptions:
    """Which tool runs, and how; `folders` are the folders of plug-ins by package."""

    name: str
    backend: Literal["auto", "learned", "classical"] = "auto"
    weights: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    max_seconds: float = 300.0
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)


class ToolProcess:
    """The process of a tool, started at the first request and again after each change of the tool's files."""

    def __init__(self, setup: ToolProcessOptions) -> None:
        self.tool = setup.name
        self._setup = setup
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._about: dict[str, Any] = {}
        self._stamp: Stamp = ()
        self._starts = 0

    def __enter__(self) -> ToolProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe(self) -> dict[str, Any]:
        """Describe the tool as its files are now: name, schemas, number of images; `error` if it cannot be loaded.

        `starts` is the number of times that its process has started; it grows after each change.
        """
        with self._lock:
            return self._current()

    def call(self, photos: Sequence[Path], args: Mapping[str, Json]) -> dict[str, Any]:
        """Run the tool: text, data, confidence, pictures (PNG as base64) and seconds, or `error`."""
        with self._lock:
            about = self._current()
            if "error" in about:
                return {"error": about["error"]}
            request = json.dumps({"photos": [str(path.absolute()) for path in photos], "args": args})
            return _ask(self._running, request)

    def close(self) -> None:
        """End the process; if it is busy, kill it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    @property
    def _running(self) -> subprocess.Popen[str]:
        """The process. Raises `UsageError` after `close`."""
        if self._process is None:
            raise UsageError("the process of the tool was closed")
        return self._process

    def _current(self) -> dict[str, Any]:
        stamp = stamp_of(self._about.get("files", ()))
        if self._process is None or self._process.poll() is not None or stamp != self._stamp:
            files = self._about.get("files", ())
            self.close()
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "hybrid.integrations.tool_process", json.dumps(asdict(self._setup))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                text=True,
            )
            # If a tool cannot be loaded, try again when one of its known files changes.
            self._starts += 1
            self._about = {"files": files, "starts": self._starts, **_read(self._running)}
            self._stamp = stamp_of(self._about["files"])
        return self._about


def _ask(process: subprocess.Popen[str], request: str) -> dict[str, Any]:
    try:
        assert process.stdin is not None  # noqa: S101 - a pipe
        process.stdin.write(f"{request}\n")
        process.stdin.flush()
    except BrokenPipeError:
        return {"error": "the process of the tool ended; the next call starts another"}
    return _read(process)


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None  # noqa: S101 - a pipe
    line = process.stdout.readline()
    if not line:
        return {"error": f"the process of the tool ended with exit code {process.wait()}"}
    answer: dict[str, Any] = json.loads(line)
    return answer


def stamp_of(files: Sequence[str]) -> Stamp:
    """Return the state of files, without those that no longer exist."""
    stamps = []
    for name in files:
        try:
            status = os.stat(name)
        except FileNotFoundError:
            continue
        stamps.append((name, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def files_of(module_name: str) -> list[str]:
    """Return the files of a tool without importing it: those of its folder, or its module and the card next to it."""
    spec = find_spec(module_name)
    assert spec is not None  # noqa: S101 - the caller has loaded the tool
    path = Path(spec.origin or "")
    sources = path.parent.iterdir() if spec.submodule_search_locations else (path, path.with_suffix(".toml"))
    return sorted(str(file) for file in sources if file.suffix in SUFFIXES and file.exists())


async def _serve(setup: ToolProcessOptions, out: IO[str]) -> None:
    """Describe the tool, then answer the requests on stdin until stdin ends."""
    from hybrid.config import ServiceOptions
    from hybrid.core.images import ImageStore, home
    from hybrid.models.toolspec import IMAGE, IMAGES, spec
    from hybrid.plugins.discovery import look_in
    from hybrid.plugins.registry import load, module_of
    from hybrid.serving.cache import FindingCache
    from hybrid.serving.service import CachedTools

    for package, places in setup.folders.items():
        look_in(package, places)
    tool: Tool = load("tools", setup.name)
    store = ImageStore(home() / "images")
    options = ServiceOptions(
        setup.backend,
        setup.weights,
        setup.device,
        timeout_s=setup.max_seconds,
        pictures="png",
        isolated=True,
    )
    schema = spec(tool, full=True)["function"]["parameters"]
    fields = {name: node for name, node in schema["properties"].items() if name not in (IMAGE, IMAGES)}
    about: dict[str, Any] = {"name": tool.card.name, "summary": tool.card.summary, "limits": tool.card.limits}
    about |= {"images": list(tool.card.images), "schema": {**schema, "properties": fields}}
    _write(out, {**about, "output": tool.output, "files": files_of(module_of("tools", setup.name))})
    with closing(CachedTools(store, FindingCache(None, store), options)) as service:
        while line := await asyncio.to_thread(sys.stdin.readline):
            _write(out, await _answer(service, tool, json.loads(line)))


async def _answer(service: CachedTools, tool: Tool, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    from hybrid.core.error_text import describe_error
    from hybrid.core.types import ImageRef
    from hybrid.interface.findings import show_finding, stored_image

    started_at = time.monotonic()
    try:
        stored = [stored_image(service.store, path) for path in request["photos"]]
        refs = [ImageRef(f"img:{place}", image) for place, image in enumerate(stored, 1)]
        finding = await service.call(tool, tool.parse(request["args"]), refs)
    except HybridError as error:
        return {"error": describe_error(error)}
    parts = show_finding(finding, service.store, service.notices)
    pictures = [base64.b64encode(png).decode() for png in parts.pngs]
    return {**parts.as_json(), "pictures": pictures, "seconds": round(time.monotonic() - started_at, 3)}


def _write(out: IO[str], answer: Mapping[str, Any]) -> None:
    out.write(f"{json.dumps(answer)}\n")
    out.flush()


def main() -> None:
    """Answer the requests on stdin with lines on stdout. A tool's own prints go to stderr, not between the answers."""
    setup = ToolProcessOptions(**json.loads(sys.argv[1]))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        try:
            asyncio.run(_serve(setup, out))
        except HybridError as error:
            _write(out, {"error": str(error)})


if __name__ == "__main__":
    main()
