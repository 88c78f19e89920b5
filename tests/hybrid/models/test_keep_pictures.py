"""Tests of the tool pictures that stay in a dialogue (`--keep-pictures`), and of how a removed picture returns."""

import pytest

from hybrid.config import ModelSettings
from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage, ImagePart, Message, ToolCall, ToolMessage, images_of, user_message
from hybrid.core.types import ImageRef, StoredImage
from hybrid.models.images import arrange
from tests.tables import cases


def picture(name: str, number: int) -> ImageRef:
    return ImageRef(name, StoredImage(f"{number:064x}", 9, 9, "image/png"))


def dialogue(last: AssistantMessage | None = None) -> list[Message]:
    """Return a question with two pictures, and three calls that each return a picture; the last result comes last."""
    messages: list[Message] = [user_message(["Which?", picture("img:1", 1), picture("img:2", 2)])]
    for turn in (1, 2, 3):
        messages.append(AssistantMessage("", (ToolCall(f"c{turn}", "crop", {"image": "img:1"}),)))
        messages.append(ToolMessage(f"c{turn}", "crop", ("seen", ImagePart(picture(f"img:1.{turn}", 10 + turn)))))
    return messages if last is None else [*messages, last, ToolMessage("c4", "depth", ("near",))]


def pictures_sent(keep: str, messages: list[Message]) -> list[str]:
    settings = ModelSettings(keep_pictures=keep)
    arranged = arrange(messages, settings.pictures_kept, can_recall=bool(settings.keep_pictures))
    return [ref.name for ref in images_of(arranged)]


@pytest.mark.parametrize(*cases(__file__, "pictures", list))
def test_the_given_pictures_stay_and_of_the_others_those_that_were_chosen_or_named(
    keep: str, after_a_picture: list[str], after_a_text: list[str], after_a_name: list[str]
) -> None:
    values = ["img:1", "img:2"]
    assert pictures_sent(keep, dialogue()) == values + after_a_picture
    other = AssistantMessage("", (ToolCall("c4", "depth", {"image": "img:2"}),))
    assert pictures_sent(keep, dialogue(other)) == values + after_a_text
    in_a_call = AssistantMessage("", (ToolCall("c4", "depth", {"images": ["img:1.1"]}),))
    in_words = AssistantMessage("Look at img:1.1, again.", (ToolCall("c4", "depth", {"image": "img:2"}),))
    assert pictures_sent(keep, dialogue(in_a_call)) == pictures_sent(keep, dialogue(in_words)) == values + after_a_name


def test_a_picture_that_left_is_named_and_says_how_it_comes_back() -> None:
    text = "\n".join(
        message.text for message in arrange(dialogue(), 1, can_recall=True) if isinstance(message, ToolMessage)
    )
    assert "[img:1.1: no longer shown; name it to see it again]" in text
    plain = "\n".join(message.text for message in arrange(dialogue(), 1) if isinstance(message, ToolMessage))
    assert "[img:1.1: no longer shown]" in plain


def test_without_the_option_the_last_eight_stay_and_nonsense_is_refused() -> None:
    assert ModelSettings().pictures_kept == 8
    for wrong in ("some", "-1", "1.5"):
        with pytest.raises(UsageError, match=f"--keep-pictures {wrong}: choose all, latest, asked, or a number"):
            ModelSettings(keep_pictures=wrong)
