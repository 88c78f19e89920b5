"""Calls to MCP servers of other programs: requests, results, and what happens if a server is broken."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

pytest.importorskip("mcp")

import mcp.types as protocol

from hybrid.config import ServiceOptions
from hybrid.core.errors import Outage, ToolError
from hybrid.core.images import ImageStore, home
from hybrid.core.timing import CallTime
from hybrid.core.types import Fault, Finding, ImageRef
from hybrid.integrations.mcp import client
from hybrid.integrations.mcp.client import MAX_DATA, MAX_IMAGES, MAX_TEXT, McpTools, finding_of, foreign_tools
from hybrid.plugins.registry import load
from hybrid.serving.cache import FindingCache
from hybrid.solving.evidence import finding_parts
from hybrid.solving.images import ImageRegistry
from tests.hybrid.integrations.served import PLAIN, PLAIN_IMAGES, plain
from tests.image_bytes import saved
from tests.tables import cases


@pytest.fixture
def store() -> ImageStore:
    return ImageStore(home() / "images")


@pytest.fixture
def ref(store: ImageStore, fakes: Any) -> ImageRef:
    return ImageRef("img:1", store.put_pixels(fakes.pixels(0, (24, 20))))


@asynccontextmanager
async def tools(store: ImageStore, server: str = "", **options: Any) -> AsyncIterator[McpTools]:
    """A runner of the plain server's tools and the project's tools. At the end it is closed, and no process may be
    left."""
    previous = children()
    server = server or plain()
    offers = foreign_tools((server,), PLAIN_IMAGES if server.startswith("plain=") else {}, ("crop",))
    runner = offers.runner(store, FindingCache(None, store), ServiceOptions("classical", **options))
    assert isinstance(runner, McpTools)
    try:
        yield runner
    finally:
        runner.close()
    async with asyncio.timeout(600):
        while not children() <= previous:
            await asyncio.sleep(0.05)


def children() -> set[str]:
    """Return all processes whose parent is this process. The kernel's list of children is not used: it is kept per
    thread."""
    seen = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process that ends while the list is read
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                seen.add(stat.parent.name)
    return seen


async def call_tool(
    runner: McpTools, name: str, *refs: ImageRef, spent: CallTime | None = None, **args: Any
) -> Finding:
    tool = runner._foreign[name].tool if name in runner._foreign else load("tools", name)
    return await runner.call(tool, tool.parse(args), refs, spent=spent)


@pytest.mark.system
async def test_images_go_out_as_they_are_or_as_png_or_jpeg(store: ImageStore, ref: ImageRef) -> None:
    def store_as(kind: str, **options: Any) -> ImageRef:
        return ImageRef("img:2", store.put(saved(Image.fromarray(store.pixels(ref.image)), kind, **options), kind))

    exif = Image.Exif()
    exif[0x0112] = 6
    async with tools(store) as runner:
        for image, head in ((ref, "png"), (store_as("JPEG"), "jpeg")):
            url = f"data:image/{head};base64,{base64.b64encode(store.read(image.image)).decode()}"
            assert (await call_tool(runner, "plain_look", image)).text == f"{len(url)} characters: {url[:22]}"
        assert "data:image/png;base64," in (await call_tool(runner, "plain_look", store_as("TIFF"))).text
        other_rotated = store_as("JPEG", exif=exif)
        sent, _ = runner._encoder.encoded(other_rotated.image)
        # The picture was rotated when it was stored.
        assert (sent, sent.width) == (other_rotated.image, 20)
        assert runner.computed == 3
        # The project's tools run as they do without any server, and the foreign server does not answer calls to them.
        assert (await call_tool(runner, "crop", ref, grid={"rows": 2, "columns": 2})).backend == "classical"
        with pytest.raises(ToolError, match="plain_look takes 1 images, not 2") as wrong:
            await call_tool(runner, "plain_look", ref, ref)
        assert wrong.value.fault is Fault.BAD_ARGUMENTS


@pytest.mark.system
async def test_a_process_that_is_started_gets_no_variable_of_ours(
    store: ImageStore, ref: ImageRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-strangers")
    async with tools(store) as runner:
        names = (await call_tool(runner, "plain_variables", ref)).text.split()
    assert "PATH" in names
    assert set(names) <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


@pytest.mark.system
async def test_calls_side_by_side_are_answered_each_and_one_that_hangs_costs_no_other(
    store: ImageStore, ref: ImageRef
) -> None:
    async with tools(store, timeout_s=8.0) as runner:
        names = ["plain_look", "plain_unwilling", *["plain_look"] * 10, "plain_refuses"]
        spent = [CallTime() for _ in names]
        calls = [call_tool(runner, name, ref, spent=item) for name, item in zip(names, spent, strict=True)]
        results = await asyncio.gather(*calls, return_exceptions=True)
    faults = [entry.fault if isinstance(entry, ToolError) else None for entry in results]
    assert faults == [None, Fault.TIMEOUT, *[None] * 10, Fault.BAD_ARGUMENTS]
    assert spent[1].busy > 0


@pytest.mark.system
async def test_who_waits_when_it_is_closed_gets_an_outage(store: ImageStore, ref: ImageRef) -> None:
    async with tools(store) as runner:
        await call_tool(runner, "plain_look", ref)
        waits = asyncio.create_task(call_tool(runner, "plain_unwilling", ref))
        await asyncio.sleep(0.2)
        runner.close()
        with pytest.raises(Outage, match="the tool service is closed"):
            await waits
        with pytest.raises(Outage, match="the tool service is closed"):
            await call_tool(runner, "plain_look", ref)


@pytest.mark.system
async def test_a_server_that_is_gone_costs_calls_until_it_is_back(
    store: ImageStore, ref: ImageRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "there.py"
    module.write_text(PLAIN.read_text())
    async with tools(store, plain(script=module)) as runner:
        module.unlink()
        monkeypatch.setattr(client, "AWAY_S", 0.5)
        for _ in range(2):
            # The question stays open: it was not answered without the tool.
            with pytest.raises(Outage, match=r"the MCP server .* cannot be used: .*; it said: "):
                await call_tool(runner, "plain_look", ref)
        module.write_text(PLAIN.read_text())
        assert (await call_tool(runner, "plain_look", ref)).backend == "mcp"


def result(*content: Any, structured: Any = None, error: bool = False) -> protocol.CallToolResult:
    return protocol.CallToolResult(content=list(content), structuredContent=structured, isError=error)


def text(words: str) -> protocol.TextContent:
    return protocol.TextContent(type="text", text=words)


def picture(side: int) -> protocol.ImageContent:
    data = base64.b64encode(saved(Image.fromarray(np.zeros((side, side, 3), np.uint8)))).decode()
    return protocol.ImageContent(type="image", data=data, mimeType="x/y")


def test_long_texts_are_cut_and_what_cannot_be_used_is_a_fault(store: ImageStore, ref: ImageRef) -> None:
    long = finding_of("it_look", "", result(text("a" * MAX_TEXT), text("b")), [ref], store)
    assert long.text == "a" * MAX_TEXT + "\n[2 more characters are left out]"
    rendered = finding_of("it_look", "", result(*[picture(3)] * MAX_IMAGES), [ref], store)
    assert [(image.parent, image.image.width) for image in rendered.images] == [("img:1", 3)] * MAX_IMAGES
    (chart,) = finding_of("it_draw", "", result(picture(3)), [], store).images
    assert (chart.parent, chart.image.width) == (None, 3)
    assert finding_of("it_look", "", result(structured={"a": 1}), [ref], store).text == '{"a": 1}'
    for failed, words in (
        (result(), "no text, image or structured content"),
        (result(error=True), "does not say why"),
        (result(text("x"), structured={"a": "b" * MAX_DATA}), "0 images and 100,009 characters"),
        (result(*[picture(3)] * (MAX_IMAGES + 1)), "9 images"),
    ):
        with pytest.raises(ToolError, match=f"it_look: .*{words}"):
            finding_of("it_look", "", failed, [ref], store)


@given(message=st.text(max_size=50), data=st.binary(max_size=50) | st.just(b"\x89PNG\r\n\x1a\n" + b"\0" * 30))
def test_no_picture_that_is_none_gets_into_a_finding(tmp_path_factory: Any, message: str, data: bytes) -> None:
    store = ImageStore(tmp_path_factory.getbasetemp() / "store")
    ref = ImageRef("img:1", store.put_pixels(np.zeros((4, 4, 3), np.uint8)))
    for encoded in (base64.b64encode(data).decode(), message):
        given_back = protocol.ImageContent(type="image", data=encoded, mimeType="image/png")
        with pytest.raises(ToolError, match="it_look: the result cannot be used: "):
            finding_of("it_look", "", result(text("x"), given_back), [ref], store)


@pytest.mark.parametrize(*cases(__file__, "odd_results", list, odd=protocol.CallToolResult.model_validate))
@pytest.mark.parametrize("given_images", [0, 1])
def test_odd_results_are_shown_whole(
    store: ImageStore, ref: ImageRef, odd: protocol.CallToolResult, says: str, shows: int, given_images: int
) -> None:
    if says.startswith("ToolError: ") or "does not say why" in says:
        with pytest.raises(ToolError) as failed:
            finding_of("it_look", "", odd, [ref][:given_images], store)
        assert says in f"ToolError: {failed.value}"
        return
    output = finding_of("it_look", "", odd, [ref][:given_images], store)
    assert (says in output.text, bool(output.text)) == (True, bool(says))
    assert [image.parent for image in output.images] == [ref.name if given_images else None] * shows
    # A picture of another size is not a drawing on the input image.
    values = [ImageRegistry([ref]).add(image, image.parent or "img:it_look") for image in output.images]
    message = finding_parts(replace(output, images=tuple(values)), [], "both", registry=ImageRegistry([ref]))[0]
    assert "drawn on it" not in str(message)
    if shows:
        assert ("img:1.1: a picture that was made of img:1" if given_images else "img:it_look.1: a picture") in str(
            message
        )
