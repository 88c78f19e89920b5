"""What Studio sends becomes a prompt, or is refused in words that name the field; the served graph without a server."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs._studio import builder, close
from graphs._studio_input import FOLDER, Input, read_input
from hybrid.errors import DataError
from hybrid.images import ImageStore, encode
from hybrid.types import LETTERS, Kind

Picture = Callable[[int], bytes]


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "store")


@pytest.fixture
def picture(fakes: Any) -> Picture:
    """A picture that is `n` pixels wide, as a file."""
    pixels = fakes.puzzle(3)[0]
    return lambda n: encode(pixels[:, :n])


def coded(image: bytes) -> str:
    return base64.b64encode(image).decode()


@pytest.fixture
def folder(tmp_path: Path, picture: Picture, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The allowed folder with a picture in it, another beside it, and a link that leads out."""
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    (inside / "below" / "a.png").write_bytes(picture(4))
    (tmp_path / "outside.png").write_bytes(picture(5))
    (inside / "link.png").symlink_to(tmp_path / "outside.png")
    monkeypatch.setenv(FOLDER, str(inside))
    return inside


def widths(found: Any) -> list[int]:
    return [ref.image.width for ref in found.prompt.images]


def test_paths_come_before_uploads(folder: Path, store: ImageStore, picture: Picture) -> None:
    uploads = [f"data:image/png;base64,{coded(picture(6))}", coded(picture(7))]
    paths = ["below/a.png", str(folder / "below" / "a.png")]
    found = read_input({"question": "How many?", "image_paths": paths, "images": uploads}, store)
    assert widths(found) == [4, 4, 6, 7]
    assert [ref.name for ref in found.prompt.images] == ["img:1", "img:2", "img:3", "img:4"]
    assert (found.prompt.kind, found.prompt.text) == (Kind.FREE, "How many?")


def test_the_folder_is_the_working_directory_by_default(
    folder: Path, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDER)
    monkeypatch.chdir(folder / "below")
    assert widths(read_input({"question": "?", "image_paths": ["a.png"]}, store)) == [4]
    with pytest.raises(DataError, match="lies outside"):
        read_input({"question": "?", "image_paths": ["../below/../link.png"]}, store)


@pytest.mark.parametrize(
    "path", ["../outside.png", "link.png", "/etc/passwd", "../nowhere.png", "below/../../outside.png"]
)
@pytest.mark.usefixtures("folder")
def test_a_path_that_leads_out_is_refused_whether_or_not_it_exists(path: str, store: ImageStore) -> None:
    with pytest.raises(DataError, match=f"image_paths: '{path}' lies outside .*{FOLDER}"):
        read_input({"question": "?", "image_paths": [path]}, store)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "there is no question"),
        ({"question": " ", "messages": [HumanMessage([])]}, "there is no question"),
        ({"question": 3}, "question: Input should be a valid string"),
        ({"question": "?", "images": "x"}, "images: Input should be a valid list"),
        ({"question": "?", "images": ["!"]}, "images: upload 1 is not base64"),
        ({"question": "?", "images": ["ä"]}, "images: upload 1 is not base64"),
        ({"question": "?", "images": ["AAAA"]}, "images: upload 1"),
        ({"question": "?", "image_paths": ["none.png"]}, "there is no file 'none.png'"),
        ({"question": "?", "image_paths": ["below"]}, "there is no file 'below'"),
        ({"question": "?", "image_paths": ["a\0.png"]}, "cannot be read"),
        ({"question": "?", "choices": ["x"] * 27}, "choices: 27 options"),
        ({"messages": [HumanMessage(["?", {"type": "file", "file_id": "1"}])]}, "image 1: a block of type 'file'"),
        (
            {"messages": [HumanMessage(["?", {"type": "image", "url": "http://127.0.0.1/a.png"}])]},
            "messages: image 1: only uploaded images",
        ),
        ({"messages": [HumanMessage(["?", {"type": "image", "file_id": "1"}])]}, "only uploaded images"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_used_is_named(state: dict[str, Any], words: str, store: ImageStore) -> None:
    with pytest.raises(DataError, match=words):
        read_input(state, store)


def blocks(image: bytes) -> list[dict[str, Any]]:
    """One upload in every form in which clients write it."""
    data, url = coded(image), f"data:image/png;base64,{coded(image)}"
    return [
        {"type": "image", "base64": data, "mime_type": "image/png"},
        {"type": "image", "source_type": "base64", "data": data, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "image", "url": url},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": url},
    ]


def test_every_form_of_an_upload_is_read(store: ImageStore, picture: Picture) -> None:
    found = read_input({"messages": [HumanMessage([{"type": "text", "text": "Which?"}, *blocks(picture(9))])]}, store)
    assert (widths(found), found.prompt.text, found.drawn) == ([9] * 6, "Which?", None)


def test_the_last_images_of_a_chat_stay(store: ImageStore, picture: Picture) -> None:
    first, second = (blocks(picture(n))[0] for n in (8, 9))
    chat = [HumanMessage(["old", first]), HumanMessage(["new", second]), HumanMessage("And now?")]
    found = read_input({"messages": [*chat, HumanMessage("Answer.", name="controller")]}, store)
    assert (widths(found), found.prompt.text) == ([9], "And now?")
    assert widths(read_input({"question": "Mine?", "images": [coded(picture(4))], "messages": chat}, store)) == [4]


@given(st.lists(st.text("abc (A)", min_size=1).map(str.strip).filter(bool), min_size=2, max_size=26))
def test_options_at_the_end_are_the_choices(options: list[str]) -> None:
    store = ImageStore(Path("unused"))
    lines = [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]
    text = "\n".join(["Which?", *lines])
    told = read_input({"messages": [HumanMessage(text)]}, store).prompt
    asked = read_input({"messages": [HumanMessage("Which?")], "choices": options}, store).prompt
    assert told == asked
    assert (told.kind, told.choices, told.text) == (Kind.CHOICE, tuple(options), text)


@pytest.mark.parametrize(
    "text", ["Which?\n(A) one", "Which?\n(B) one\n(A) two", "(A) and (B)", "Which?\n(A) a\n(B) b\nSay."]
)
def test_what_is_no_list_of_options_stays_text(text: str, store: ImageStore) -> None:
    prompt = read_input({"messages": [HumanMessage(text)]}, store).prompt
    assert (prompt.kind, prompt.choices, prompt.text) == (Kind.FREE, (), text)


async def test_a_thread_goes_on_from_an_earlier_step(
    adversary: Any, completion: Any, tool_call: Any, fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path))
    monkeypatch.setenv("HYBRID_MODEL", "openai:scripted")
    monkeypatch.setenv("OPENAI_BASE_URL", adversary.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    calls = tool_call("jigsaw", {"images": ["img:1", "img:2", "img:3"]})
    replies = [completion("", calls), completion("(A)")]
    graph = builder.compile(InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    images = [coded(encode(pixels)) for pixels in fakes.puzzle(3)]
    asked: Input = {"question": "Which fits?", "choices": ["the second image", "the third image"], "images": images}
    adversary.queue = [*replies]
    first = await graph.ainvoke(asked, config)
    assert (first["answer"], [finding["fault"] for finding in first["findings"]]) == ("(A)", [None])
    assert first["findings"][0]["data"]["best"] == 0
    earlier = [state async for state in graph.aget_state_history(config) if state.next == ("model",)][-1]
    adversary.queue = [*replies]
    again = await graph.ainvoke(None, earlier.config)
    assert [finding["data"] for finding in again["findings"]] == [finding["data"] for finding in first["findings"]]
    assert [message.type for message in again["messages"]] == ["human", "ai", "tool", "ai"]
    refused = await graph.ainvoke({"images": ["!"], "question": "?"}, config)
    assert (refused["outcome"], refused["answer"], refused["findings"]) == ("broken", "", [])
    assert refused["problem"].startswith("images: upload 1 is not base64")
    await close()
