"""Messages refer to images, and tool outputs have the text that a model should read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.messages import AssistantMessage, ImagePart, images_of, user_message
from hybrid.core.types import Box, Finding, ImageRef, StoredImage
from hybrid.solving.evidence import finding_parts

STORED = st.builds(
    StoredImage,
    st.text("0123456789abcdef", min_size=64, max_size=64),
    st.integers(1, 9999),
    st.integers(1, 9999),
    st.sampled_from(["image/png", "image/jpeg"]),
)
REFS = st.builds(ImageRef, st.from_regex(r"img:[1-9](\.[1-9])?", fullmatch=True), STORED)
PICTURE = StoredImage("ab" * 32, 360, 240, "image/png")


@given(st.lists(st.one_of(st.text(min_size=1), REFS), max_size=6))
def test_a_user_message_keeps_the_order(parts: list[Any]) -> None:
    message = user_message(parts)
    assert images_of([message]) == tuple(part for part in parts if isinstance(part, ImageRef))
    assert message.text == "\n".join(part for part in parts if isinstance(part, str))


def test_a_message_can_neither_be_changed_nor_grow() -> None:
    message: Any = AssistantMessage("said")
    for name in ("text", "note"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(message, name, "other")


OVERLAY = ImageRef("img:1.1", PICTURE, "img:1")
CROP = ImageRef("img:1.2", PICTURE, "img:1", Box(10, 20, 50, 60.5), 3.0)
FOUND = Finding("A is nearer.\nconfidence 0.93", {"nearer": "A"}, 0.93, "classical", "1", (OVERLAY, CROP))


def render_finding(show: Any, finding: Finding = FOUND) -> tuple[list[str], list[str]]:
    parts = finding_parts(finding, ["img:1"], show)
    return str(parts[0]).split("\n"), [part.ref.name for part in parts[1:] if isinstance(part, ImagePart)]


def test_text_alone_names_no_picture_and_pictures_alone_say_nothing_of_the_finding() -> None:
    assert render_finding("text") == (["on img:1:", "A is nearer.", "confidence 0.93"], [])
    lines, pictures = render_finding("image")
    assert (lines[0], len(lines), pictures) == ("on img:1:", 3, ["img:1.1", "img:1.2"])
    assert "nearer" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("show", "finding"),
    [
        ("image", Finding("Only words.", {}, 0.5, "classical", "1")),
        ("text", Finding("", {}, 0.5, "classical", "1", (OVERLAY,))),
        ("both", Finding("", {}, 0.5, "classical", "1")),
    ],
)
def test_a_finding_with_nothing_to_show_says_so(show: Any, finding: Finding) -> None:
    lines, pictures = render_finding(show, finding)
    assert (lines[-1], pictures) == ("the tool returned nothing that can be shown", [])


def test_data_and_confidence_never_reach_the_model() -> None:
    assert finding_parts(Finding("Said.", {"secret": 41}, 0.123, "learned", "9"), [], "both") == ("Said.",)
