"""Questions that the pictures do not answer: every tool abstains, and one that makes a claim is detected."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hybrid.core.errors import ToolError
from hybrid.plugins.registry import load
from hybrid.serving.empty_questions import ask_empty, claim_of, empty_questions
from hybrid.tool import Args, BackendCard, Card, Claims, Evidence, Request, Tool

CLASSICAL = (
    "correspondence",
    "depth",
    "jigsaw",
    "localization",
    "motion",
    "reflectance",
    "saliency",
    "segmentation",
    "similarity",
)


@pytest.mark.system
@pytest.mark.parametrize("name", CLASSICAL)
def test_a_tool_claims_nothing_of_pictures_that_show_nothing(name: str) -> None:
    tool: Tool = load("tools", name)
    card = tool.backend("classical")
    assert card is not None
    answers = ask_empty(tool, card.make())
    assert [(answer.name, answer.claim) for answer in answers if answer.claim] == []
    # At least one of the plain noise pictures was answered.
    assert any(answer.refusal is None for answer in answers if answer.name.startswith("noise"))


class Guesser:
    """Always names the first of the requested things."""

    def setup(self, device: str, weights: str | None) -> None:
        """Do nothing, because nothing is loaded."""

    def run(self, requests: Sequence[Request[Any]]) -> list[Evidence]:
        if min(requests[0].images[0].shape[:2]) < 2:
            raise ToolError("guess: too small")
        return [Evidence("The first.", {"best": 0, "same": False}, 0.6) for _ in requests]


class GuessArgs(Args):
    """No arguments."""


@pytest.mark.parametrize(("claims", "claimed"), [(Claims(("best",)), 32), (Claims(("same",)), 0), (Claims(()), None)])
def test_a_guess_is_a_fault(claims: Claims, claimed: int | None) -> None:
    card = Card("guess", "s" * 30, "l" * 30, (BackendCard("classical", "1", Guesser, "b" * 20),))
    answers = ask_empty(Tool(card, GuessArgs, claims=claims), Guesser())
    assert [bool(answer.claim) for answer in answers].count(True) == (claimed or 0)
    assert bool(answers) == (claimed is not None)
    assert [answer.name for answer in answers if answer.refusal] == ([] if claimed is None else ["1 x 1 px"])


@pytest.mark.parametrize(
    ("value", "claimed"),
    [(0, True), (0.0, True), (False, False), (None, False), ([], False), ("A", True), (True, True)],
)
def test_an_index_of_zero_is_a_claim_and_false_is_none(value: Any, claimed: bool) -> None:
    assert (claim_of(Claims(("best",)), Evidence("", {"best": value}, 0.4)) is not None) is claimed


def test_without_claims_a_confidence_above_a_half_is_one() -> None:
    assert claim_of(None, Evidence("", {}, 0.5)) is None
    assert claim_of(None, Evidence("", {}, 0.51)) == "an answer with confidence 0.51"


@pytest.mark.system
def test_the_questions_hold_no_answer() -> None:
    cases = dict(empty_questions(load("tools", "depth")))
    assert {"flat grey", "noise 1", "1 x 1 px", "2 x 2 px", "all points at one place"} <= cases.keys()
    tiny = cases["1 x 1 px"]
    assert tiny.images[0].shape == (1, 1, 3)
    points = tiny.args["points"]
    assert isinstance(points, list)
    assert all(0 <= point["x"] < 1 and 0 <= point["y"] < 1 for point in points)
    same = cases["all points at one place"].args["points"]
    assert isinstance(same, list)
    assert len({(point["x"], point["y"]) for point in same}) == 1
    assert len({point["label"] for point in same}) == len(same) > 1
    pair = dict(empty_questions(load("tools", "similarity")))
    first, second, *_ = pair["noise 1"].images
    assert not np.array_equal(first, second)
    first, second, *_ = pair["the same picture"].images
    assert np.array_equal(first, second)
