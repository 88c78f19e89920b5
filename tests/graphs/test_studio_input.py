"""Studio's input becomes a question, or an error names the invalid field. The graph runs here without a server."""

import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, encode

Picture = Callable[[int], bytes]


@pytest.fixture
def picture(fakes: Any) -> Picture:
    """Return a function that encodes a picture `n` pixels wide."""
    pixels = fakes.puzzle(3)[0]
    return lambda n: encode(pixels[:, :n])


@pytest.fixture
def folder(tmp_path: Path, picture: Picture, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The allowed folder, which contains a picture and a link to another picture outside."""
    from graphs._studio import FOLDER

    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    (inside / "below" / "a.png").write_bytes(picture(4))
    (tmp_path / "outside.png").write_bytes(picture(5))
    (inside / "link.png").symlink_to(tmp_path / "outside.png")
    monkeypatch.setenv(FOLDER, str(inside))
    return inside


def human_state(*content: str | dict[str, Any], paths: tuple[str, ...] = ()) -> dict[str, Any]:
    from langchain_core.messages import HumanMessage

    return {"messages": [HumanMessage(list(content))], "image_paths": list(paths)}


def uploads(image: bytes) -> list[dict[str, Any]]:
    """Return one upload in the forms in which clients write it."""
    data = base64.b64encode(image).decode()
    url = f"data:image/png;base64,{data}"
    return [
        {"type": "image", "base64": data, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "image", "url": url},
        {"type": "image_url", "image_url": {"url": url}},
    ]


def widths(state: dict[str, Any], store: ImageStore) -> list[int]:
    from graphs._studio import question

    return [image.width for image in question(state, store).images]


def test_paths_come_before_uploads_of_any_form(folder: Path, store: ImageStore, picture: Picture) -> None:
    paths = ("below/a.png", str(folder / "below" / "a.png"))
    assert widths(human_state("How many?", *uploads(picture(9)), paths=paths), store) == [4, 4, 9, 9, 9, 9]


@pytest.mark.parametrize(
    "path", ["../outside.png", "link.png", "/etc/passwd", "../nowhere.png", "below/../../outside.png"]
)
@pytest.mark.usefixtures("folder")
def test_a_path_that_leads_out_is_refused_whether_or_not_it_exists(path: str, store: ImageStore) -> None:
    from graphs._studio import FOLDER, question

    with pytest.raises(DataError, match=f"image_paths: '{path}' is outside .*{FOLDER}"):
        question(human_state("?", paths=(path,)), store)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (dict, "no question: send a message with text"),
        (partial(human_state, " "), "no question: send a message with text"),
        (partial(human_state, "?", paths=("none.png",)), "image_paths: 'none.png' cannot be read"),
        (partial(human_state, "?", paths=("below",)), "image_paths: 'below' cannot be read"),
        (partial(human_state, "?", paths=("a\0.png",)), "cannot be read"),
        (
            partial(human_state, "?", {"type": "image", "base64": "ä", "mime_type": "image/png"}),
            "an upload is not base64",
        ),
        (partial(human_state, "?", {"type": "image", "base64": "AAAA", "mime_type": "image/png"}), "upload 1"),
        (partial(human_state, "?", {"type": "file", "file_id": "1"}), "only uploaded images"),
        (partial(human_state, "?", {"type": "image", "url": "http://127.0.0.1/a.png"}), "only uploaded images"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_unusable_input_is_named(state: Callable[[], dict[str, Any]], words: str, store: ImageStore) -> None:
    from graphs._studio import question

    with pytest.raises(DataError, match=words):
        question(state(), store)


async def test_a_chat_is_answered_and_its_calls_are_drawn(
    adversary: Any, completion: Any, tool_call: Any, fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphs import _studio

    monkeypatch.setenv("HYBRID_HOME", str(tmp_path))
    monkeypatch.setenv("HYBRID_MODEL", "openai:scripted")
    monkeypatch.setenv("OPENAI_BASE_URL", adversary.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    _studio.shared.cache_clear()
    images = [uploads(encode(pixels))[0] for pixels in fakes.puzzle(3)]
    calls = tool_call("jigsaw", {"images": ["img:1", "img:2", "img:3"]})
    adversary.queue = [completion("", calls), completion("(A)")]
    result: Any = await _studio.graph.ainvoke(
        human_state("Which fits?\n(A) the second image\n(B) the third image", *images)
    )
    try:
        assert (result["answer"], result["outcome"]) == ("(A)", "answered")
        assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
        assert [call["name"] for call in result["messages"][1].tool_calls] == ["jigsaw"]
        assert "jigsaw" in result["messages"][2].name
    finally:
        shared = _studio.shared()
        shared.control.service.close()
        assert shared.model is not None
        await shared.model.close()
        _studio.shared.cache_clear()
