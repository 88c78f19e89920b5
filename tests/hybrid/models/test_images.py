import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, picture_of
from hybrid.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ToolCall,
    ToolMessage,
    images_of,
    parts_of,
    user_message,
)
from hybrid.core.types import ImageRef, StoredImage
from hybrid.models.images import DecodedPictures, ImageEncoder, ImageRules, arrange, fit


def ref(name: str, sha: str) -> ImageRef:
    return ImageRef(name, StoredImage(sha * 64, 4, 3, "image/png"))


def result(number: int, *images: ImageRef, failed: bool = False) -> ToolMessage:
    return ToolMessage(f"c{number}", "crop", (f"finding {number}", *map(ImagePart, images)), failed)


def call(*numbers: int) -> AssistantMessage:
    return AssistantMessage("", tuple(ToolCall(f"c{n}", "crop", {}) for n in numbers))


def plain(messages: list[Message]) -> list[tuple[str, list[str]]]:
    """Return role and parts, with images as `<name>`."""
    return [
        (message.role, [part if isinstance(part, str) else f"<{part.ref.name}>" for part in parts_of(message)])
        for message in messages
    ]


TWINS = (
    "finding 1",
    "[img:1: shown above]",
    "[img:1.1: the same picture as img:1]",
    "[img:1.2: attached below]",
    "[img:1.3: the same picture as img:1.2]",
)


def test_no_image_goes_out_twice() -> None:
    messages: list[Message] = [
        user_message(["Which?", ref("img:1", "a"), ref("img:2", "a"), ref("img:1", "a")]),
        call(1),
        result(1, ref("img:1", "a"), ref("img:1.1", "a"), ref("img:1.2", "c"), ref("img:1.3", "c")),
    ]
    assert plain(arrange(messages, 8)) == [
        # A question may be about one picture that has two names, so the picture is sent under both.
        ("user", ["Which?", "img:1:", "<img:1>", "img:2:", "<img:2>", "[img:1: shown above]"]),
        ("assistant", [""]),
        ("tool", ["\n".join(TWINS)]),
        ("user", ["img:1.2:", "<img:1.2>"]),
    ]


messages_of = st.lists(
    st.tuples(st.sampled_from("hat"), st.lists(st.integers(0, 5), max_size=3)), min_size=1, max_size=8
)


@given(messages_of, st.integers(0, 6))
def test_whatever_the_conversation(turns: list[tuple[str, list[int]]], keep: int) -> None:
    messages: list[Message] = []
    for number, (kind, shas) in enumerate(turns):
        refs = [ref(f"img:{sha}", str(sha)) for sha in shas]
        messages.append({"h": user_message(["text", *refs]), "a": call(number), "t": result(number, *refs)}[kind])
    out = arrange(messages, keep)
    opening = next((message for message in messages if message.role == "user"), None)
    first = {part.name for part in images_of([opening])} if opening is not None else set()
    names = [part.name for part in images_of(out)]
    assert len(names) == len(set(names))
    assert first <= set(names)
    assert len(set(names) - first) == min(keep, len({part.name for part in images_of(messages)} - first))
    for message in out:
        if isinstance(message, ToolMessage):
            assert message.parts == (message.text,)
        for previous, part in pairwise(parts_of(message)):
            if isinstance(part, ImagePart):
                assert previous == f"{part.ref.name}:"
    assert [message.role for message in out if message.role != "user"] == [
        message.role for message in messages if message.role != "user"
    ]


def sent(store: ImageStore, image: StoredImage, **rules: Any) -> tuple[StoredImage, bytes]:
    out, text = ImageEncoder(store, ImageRules(**rules)).encoded(image)
    return out, base64.b64decode(text, validate=True)


def test_an_image_that_is_not_stored_is_named(store: ImageStore) -> None:
    with pytest.raises(DataError, match="0123456789ab"):
        sent(store, StoredImage("0123456789abcdef" * 4, 1, 1, "image/png"))


@settings(max_examples=200)
@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1, 10**7))
def test_a_size_fits_and_keeps_its_shape(width: int, height: int, most: int) -> None:
    w, h = fit(width, height, most)
    assert 1 <= w <= width
    assert 1 <= h <= height
    assert w * h <= most
    if width * height <= most:
        assert (w, h) == (width, height)


@pytest.mark.parametrize(
    ("most_bytes", "shown", "decoded"),
    [
        # A pixel takes four bytes, so the second picture takes the place of the first.
        (4 * 64 * 64, "aba", "aba"),
        (7 * 64 * 64, "aba", "aba"),
        (8 * 64 * 64, "abab", "ab"),
        # The third picture takes the place of the one that was shown longest ago.
        (8 * 64 * 64, "abacab", "abcb"),
        # A picture above the limit is not cached, so it takes the place of no other.
        (4 * 64 * 64, "aAaAa", "aAA"),
    ],
)
def test_decoded_pictures_are_kept_up_to_their_bytes(
    most_bytes: int, shown: str, decoded: str, store: ImageStore, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = {
        name: store.put_pixels(fakes.pixels(ord(name), (64, 64) if name.islower() else (64, 65))) for name in set(shown)
    }
    names, decodings = {image.sha256[:12]: name for name, image in images.items()}, list[str]()

    def count_decoding(data: bytes, source: str) -> Any:
        decodings.append(names[source])
        return picture_of(data, source)

    monkeypatch.setattr("hybrid.core.images.picture_of", count_decoding)
    pictures = DecodedPictures(store, None, most_bytes)
    for name in shown:
        assert pictures.picture(images[name]).size == (images[name].width, images[name].height)
    assert "".join(decodings) == decoded


def test_pictures_are_decoded_side_by_side(store: ImageStore, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    images = [store.put_pixels(fakes.pixels(number)) for number in range(2)]
    both = threading.Barrier(2)

    def decode_together(data: bytes, source: str) -> Any:
        both.wait(60)
        return picture_of(data, source)

    monkeypatch.setattr("hybrid.core.images.picture_of", decode_together)
    pictures = DecodedPictures(store, None)
    with ThreadPoolExecutor(2) as threads:
        decoded = list(threads.map(pictures.picture, images))
    assert [pictures.picture(image) for image in images] == decoded
