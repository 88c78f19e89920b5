"""A run in batches that is killed and then started again with the same command."""

from pathlib import Path

import pytest

from bench._loop_questions import write_questions
from bench.batches import batched


@pytest.mark.system
def test_a_run_that_was_killed_pays_nothing_twice_and_loses_no_reply(tmp_path: Path) -> None:
    row = batched("kills", "openai:mock", write_questions(tmp_path, 6), 6, kills=1)
    # The run is killed at a random moment: on a fast machine it may already have finished.
    assert (row.answered, row.sent_twice, row.same_replies) == (6, 0, True)
