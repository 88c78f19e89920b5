"""A run in batches that is killed and given again."""

from pathlib import Path

import pytest

from bench._loop_questions import write_questions
from bench.batches import batched


@pytest.mark.system
def test_a_run_that_was_killed_pays_nothing_twice_and_loses_no_reply(tmp_path: Path) -> None:
    row = batched("kills", "openai:mock", write_questions(tmp_path, 6), 6, kills=1)
    # The moment is drawn: a fast machine may have ended before.
    assert (row.answered, row.sent_twice, row.same_replies) == (6, 0, True)
