import base64
import io
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from hybrid.config import ModelSettings
from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    SentImage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    images_of,
    parts_of,
    user_message,
)
from hybrid.models.images import SMALL_BYTES, ImageEncoder, ImageRules, arrange, fit
from hybrid.models.options import connection, image_rules
from hybrid.models.providers import PROVIDERS
from hybrid.types import ImageRef, StoredImage


def ref(name: str, sha: str) -> ImageRef:
    return ImageRef(name, StoredImage(sha * 64, 4, 3, "image/png"))


def result(number: int, *images: ImageRef, failed: bool = False) -> ToolMessage:
    return ToolMessage(f"c{number}", "crop", (f"finding {number}", *map(ImagePart, images)), failed)


def call(*numbers: int) -> AssistantMessage:
    return AssistantMessage("", tuple(ToolCall(f"c{n}", "crop", {}) for n in numbers))


def plain(messages: list[Message]) -> list[tuple[str, list[str]]]:
    """Role and parts, images as `<name>`."""
    return [
        (message.role, [part if isinstance(part, str) else f"<{part.ref.name}>" for part in parts_of(message)])
        for message in messages
    ]


def test_images_of_a_batch_of_results_follow_it_in_one_user_message() -> None:
    messages: list[Message] = [
        SystemMessage("Be brief."),
        user_message(["Which?", ref("img:1", "a"), ref("img:2", "b")]),
        call(1, 2),
        result(1, ref("img:1.1", "c")),
        result(2, ref("img:2.1", "d"), failed=True),
        call(3),
        result(3),
        user_message(["Answer now."]),
    ]
    assert plain(arrange(messages, 8)) == [
        ("system", ["Be brief."]),
        ("user", ["Which?", "img:1:", "<img:1>", "img:2:", "<img:2>"]),
        ("assistant", [""]),
        ("tool", ["finding 1\n[img:1.1: attached below]"]),
        ("tool", ["Error: finding 2\n[img:2.1: attached below]"]),
        ("user", ["img:1.1:", "<img:1.1>", "img:2.1:", "<img:2.1>"]),
        ("assistant", [""]),
        ("tool", ["finding 3"]),
        ("user", ["Answer now."]),
    ]


def test_an_image_made_without_a_label_goes_out_alone() -> None:
    opening = user_message(["Which?", ref("img:1", "a"), ref("img:2", "b")], labelled=False)
    messages: list[Message] = [opening, call(1), result(1, ref("img:1.1", "c"), ref("img:1", "a"))]
    assert plain(arrange(messages, 8)) == [
        ("user", ["Which?", "<img:1>", "<img:2>"]),
        ("assistant", [""]),
        ("tool", ["finding 1\n[img:1.1: attached below]\n[img:1: shown above]"]),
        ("user", ["img:1.1:", "<img:1.1>"]),
    ]


def test_a_user_message_after_a_batch_takes_its_images() -> None:
    messages: list[Message] = [
        user_message(["Which?"]),
        call(1),
        result(1, ref("img:1.1", "c")),
        user_message(["Answer now."]),
    ]
    assert plain(arrange(messages, 8))[-1] == ("user", ["img:1.1:", "<img:1.1>", "Answer now."])


def test_the_opening_and_the_last_images_stay() -> None:
    messages: list[Message] = [user_message([ref("img:1", "a"), ref("img:2", "b")])]
    for number in range(3):
        messages += [call(number), result(number, ref(f"img:1.{number}", f"{number}"))]
    out = arrange(messages, 1)
    assert [part.name for part in images_of(out)] == ["img:1", "img:2", "img:1.2"]
    assert ("tool", ["finding 0\n[img:1.0: no longer shown]"]) in plain(out)
    assert [part.name for part in images_of(arrange(messages, 0))] == ["img:1", "img:2"]


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
        # The question itself may show one picture under two names: that may be what it asks about.
        ("user", ["Which?", "img:1:", "<img:1>", "img:2:", "<img:2>", "[img:1: shown above]"]),
        ("assistant", [""]),
        (
            "tool",
            ["\n".join(TWINS)],
        ),
        ("user", ["img:1.2:", "<img:1.2>"]),
    ]


messages_of = st.lists(
    st.tuples(st.sampled_from("hat"), st.lists(st.integers(0, 5), max_size=3)), min_size=1, max_size=8
)


@given(messages_of, st.integers(0, 6))
def test_whatever_the_conversation(turns: list[tuple[str, list[int]]], keep: int) -> None:
    made: list[Message] = []
    for number, (kind, shas) in enumerate(turns):
        refs = [ref(f"img:{sha}", str(sha)) for sha in shas]
        made.append({"h": user_message(["text", *refs]), "a": call(number), "t": result(number, *refs)}[kind])
    out = arrange(made, keep)
    opening = next((message for message in made if message.role == "user"), None)
    first = {part.name for part in images_of([opening])} if opening is not None else set()
    shown = [part.name for part in images_of(out)]
    assert len(shown) == len(set(shown))
    assert first <= set(shown)
    assert len(set(shown) - first) == min(keep, len({part.name for part in images_of(made)} - first))
    for message in out:
        if isinstance(message, ToolMessage):
            assert message.parts == (message.text,)
        for before, part in pairwise(parts_of(message)):
            if isinstance(part, ImagePart):
                assert before == f"{part.ref.name}:"
    assert [message.role for message in out if message.role != "user"] == [
        message.role for message in made if message.role != "user"
    ]


def stored(store: ImageStore, form: str, size: tuple[int, int] = (40, 30), **options: Any) -> StoredImage:
    pixels = np.random.default_rng(3).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form, **options)
    return store.put(buffer.getvalue(), form)


def sent(store: ImageStore, image: StoredImage, **rules: Any) -> tuple[StoredImage, bytes]:
    out, text = ImageEncoder(store, ImageRules(**rules)).encoded(image)
    return out, base64.b64decode(text, validate=True)


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_original_bytes_go_out_as_they_came(store: ImageStore, form: str) -> None:
    image = stored(store, form)
    assert sent(store, image, max_pixels=1200) == (image, store.read(image))


def test_only_what_a_provider_cannot_take_is_converted(store: ImageStore) -> None:
    image = stored(store, "WEBP", lossless=True)
    converted, data = sent(store, image)
    assert (converted.media_type, data) == ("image/png", store.read(converted))
    assert np.array_equal(store.pixels(converted), store.pixels(image))
    assert sent(store, image, media_types=frozenset({"image/webp"}))[0] == image


def test_what_is_quick_is_in_memory_when_it_is_asked_for(store: ImageStore) -> None:
    image, large = stored(store, "PNG"), stored(store, "PNG", (700, 600))
    encoder = ImageEncoder(store, ImageRules())
    assert encoder.at_once(image)
    store.path(image.sha256).unlink()
    assert encoder.encoded(image)[0] == image
    assert len(store.read(large)) > SMALL_BYTES
    assert not encoder.at_once(large)
    assert not ImageEncoder(store, ImageRules(max_pixels=10)).at_once(image)


def test_large_images_are_scaled_and_the_size_sent_is_told(store: ImageStore) -> None:
    image = stored(store, "PNG", (400, 300))
    scaled, _ = sent(store, image, max_pixels=1200)
    assert SentImage("img:1", image, scaled).json() == {
        "name": "img:1",
        "sha256": image.sha256,
        "sent_sha256": scaled.sha256,
        "width": 40,
        "height": 30,
    }


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


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google_genai", "ollama"])
@pytest.mark.parametrize("form", ["WEBP", "GIF", "BMP", "JPEG", "PNG"])
def test_a_server_elsewhere_is_sent_jpeg_and_png_alone(
    store: ImageStore, form: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, row = stored(store, form), PROVIDERS[provider]
    for name in row.key_env:
        monkeypatch.setenv(name, "k")

    def sent_as(base_url: str | None) -> StoredImage:
        settings = ModelSettings(base_url=base_url)
        return ImageEncoder(store, image_rules(row, connection(row, settings), settings)).encoded(image)[0]

    assert sent_as("http://127.0.0.1:9/v1").media_type in ("image/jpeg", "image/png")
    assert (sent_as(None) == image) is (image.media_type in row.images)
