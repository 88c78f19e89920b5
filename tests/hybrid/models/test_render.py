import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from PIL import Image

from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.messages import human, image_part, images_of, text_of
from hybrid.models.render import Attacher, ImageRules, arrange, fit, metadata
from hybrid.types import ImageRef, StoredImage


def ref(name: str, sha: str) -> ImageRef:
    return ImageRef(name, StoredImage(sha * 64, 4, 3, "image/png"))


def result(number: int, *images: ImageRef, status: str = "success") -> ToolMessage:
    parts: list[Any] = [{"type": "text", "text": f"finding {number}"}, *map(image_part, images)]
    return ToolMessage(parts, tool_call_id=f"c{number}", name="crop", status=status)


def call(*numbers: int) -> AIMessage:
    calls: list[Any] = [{"name": "crop", "args": {}, "id": f"c{n}", "type": "tool_call"} for n in numbers]
    return AIMessage("", tool_calls=calls)


def plain(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    """Type and content, images as `<name>`."""
    out: list[tuple[str, Any]] = []
    for message in messages:
        content = message.content
        if not isinstance(content, str):
            content = [f"<{part['name']}>" if part["type"] == "image_ref" else part["text"] for part in content]  # type: ignore[index]
        out.append((message.type, content))
    return out


def test_images_of_a_batch_of_results_follow_it_in_one_user_message() -> None:
    messages = [
        SystemMessage("Be brief."),
        human(["Which?", ref("img:1", "a"), ref("img:2", "b")]),
        call(1, 2),
        result(1, ref("img:1.1", "c")),
        result(2, ref("img:2.1", "d"), status="error"),
        call(3),
        result(3),
        HumanMessage("Answer now."),
    ]
    before = [message.model_dump() for message in messages]
    assert plain(arrange(messages, 8)) == [
        ("system", "Be brief."),
        ("human", ["Which?", "img:1:", "<img:1>", "img:2:", "<img:2>"]),
        ("ai", ""),
        ("tool", "finding 1\n[img:1.1: attached below]"),
        ("tool", "Error: finding 2\n[img:2.1: attached below]"),
        ("human", ["img:1.1:", "<img:1.1>", "img:2.1:", "<img:2.1>"]),
        ("ai", ""),
        ("tool", "finding 3"),
        ("human", ["Answer now."]),
    ]
    assert [message.model_dump() for message in messages] == before


def test_an_image_made_without_a_label_goes_out_alone() -> None:
    opening = human(["Which?", ref("img:1", "a"), ref("img:2", "b")], labelled=False)
    messages = [opening, call(1), result(1, ref("img:1.1", "c"), ref("img:1", "a"))]
    assert plain(arrange(messages, 8)) == [
        ("human", ["Which?", "<img:1>", "<img:2>"]),
        ("ai", ""),
        ("tool", "finding 1\n[img:1.1: attached below]\n[img:1: shown above]"),
        ("human", ["img:1.1:", "<img:1.1>"]),
    ]
    assert image_part(ref("img:1", "a"))["name"] == image_part(ref("img:1", "a"), labelled=False)["name"] == "img:1"


def test_a_user_message_after_a_batch_takes_its_images() -> None:
    messages = [human(["Which?"]), call(1), result(1, ref("img:1.1", "c")), HumanMessage("Answer now.")]
    assert plain(arrange(messages, 8))[-1] == ("human", ["img:1.1:", "<img:1.1>", "Answer now."])


def test_the_opening_and_the_last_images_stay() -> None:
    messages: list[BaseMessage] = [human([ref("img:1", "a"), ref("img:2", "b")])]
    for number in range(3):
        messages += [call(number), result(number, ref(f"img:1.{number}", f"{number}"))]
    out = arrange(messages, 1)
    assert [part.name for part in images_of(out)] == ["img:1", "img:2", "img:1.2"]
    assert "finding 0\n[img:1.0: no longer shown]" in [content for _, content in plain(out)]
    assert [part.name for part in images_of(arrange(messages, 0))] == ["img:1", "img:2"]


def test_no_image_goes_out_twice() -> None:
    messages = [
        human(["Which?", ref("img:1", "a"), ref("img:2", "a"), ref("img:1", "a")]),
        call(1),
        result(1, ref("img:1", "a"), ref("img:1.1", "a"), ref("img:1.2", "c"), ref("img:1.3", "c")),
    ]
    assert plain(arrange(messages, 8)) == [
        # The question itself may show one picture under two names: that may be what it asks about.
        ("human", ["Which?", "img:1:", "<img:1>", "img:2:", "<img:2>", "[img:1: shown above]"]),
        ("ai", ""),
        (
            "tool",
            "\n".join(
                [
                    "finding 1",
                    "[img:1: shown above]",
                    "[img:1.1: the same picture as img:1]",
                    "[img:1.2: attached below]",
                    "[img:1.3: the same picture as img:1.2]",
                ]
            ),
        ),
        ("human", ["img:1.2:", "<img:1.2>"]),
    ]


messages_of = st.lists(
    st.tuples(st.sampled_from("hat"), st.lists(st.integers(0, 5), max_size=3)), min_size=1, max_size=8
)


@given(messages_of, st.integers(0, 6))
def test_whatever_the_conversation(turns: list[tuple[str, list[int]]], keep: int) -> None:
    made: list[BaseMessage] = []
    for number, (kind, shas) in enumerate(turns):
        refs = [ref(f"img:{sha}", str(sha)) for sha in shas]
        made.append({"h": human(["text", *refs]), "a": call(number), "t": result(number, *refs)}[kind])
    out = arrange(made, keep)
    opening = next((message for message in made if message.type == "human"), None)
    first = {part.name for part in images_of([opening])} if opening is not None else set()
    shown = [part.name for part in images_of(out)]
    assert len(shown) == len(set(shown))
    assert first <= set(shown)
    assert len(set(shown) - first) == min(keep, len({part.name for part in images_of(made)} - first))
    assert all(isinstance(message.content, str) for message in out if message.type == "tool")
    for message in out:
        if message.type == "human":
            parts: list[Any] = list(message.content)
            for number, part in enumerate(parts):
                if part["type"] == "image_ref":
                    assert parts[number - 1] == {"type": "text", "text": f"{part['name']}:"}
    assert [message.type for message in out if message.type != "human"] == [
        message.type for message in made if message.type != "human"
    ]


def stored(store: ImageStore, form: str, size: tuple[int, int] = (40, 30), **options: Any) -> StoredImage:
    pixels = np.random.default_rng(3).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form, **options)
    return store.put(buffer.getvalue(), form)


def sent_part(attacher: Attacher, image: StoredImage) -> tuple[dict[str, Any], Any]:
    out, sent = attacher.attach([human([ImageRef("img:1", image)])])
    part: Any = out[0].content[0]
    return part, sent[0]


@pytest.mark.parametrize(("form", "media"), [("PNG", "image/png"), ("JPEG", "image/jpeg")])
def test_original_bytes_go_out_as_they_came(store: ImageStore, form: str, media: str) -> None:
    image = stored(store, form)
    part, sent = sent_part(Attacher(store, ImageRules(max_pixels=1200)), image)
    assert part == {"type": "image", "base64": base64.b64encode(store.read(image)).decode(), "mime_type": media}
    assert sent.original == sent.sent == image


def test_only_what_a_provider_cannot_take_is_converted(store: ImageStore) -> None:
    image = stored(store, "WEBP", lossless=True)
    part, sent = sent_part(Attacher(store, ImageRules()), image)
    assert part["mime_type"] == sent.sent.media_type == "image/png"
    assert np.array_equal(store.pixels(sent.sent), store.pixels(image))
    rules = ImageRules(frozenset({"image/webp"}))
    assert sent_part(Attacher(store, rules), image)[0]["mime_type"] == "image/webp"


def test_a_rotated_photograph_is_turned_once(store: ImageStore) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = stored(store, "JPEG", exif=exif)
    attacher = Attacher(store, ImageRules())
    part, sent = sent_part(attacher, image)
    picture = Image.open(io.BytesIO(base64.b64decode(part["base64"])))
    assert picture.format == "JPEG"
    assert picture.size == (30, 40) == (sent.sent.width, sent.sent.height)
    assert 0x0112 not in picture.getexif()
    assert sent_part(attacher, image)[0] == part
    assert sent_part(Attacher(store, ImageRules()), image)[0] == part


def test_large_images_are_scaled_and_the_size_sent_is_told(store: ImageStore) -> None:
    image = stored(store, "PNG", (400, 300))
    _, sent = sent_part(Attacher(store, ImageRules(max_pixels=1200)), image)
    assert (sent.sent.width, sent.sent.height) == (40, 30)
    assert metadata([sent]) == {
        "images_sent": [
            {
                "name": "img:1",
                "sha256": image.sha256,
                "sent_sha256": sent.sent.sha256,
                "width": 40,
                "height": 30,
            }
        ]
    }


def test_detail_stands_in_the_part(store: ImageStore, image: Callable[..., ImageRef]) -> None:
    picture = image("img:1").image
    part, _ = sent_part(Attacher(store, ImageRules(detail="low")), picture)
    url = f"data:image/png;base64,{base64.b64encode(store.read(picture)).decode()}"
    assert part == {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def test_an_image_that_is_not_stored_is_named(store: ImageStore) -> None:
    with pytest.raises(DataError, match="0123456789ab"):
        sent_part(Attacher(store, ImageRules()), StoredImage("0123456789abcdef" * 4, 1, 1, "image/png"))


def test_text_of_other_messages_is_untouched(store: ImageStore) -> None:
    messages = [SystemMessage("s"), AIMessage([{"type": "text", "text": "thought"}]), HumanMessage("q")]
    out, sent = Attacher(store, ImageRules()).attach(messages)
    assert [text_of(message) for message in out] == ["s", "thought", "q"]
    assert sent == ()


@settings(max_examples=200)
@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1, 10**7))
def test_a_size_fits_and_keeps_its_shape(width: int, height: int, most: int) -> None:
    w, h = fit(width, height, most)
    assert 1 <= w <= width
    assert 1 <= h <= height
    assert w * h <= most
    if width * height <= most:
        assert (w, h) == (width, height)
