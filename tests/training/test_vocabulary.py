"""The tokenizer writes any text, keeps copied text intact, and its template writes calls that can be read."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.models.providers.embedded import CHECKPOINT
from training.lessons import rendered
from training.vocabulary import ASSISTANT, END, tokenizer

# transformers takes seconds to load in each process.
pytestmark = pytest.mark.system

TEXTS = ["Which box is it? [0.13, 0.38] (A) the green cube\n", "box A is the most salient, confidence 0.52."] * 3


@pytest.fixture(scope="module")
def words() -> Any:
    return tokenizer(TEXTS, 1200)


@given(st.text())
def test_any_text_can_be_written_and_read(words: Any, text: str) -> None:
    assert words.decode(words(text, add_special_tokens=False)["input_ids"]) == text


def test_numbers_letters_and_deciding_words_are_the_same_token_everywhere(words: Any) -> None:
    for unit, contexts in {
        "0.13": ("[0.13, 1", '"x0": 0.13}', "at 0.13"),
        "B": ("(B) ", "box B is", "[B]", "Answer: (B)", "Answer: ABC", "Answer: CAB", "B 0.13"),
        "green": ("the green cube", '"green cube"', "greens"),
    }.items():
        (token,) = words(unit, add_special_tokens=False)["input_ids"]
        for context in contexts:
            assert token in words(context, add_special_tokens=False)["input_ids"]


@given(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1) | st.integers() | st.booleans() | st.text(), max_size=3))
def test_a_call_in_the_template_reads_back_with_two_decimals(arguments: dict[str, Any]) -> None:
    function = {"name": "crop", "arguments": {"image": "img:1", "boxes": [arguments]}}
    turn = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
    text = rendered({"turns": [{"role": "user", "content": "Go."}, turn], "tools": ["crop"]})
    message = text.partition(ASSISTANT)[2].removesuffix(END)
    (block,) = re.findall(r"<tool_call>(.*?)</tool_call>", message, re.DOTALL)
    call = json.loads(block)
    expected = {key: round(value, 2) if isinstance(value, float) else value for key, value in arguments.items()}
    assert call["name"] == "crop"
    assert call["arguments"]["boxes"] == [expected]


@given(st.text())
def test_text_alone_reads_the_same_as_a_string_and_as_a_list_of_one_part(text: str) -> None:
    forms = (text, [{"type": "text", "text": text}])
    assert len({rendered({"turns": [{"role": "tool", "content": form}], "tools": []}) for form in forms}) == 1


def test_the_checkpoint_has_this_template() -> None:
    from training.vocabulary import TEMPLATE

    assert (CHECKPOINT / "chat_template.jinja").read_text() == TEMPLATE
    assert json.loads((CHECKPOINT / "config.json").read_text())["architectures"] == ["LlavaForConditionalGeneration"]
