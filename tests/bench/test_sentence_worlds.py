"""Two draws of each simulated case contain no false claim, and a case would detect a violation of what it tests."""

from pathlib import Path

import numpy as np
import pytest

from bench import _review_worlds as review
from bench import _sentence_worlds as worlds
from hybrid.scoring.sections import effects

# `EXACT` leaves out the cases with "5 %" in their names: some of their draws contradict the interval by design.
KNOWN = {**worlds.WORLDS, **review.REVIEW_WORLDS}
EXACT = [name for name in KNOWN if "5 %" not in name]


@pytest.mark.system
@pytest.mark.parametrize("name", EXACT)
def test_a_world_is_not_contradicted(name: str) -> None:
    assert worlds.false_in(name, 2, 0, KNOWN) == 0


def test_a_world_notices_what_it_is_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "lacks_pictures", lambda folder, solver: False)
    assert worlds.no_form_is_tested_without_pictures(tmp_path, np.random.default_rng(0))
