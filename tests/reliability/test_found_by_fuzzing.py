"""Defects found by fuzzing, each with its input or a smaller one."""

from pathlib import Path

import pytest

from hybrid.core.errors import UsageError
from hybrid.plugins.prompt_texts import read_texts


def test_prompts_that_are_no_text_are_refused_by_name(tmp_path: Path) -> None:
    actual, reference = tmp_path / "texts.toml", tmp_path / "prompts.toml"
    actual.write_text('disclaimer = "Look."\n')
    reference.write_bytes(b'[blink]\ndisclaimer = "\xff"\n')
    with pytest.raises(UsageError, match=r"--prompts .*prompts\.toml: .*can't decode"):
        read_texts(actual, reference)
