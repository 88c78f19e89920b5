"""Tests of whether two questions are the same, part by part, and of the names under which solvers are compared."""

from dataclasses import replace
from typing import Any

import pytest

from hybrid.core.types import BrokenQuestion, Kind, Question, StoredImage
from hybrid.scoring.pairing import find_mismatch

IMAGE, OTHER = (StoredImage(digit * 64, 4, 4, "image/png") for digit in "ab")
WHOLE = Question("val_1", "Jigsaw", (IMAGE,), "Which  piece Fits?", Kind.CHOICE, ("left", "right"), "(A)")
BROKEN = BrokenQuestion("val_1", "Jigsaw", "no such image")


@pytest.mark.parametrize(("a", "b"), [(BROKEN, WHOLE), (WHOLE, BROKEN), (BROKEN, BROKEN)])
def test_a_broken_question_is_known_by_its_task(a: Any, b: Any) -> None:
    assert find_mismatch(a, b) is None
    assert find_mismatch(a, replace(b, task="Counting")) == "task"
