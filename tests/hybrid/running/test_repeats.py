"""`--setting repeats=K` gives separate folders and seeds, can be resumed and extended, and is refused if it has no
effect.
"""

from dataclasses import replace

import pytest

from hybrid.config import ModelSettings, RunConfig
from hybrid.core.errors import UsageError
from hybrid.running.resolve import prepare


@pytest.fixture
def config(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    warm = ModelSettings(base_url="http://127.0.0.1:9/v1", temperature=1.0, seed=3)
    solvers = ("mllm", "chance", "specialist")
    return replace(config, solvers=solvers, model="openai:m", model_settings=warm, repeats=2, seed=1)


def test_a_repetition_is_no_word_of_the_command_line(config: RunConfig) -> None:
    with pytest.raises(UsageError, match=r"--solver mllm@3: .* --setting repeats=3 and --solver mllm$"):
        prepare(replace(config, solvers=("mllm@3",)))
