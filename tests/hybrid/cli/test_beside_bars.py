"""The texts beside a progress bar while a run goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli._progress import Bars, beside
from hybrid.display.loading import OTHER_BARS, loading, loads
from hybrid.errors import Outage
from hybrid.running.progress import Progress
from hybrid.types import Attempt, Exchange, Kind, Outcome, Prompt, Reply, Usage

Command = Callable[..., Any]


def attempt(*replies: Reply) -> Attempt:
    return Attempt("q", tuple(Exchange(Prompt(("?",), Kind.FREE), reply) for reply in replies), 1.0)


@pytest.mark.parametrize(
    ("so_far", "shown"),
    [
        (Progress(), ""),
        (Progress(Usage(input_tokens=900, output_tokens=99)), "999 tokens"),
        (Progress(Usage(input_tokens=12_345), 2), "12.3k tokens, 2 failed"),
        (Progress(Usage(input_tokens=999_949)), "999.9k tokens"),
        (Progress(Usage(output_tokens=999_950)), "1.00M tokens"),
        (Progress(Usage(input_tokens=1, cost_usd=0.0, tool_faults=1)), "1 tokens, $0.00, 1 tool fault"),
        (Progress(Usage(), 1, 1), "1 retry, 1 failed"),
        (Progress(Usage(tool_faults=1), 0, 12), "12 retries, 1 tool fault"),
        (Progress(Usage(cost_usd=1.239, tool_faults=2)), "$1.24, 2 tool faults"),
    ],
)
def test_what_is_shown(so_far: Progress, shown: str) -> None:
    assert beside(so_far) == shown


def test_questions_add_up_and_one_that_nobody_answered_is_failed_once() -> None:
    used = Usage(input_tokens=5, output_tokens=2, cost_usd=0.5, tool_faults=1)
    lost = Reply("", Outcome.NOT_RECORDED)
    so_far = Progress().with_attempt(attempt(Reply("A", usage=used), Reply("B", usage=used)))
    so_far = so_far.with_attempt(attempt(lost, lost)).with_failure()
    assert so_far.used == used + used
    assert so_far.failed == 2


def test_a_run_shows_its_failed_questions(command: Command, blink: tuple[str, ...], tmp_path: Path, fakes: Any) -> None:
    replies = fakes.blink_replies()
    del replies["val_Jigsaw_2"]
    fakes.recordings(tmp_path / "model", replies)
    ended = command("run", *blink, "--solver", "mllm")
    assert ended.code == 3
    assert "1 failed" in ended.err.split("failed: ")[0]


async def test_an_unfinished_question_is_told_of_too(tmp_path: Path, fakes: Any) -> None:
    from dataclasses import replace

    from hybrid.config import RunConfig
    from hybrid.running.resolve import prepare
    from hybrid.running.run import execute

    model = fakes.recordings(tmp_path / "model", fakes.blink_replies())
    data = fakes.blink_folder(tmp_path / "blink")
    run = prepare(RunConfig("blink", ("mllm",), f"replay:{model}", data=str(data), out=tmp_path / "run"))
    watched = fakes.WatchedModel(run.resources.model, {"val_Jigsaw_1": Outage("gone")})
    run = replace(run, resources=replace(run.resources, model=watched))
    told: list[tuple[str, int]] = []
    await execute(run, lambda *_: None, watch=lambda solver, so_far: told.append((solver, so_far.failed)))
    assert len(told) == 6
    assert told[-1] == ("mllm", 1)


def test_what_is_loaded_stands_in_the_bar_and_other_libraries_draw_none_meanwhile(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.utils import logging

    monkeypatch.delenv(OTHER_BARS, raising=False)
    monkeypatch.setattr(logging, "_tqdm_active", True)
    with Bars() as bars:
        bars("mllm", 0, 4)
        assert "loading" not in capsys.readouterr().err
        with loading("the model hf:tiny"):
            loads("process", ("depth", "detection"))
            assert "mllm:   0%" in (shown := capsys.readouterr().err)
            assert "loading the model hf:tiny, depth, detection]" in shown
            assert not logging.is_progress_bar_enabled()
        assert logging.is_progress_bar_enabled()
        bars("arbiter", 0, 4)
        assert "loading depth, detection]" in capsys.readouterr().err.split("arbiter:")[-1]
        bars.watch("arbiter", Progress(failed=1))
        loads("process", ())
        assert "1 failed]" in (shown := capsys.readouterr().err)
        assert "loading" not in shown.split("arbiter:")[-1]
    with loading("the model hf:tiny"):
        assert logging.is_progress_bar_enabled(), "nothing of ours is shown"
        assert "loading" not in capsys.readouterr().err


def test_who_decides_about_other_bars_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.utils import logging

    monkeypatch.setenv(OTHER_BARS, "0")
    monkeypatch.setattr(logging, "_tqdm_active", True)
    with Bars() as bars, loading("the model hf:tiny"):
        bars("mllm", 0, 4)
        assert logging.is_progress_bar_enabled()
