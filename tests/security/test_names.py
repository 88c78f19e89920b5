"""A model reaches images only by their names: no path and no URL, whatever it writes in any field.

Python reports to an audit hook each file that is opened and each address that is connected to; a name that no correct
code would open is planted in every text of a model, a data set or a tool.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import HybridError, ToolError
from hybrid.core.images import ImageStore
from hybrid.core.messages import images_of, user_message
from hybrid.core.types import Fault, Finding, ImageRef, StoredImage
from hybrid.models.images import ImageEncoder, ImageRules, arrange
from hybrid.models.toolspec import spec
from hybrid.plugins.registry import load, names
from hybrid.serving.service import CachedTools
from hybrid.solving.call_tool import find_tool
from hybrid.solving.evidence import finding_parts
from hybrid.solving.images import ImageRegistry

CANARY = "canary-zq81"
HOSTILE = (
    f"/tmp/{CANARY}",  # noqa: S108
    f"../../{CANARY}",
    f"~/{CANARY}",
    f"file:///{CANARY}",
    f"http://127.0.0.1:9/{CANARY}",
    f"data:image/png;base64,{CANARY}",
    f"\\\\host\\{CANARY}",
    f"C:\\{CANARY}",
    f"img:1/../{CANARY}",
    f"img:1\x00{CANARY}",
    f"$(touch {CANARY})",
    f"{CANARY}.safetensors",
)
_touched: list[str] = []
_watching = [False]


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    # When the interpreter exits, the names of this module are gone.
    if not _watching or not _watching[0]:
        return
    if event in ("open", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "exec"):
        text = repr(arguments[:2])
        if CANARY in text or event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"):
            _touched.append(f"{event} {text[:200]}")


# Called by the first test, because a hook cannot be removed and slows down all other test files in its process.
add_hook = cache(partial(sys.addaudithook, _audit))


@contextmanager
def touched() -> Iterator[list[str]]:
    """Record opened files with the planted name, and started connections and processes."""
    add_hook()
    _touched.clear()
    _watching[0] = True
    try:
        yield _touched
    finally:
        _watching[0] = False


def test_the_watch_sees_an_open_and_a_connection(tmp_path: Path) -> None:
    with touched() as seen:
        (tmp_path / CANARY).write_text("x")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", 9), 1)
    assert {item.split()[0] for item in seen} >= {"open", "socket.connect"}


ODD_NAMES = ("", " img:1", "img:1 ", "IMG:1", "img:01", "img:1.1", "img:2", "1", "img:", "img:1\n", "ïmg:1", "*", ".")


@pytest.mark.parametrize("name", [*HOSTILE, *ODD_NAMES])
def test_an_image_has_no_other_name_than_its_own(store: ImageStore, fakes: Any, name: str) -> None:
    image_registry = ImageRegistry(fakes.refs(store, 1))
    with touched() as seen:
        with pytest.raises(ToolError) as text:
            image_registry.get(name)
        assert image_registry.find(name) is None
    assert text.value.fault is Fault.UNKNOWN_IMAGE
    assert seen == []


ODD_TOOLS = (
    "_shared",
    "rules",
    "base",
    "__init__",
    "os",
    "..",
    "tools.crop",
    "crop.TOOL",
    "hybrid.core.secrets",
    "crop/",
    "CROP",
)


@pytest.mark.parametrize("name", [*HOSTILE, *ODD_TOOLS])
def test_a_tool_has_no_other_name_than_its_own_and_nothing_else_is_imported(name: str) -> None:
    names("tools")  # imports the package, whose files are searched
    values = set(sys.modules)
    with touched() as seen, pytest.raises(ToolError) as text:
        find_tool(name)
    assert text.value.fault is Fault.UNKNOWN_TOOL
    assert set(sys.modules) == values
    assert seen == []


@pytest.mark.system
async def test_no_argument_of_any_tool_reaches_a_file_or_an_address(
    service: CachedTools, store: ImageStore, fakes: Any
) -> None:
    """No argument reaches a file or an address: every field of every tool that takes texts is given each hostile
    text."""
    selected = 0
    for name in names("tools"):
        tool = load("tools", name)
        refs = fakes.refs(store, *range(1, tool.card.images[0] + 1), size=(64, 48))
        for field in spec(tool)["function"]["parameters"]["properties"]:
            for value in (value for text in HOSTILE for value in (text, [text], [{"label": text, "x": 1, "y": 1}])):
                try:
                    args = tool.parse({field: value})
                except ToolError:
                    continue
                selected += 1
                with touched() as seen, suppress(HybridError):
                    await service.call(tool, args, refs)
                assert seen == [], f"{name}.{field}"
    assert selected >= len(HOSTILE)


@pytest.mark.parametrize("field", ["weights", "path", "url", "device", "backend", "model", "file", "images_dir"])
def test_only_the_user_says_where_weights_and_files_are(field: str) -> None:
    """Only the user names weights and files, by options of the command line. No tool takes such an argument, and
    unknown arguments are refused."""
    for name in names("tools"):
        tool = load("tools", name)
        assert field not in tool.args.model_fields, name
        with pytest.raises(ToolError) as text:
            tool.parse({field: HOSTILE[0]})
        assert text.value.fault is Fault.BAD_ARGUMENTS


@pytest.mark.parametrize(
    "text", [*(f"![x]({item}) <img src='{item}'>" for item in HOSTILE), "img:1 img:2: attached below"]
)
def test_what_a_tool_reads_in_a_picture_is_text(store: ImageStore, fakes: Any, text: str) -> None:
    (ref,) = fakes.refs(store, 1)
    parts = finding_parts(Finding(text, {"text": text}, 0.9, "classical", "1"), ["img:1"], "both")
    assert all(isinstance(part, str) for part in parts)
    with touched() as seen:
        messages = arrange([user_message([text, ref, *(part for part in parts if isinstance(part, str))])], 8)
        pictures = [ImageEncoder(store, ImageRules()).encoded(image.image) for image in images_of(messages)]
    assert len(pictures) == 1
    assert [entry for entry in seen if CANARY in entry] == []


def test_a_reference_holds_no_path() -> None:
    """A name stands for a hash, and a hash is not a path (`tests/hybrid/serving/test_cache.py` has more)."""
    for text in HOSTILE:
        with pytest.raises(ValueError, match="is not the sha256"):
            ImageRef("img:1", StoredImage(text, 1, 1, "image/png"))
