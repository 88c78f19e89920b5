"""A run with a server: answering models are counted, and a model that cannot be reached ends the run immediately."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hybrid
from bench._chat_server import framed, on_thread, sight
from hybrid.config import ModelSettings, RunConfig, RunLimits, ServiceOptions
from hybrid.core.errors import HybridError


@contextmanager
def answering(reply: Any, status: str = "200 OK", *, probes: bool = True) -> Iterator[str]:
    """Address of a server that gives the same reply to every question."""

    def answer(_: bytes, body: bytes) -> bytes:
        seen = sight(body) if probes else None
        return framed(json.dumps(reply).encode(), status) if seen is None else seen

    with on_thread(answer) as url:
        yield f"{url}/v1"


def completion(model: str, usage: Any = None) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "Answer: (A)"}, "finish_reason": "stop"}
    return {"model": model, "choices": [choice], "usage": usage}


def ask(url: str, out: Path, *, limit: int = 2, **more: Any) -> None:
    settings = ModelSettings(base_url=url, retries=0)
    request: dict[str, Any] = {"data": "sample", "tasks": ("Jigsaw",), "limit": limit, "model_settings": settings}
    config = RunConfig("blink", ("specialist", "mllm"), model="openai:k", **request, **more)
    hybrid.run(RunConfig(**{**vars(config), "service": ServiceOptions("classical"), "out": out}))


def test_the_models_that_answered_are_counted_over_commands_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(completion("k-mini")) as url:
        ask(url, tmp_path)
        words = "2 of 2 replies came from another model than openai:k: the server reports 'k-mini'"
        assert words in capsys.readouterr().err
    with answering(completion("k-2026-01-02")) as url:
        ask(url, tmp_path, limit=4)
    counts = {"k-2026-01-02": 2, "k-mini": 2}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["answered_by"] == {"mllm": counts}


def test_a_wrong_key_ends_the_run_before_the_specialist_starts(tmp_path: Path) -> None:
    wrong = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
    with answering(wrong, "401 Unauthorized", probes=False) as url, pytest.raises(HybridError, match="check the key"):
        ask(url, tmp_path)
    assert not (tmp_path / "specialist" / "attempts.jsonl").exists()


def test_a_budget_of_tokens_ends_a_run_whose_replies_have_no_counts(tmp_path: Path) -> None:
    with (
        answering(completion("k")) as url,
        pytest.raises(HybridError, match="without token counts, so run_max_tokens=1000 cannot be enforced"),
    ):
        ask(url, tmp_path, run_limits=RunLimits(tokens=1000))
    assert not (tmp_path / "specialist" / "attempts.jsonl").exists()
