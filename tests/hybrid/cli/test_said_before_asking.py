"""Wrong values are reported as usage errors of one line before anything is asked."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import UsageError
from hybrid.serving.loader import refuse_absent
from tests.finished_runs import Command, Words
from tests.tables import cases


@pytest.mark.system
def test_a_device_that_is_not_here_is_refused_before_anything_is_asked(
    command: Command, blink: Words, tmp_path: Path
) -> None:
    import torch

    text = "hybrid: --device cuda:64: torch sees n"
    if not torch.cuda.is_available():
        text = "hybrid: --device cuda:64: torch sees no CUDA device on this machine\n"
    for words in (("run", *blink), ("tools", "run", "crop", __file__), ("tools", "check", "markers")):
        assert command(*words, "--device", "cuda:64", code=2).err.startswith(text)
    assert not (tmp_path / "run").exists()
    dry = command("run", *blink, "--device", "cuda:64", "--dry-run")
    assert (dry.code, "missing: --device cuda:64: torch sees n" in dry.out) == (2, True)
    with pytest.raises(UsageError, match=r"^--device gpu: torch does not know this device$"):
        refuse_absent("gpu")
    with pytest.raises(UsageError, match=r"^--device xpu:9: this machine has no such device$"):
        refuse_absent("xpu:9")
    refuse_absent("auto")


@pytest.mark.parametrize(*cases(__file__, "test_texts_that_would_replace_nothing"))
def test_texts_that_would_replace_nothing(
    command: Command, blink: Words, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "texts.toml").write_text(text)
    result = command("run", *blink, "--prompts", tmp_path / "texts.toml", code=2)
    assert result.err.startswith(f"hybrid: --prompts {tmp_path / 'texts.toml'}: {message}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("words", [("score",), ("compare",), ("report", "-o", "site")])
def test_a_group_that_no_question_has(command: Command, tmp_path: Path, synthetic_runs: Any, words: Words) -> None:
    run = synthetic_runs.write(tmp_path, "mvp_bench", size=2)
    result = command(*words, run.real, "--by", "granularity", code=2)
    assert result.err.splitlines()[-1].startswith(
        "hybrid: --by granularity: these questions have no such group; available"
    )
    assert command(*words, run.real, "--by", "level").code == 0
