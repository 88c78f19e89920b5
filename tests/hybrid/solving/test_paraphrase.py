"""Tool output in other words: every number and name stays, for the known answers of every tool."""

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from hybrid.core.coordinates import span_px, unmarked
from hybrid.core.types import Finding
from hybrid.plugins.registry import load, names
from hybrid.solving.coordinates import frame_named
from hybrid.solving.paraphrase import UNCHANGED, paraphrased
from hybrid.tool import Evidence, Request

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# Single capital letters label points, boxes and choices; quoted text is a name.
LABEL = re.compile(r"(?<![\w'])[A-Z](?![\w'])|REF|'[^']*'")
TOOLS = sorted(names("tools"))
# Largest number of known answers that are checked for each tool.
MOST_CASES = 1


def finding_of(evidence: Evidence) -> Finding:
    return Finding(evidence.text, evidence.data, evidence.confidence, "classical", "1", places=evidence.places)


def answers_of(name: str) -> list[tuple[Finding, dict[str, Any]]]:
    """Known answers of a tool's weight-free backend, and its output for noise."""
    tool = load("tools", name)
    card = tool.backend("classical")
    if card is None:
        return []
    backend: Any = card.make()
    backend.setup("cpu", None)
    rng = np.random.default_rng(0)
    cases = [check.pose() for check in tool.checks[:MOST_CASES]]
    if tool.claims is not None and tool.claims.pose is not None:
        cases.append(tool.claims.pose(lambda h, w: rng.integers(0, 255, (h, w, 3)).astype(np.uint8)))
    answers = []
    for case in cases:
        request = Request(case.images, tool.parse(case.args), case.needs)
        answers.append((finding_of(backend.run([request])[0]), dict(case.args)))
    return answers


def tokens(text: str) -> tuple[Counter[str], Counter[str]]:
    return Counter(NUMBER.findall(text)), Counter(LABEL.findall(text))


@pytest.mark.parametrize("name", TOOLS)
def test_the_wording_of_a_tool_holds_no_number(name: str) -> None:
    tool = load("tools", name)
    phrases = [phrase for pair in tool.wording for phrase in pair]
    assert phrases, "every tool of the project has a second wording"
    for phrase in phrases:
        assert phrase
        assert not re.search(r"\d", phrase), phrase
    unique = [pair for pair in tool.wording if all(pair != other for other in load("tools", TOOLS[0]).wording)]
    assert unique or name == TOOLS[0]


@pytest.mark.parametrize("name", TOOLS)
def test_known_answers_carry_the_same_numbers_and_names(name: str) -> None:
    tool = load("tools", name)
    for finding, args in answers_of(name):
        other = paraphrased(finding, tool.wording, args)
        assert other.text != finding.text
        assert tokens(other.text) == tokens(finding.text)
        assert (other.data, other.confidence, other.images) == (finding.data, finding.confidence, finding.images)
        # The marks of coordinates are at the same numbers.
        first, second = ([of.text[p.start : p.end] for p in of.places] for of in (finding, other))
        assert sorted(first) == sorted(second)
        assert [(place.axis, place.image) for place in other.places] == [(p.axis, p.image) for p in finding.places]


def reword(text: str, wording: Any, **more: Any) -> Finding:
    plain, places = unmarked(text)
    return paraphrased(
        Finding(plain, more.get("data", {}), 1.0, "b", "1", places=places), wording, more.get("args", {})
    )


def test_names_stay_as_they_are() -> None:
    wording = (("is nearest", "is closest"), ("black box", "dark box"))
    assert reword("The black box is nearest.", wording).text == "The dark box is closest."
    assert (
        reword("The black box is nearest.", wording, args={"names": ["black box"]}).text == "The black box is closest."
    )
    assert (
        reword("'is nearest' is nearest", wording, data={"t": [{"text": "is nearest"}]}).text.count("is nearest") == 2
    )
    # A word that only begins or ends with a phrase is another word.
    assert reword("This is nearest.", (("is nearest", "x"),)).text == "This x."
    assert reword("axis nearest", (("is nearest", "x"),)).text == "axis nearest"
    assert reword("unsure, unsureness", (("unsure", "uncertain"),)).text == "uncertain, unsureness"
    # A phrase that ends with punctuation may precede a word.
    assert reword("at: here", (("at: ", "by "),)).text == "by here"


def test_the_first_of_two_phrases_at_one_place_counts() -> None:
    assert reword("most salient thing", (("most salient", "a"), ("most", "b"))).text == "a thing"
    assert reword("most other", (("most salient", "a"), ("most", "b"))).text == "b other"


def test_coordinates_are_still_said_in_the_frame_of_the_model() -> None:
    from hybrid.core.types import Box, ImageRef, StoredImage

    ref = ImageRef("img:1", StoredImage("0" * 64, 1000, 500, "image/png"))
    other = reword(f"The box is at {span_px(Box(100, 50, 200, 100))} of image 1.", (("is at", "was found to be at"),))
    sentence = frame_named("fractions").say(other.text, other.places, [ref])
    assert sentence == "The box was found to be at x 0.1-0.2, y 0.1-0.2 of image 1."


def test_a_tool_without_a_second_wording_says_the_same() -> None:
    assert reword("Red things: 3.", ()).text == "Red things: 3."


def test_an_output_that_keeps_its_words_is_marked() -> None:
    wording = (("is red", "looks red"),)
    assert reword("It is red.", wording).version == "1"
    # An output stays unchanged if its data repeat its sentence, it contains no phrase, or there is no second wording.
    assert reword("It is red.", wording, data={"sentence": "It is red."}).version == f"{UNCHANGED}1"
    assert reword("It is blue.", wording).version == f"{UNCHANGED}1"
    assert reword("It is red.", ()).version == f"{UNCHANGED}1"
    assert reword("", wording).version == "1"
