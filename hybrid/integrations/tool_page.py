"""The page of `hybrid tools try`: drop a picture, set the arguments, and see the tool's output.

    with ToolProcess(setup) as process, ToolPage(process, photos, words) as server:
        server.serve_forever()                     # http://127.0.0.1:PORT/

GET /tool.json describes the tool; POST /photos stores the bytes of a picture; POST /call runs the tool. Uploads are
kept in a temporary folder until the server ends. docs/security.md explains who can reach the page.
"""

from __future__ import annotations

import io
import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from hybrid.core.images import FORMATS
from hybrid.core.slow_images import slow_structure
from hybrid.core.types import Json
from hybrid.display.local_server import LocalHandler, LocalServer
from hybrid.integrations.tool_process import ToolProcess

FOLDER = Path(__file__).parents[1] / "templates" / "tool_page"
# The files of the page by URL path, with their media types.
FILES: Mapping[str, tuple[str, str]] = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
}
JSON = "application/json"
BYTES = "application/octet-stream"
# Longest request that sets arguments, and largest picture that can be sent.
MAX_CALL_BYTES = 1_000_000
MAX_PHOTO_BYTES = 64 * 2**20


class ToolPage(LocalServer):
    """Serves the page of a tool on 127.0.0.1.

    Args:
        process: runs the tool.
        photos: pictures that the page shows at first.
        options: words of the command line that the printed command repeats, such as `--device cuda`.
        port: the port; 0 for a free one.

    Raises:
        OSError: the port is taken.
    """

    def __init__(self, process: ToolProcess, photos: Sequence[Path], options: Sequence[str], port: int = 0) -> None:
        self.process, self.options = process, tuple(options)
        self._lock = Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="hybrid-try-"))
        self._photos = list(photos)
        super().__init__(_Handler, port)

    def server_close(self) -> None:
        """Close the server and delete the pictures that were sent."""
        super().server_close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def keep(self, data: bytes) -> int:
        """Store a picture, and return its number."""
        with self._lock:
            number = len(self._photos)
            path = self._folder / f"photo-{number}"
            self._photos.append(path)
        path.write_bytes(data)
        return number

    def photo(self, number: int) -> Path:
        """Return the file of a picture. Raises `IndexError`."""
        with self._lock:
            if not 0 <= number < len(self._photos):
                raise IndexError(number)
            return self._photos[number]

    def describe(self) -> dict[str, Any]:
        """Describe the tool, and the pictures that the page shows at first."""
        with self._lock:
            outside = [path.name for path in self._photos if path.parent != self._folder]
        about = self.process.describe()
        return {**{key: value for key, value in about.items() if key != "files"}, "photos": outside}

    def call(self, numbers: Sequence[int], args: Mapping[str, Json]) -> dict[str, Any]:
        """Run the tool on pictures. Return its output, and the same call in other forms. Raises `IndexError`."""
        photos = [self.photo(number) for number in numbers]
        answer = self.process.call(photos, args)
        names = [
            str(path) if path.parent != self._folder else f"photo{place}.png" for place, path in enumerate(photos, 1)
        ]
        return {**answer, "same": same_calls(self.process.tool, names, args, self.options)}


def same_calls(tool: str, photos: Sequence[str], args: Mapping[str, Json], options: Sequence[str]) -> dict[str, str]:
    """Return the same call as a command, in Python and over MCP."""
    words = ["hybrid", "tools", "run", tool, *photos, *(("--args", json.dumps(args)) if args else ()), *options]
    python = [*map(repr, photos), *(f"{key}={value!r}" for key, value in args.items() if key.isidentifier())]
    images = {"image": photos[0]} if len(photos) == 1 else {"images": list(photos)}
    return {
        "Command": shlex.join(words),
        "Python": f"hybrid.tool({tool!r}).run({', '.join(python)})",
        "MCP": json.dumps({"name": tool, "arguments": {**images, **args}}),
    }


class _Handler(LocalHandler):
    """Serves the files of the page, and answers its two kinds of requests."""

    server: ToolPage

    def do_GET(self) -> None:  # noqa: N802 - the name of the standard library
        if refused := self.refused():
            self.respond(refused)
            return
        path = urlsplit(self.path).path
        if path == "/tool.json":
            self.respond(HTTPStatus.OK, JSON, json.dumps(self.server.describe()).encode())
        elif path in FILES:
            name, media_type = FILES[path]
            self.respond(HTTPStatus.OK, media_type, (FOLDER / name).read_bytes())
        elif path.startswith("/photos/"):
            self._send_photo(path.removeprefix("/photos/"))
        else:
            self.respond(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:  # noqa: N802
        path = urlsplit(self.path).path
        # A page of another site can send a form, but not with this media type or with the origin of this page.
        expected = {"/photos": (BYTES, MAX_PHOTO_BYTES), "/call": (JSON, MAX_CALL_BYTES)}.get(path)
        if refused := self.refused() or self._refused_body(expected):
            # Close the connection, which cannot be used again because the body was not read.
            self.close_connection = True
            self.respond(refused)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if path == "/photos":
            self.respond(HTTPStatus.OK, JSON, json.dumps({"number": self.server.keep(body)}).encode())
            return
        try:
            request = json.loads(body)
            answer = self.server.call([int(number) for number in request["photos"]], dict(request["args"]))
        except (ValueError, KeyError, TypeError, IndexError):
            self.respond(HTTPStatus.BAD_REQUEST)
            return
        self.respond(HTTPStatus.OK, JSON, json.dumps(answer).encode())

    def _refused_body(self, expected: tuple[str, int] | None) -> HTTPStatus | None:
        """Return why a body is rejected, before it is read."""
        if expected is None:
            return HTTPStatus.NOT_FOUND
        media_type, most = expected
        if not self.headers.get_all("Origin", []):
            return HTTPStatus.FORBIDDEN
        if self.headers.get_content_type() != media_type:
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            return HTTPStatus.LENGTH_REQUIRED
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if int(length) > most else None

    def _send_photo(self, name: str) -> None:
        try:
            data = self.server.photo(int(name)).read_bytes()
            media_type = _media_type(data)
        except (ValueError, IndexError, OSError):
            media_type = ""
        if media_type.startswith("image/"):
            self.respond(HTTPStatus.OK, media_type, data)
        else:
            self.respond(HTTPStatus.NOT_FOUND)


def _media_type(data: bytes) -> str:
    """Return the media type of an image file, or "" if it is slow to open. Raises `OSError` if it is not an image."""
    from PIL import Image

    if slow_structure(data):
        return ""
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        return image.get_format_mimetype() or ""
