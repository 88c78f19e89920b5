"""Questions about named things: the stated answer equals what the pixels show, detected by colour alone."""

import numpy as np
import pytest

from hybrid.samples.named import SCENES
from hybrid.samples.textures import NAMED_COLOURS

DIRECTIONS = np.array([np.subtract(rgb, np.mean(rgb)) for rgb in NAMED_COLOURS.values()], np.float32)
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_has_as_many_choices_as_it_says_and_the_asked_answer(scene: str) -> None:
    for answer in range(SCENES[scene].choices):
        sample = SCENES[scene].make(np.random.default_rng([0, 1]), np.random.default_rng([0, 2]), answer)
        assert sample.answer == answer
        assert len(set(sample.choices)) == SCENES[scene].choices
        assert sample.question.endswith("?")
