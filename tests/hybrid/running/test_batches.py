"""Runs in batches, with a server that has the three documented APIs, get the same replies and pay for nothing twice."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench._batch_server import BatchServer, Behaviour, batch_server
from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import ModelSettings, Price, RunConfig, RunLimits
from hybrid.core.errors import UsageError
from hybrid.log.batches import read_batches
from hybrid.log.folder import RunFolder
from hybrid.models.base import ModelRefused
from hybrid.models.batch_apis import BatchRules
from hybrid.models.batching.client import batch_api
from hybrid.running.batching import cancel_batches
from hybrid.running.estimate import estimate
from hybrid.running.resolve import prepare
from hybrid.running.run import RunEnd, run_until_complete
from hybrid.scoring.runs import score_run
from tests.tables import cases

APIS = {"openai:m": "/v1", "anthropic:m": "", "google_genai:m": ""}
# Price of a request to the server at the ordinary rate.
USD = 1100 * 10 / 1e6


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.setenv(f"{name}_API_KEY", f"{name.lower()}-key-12345678")


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """Return the config of a run on six generated questions.

    The model is asked twice per question, with a call to `crop` in between.
    """
    settings = ModelSettings(batch=True, price=Price(10, 10))
    out = tmp_path / "run"
    return RunConfig(
        "blink",
        ("controller",),
        model="openai:m",
        data="sample",
        limit=6,
        model_settings=settings,
        out=out,
        tools=("crop",),
    )


def at(config: RunConfig, server: BatchServer, **changed: Any) -> RunConfig:
    url = f"{server.url}{APIS[config.model or '']}"
    return replace(config, model_settings=replace(config.model_settings, **{"base_url": url, **changed}))


def go(config: RunConfig, names: list[str] | None = None) -> RunEnd:
    def watch(_: str, so_far: Any) -> None:
        if names is not None and so_far.waits not in names:
            names.append(so_far.waits)

    return asyncio.run(run_until_complete(prepare(config), lambda *_: None, lambda _: None, watch=watch))


def replies(config: RunConfig, solver: str = "controller") -> dict[str, tuple[str, ...]]:
    assert config.out is not None
    attempts = RunFolder(config.out).attempts(solver)
    return {attempt.id: tuple(exchange.reply.text for exchange in attempt.exchanges) for attempt in attempts}


def sizes(server: BatchServer) -> list[int]:
    return [len(batch.requests) for batch in server.batches.values()]


@pytest.mark.system
@pytest.mark.parametrize("model", APIS)
def test_a_batched_run_asks_the_same_and_pays_half(config: RunConfig, model: str, tmp_path: Path) -> None:
    config = replace(config, model=model)
    alone = replace(config, out=tmp_path / "alone")
    names: list[str] = []
    with batch_server() as server:
        assert go(at(alone, server, batch=False)).answered == 6
        assert go(at(config, server), names).answered == 6
        assert sizes(server) == [6, 6]
        assert server.accepted == server.singles, "the same requests, each once"
        assert (server.files, server.uploads) == ({}, 0 if model.startswith("anthropic") else 2), "none is left there"
    assert replies(config) == replies(alone)
    item, other = (RunFolder(entry.out or Path()).manifest for entry in (config, alone))
    assert item["identity"] == other["identity"]
    assert item["connection"][0]["batch"] == {"wait": "10m", "tail": 0}
    usage = [
        RunFolder(value.out or Path()).attempts("controller")[0].exchanges[0].reply.usage for value in (config, alone)
    ]
    assert [other_item.cost_usd for other_item in usage] == pytest.approx([USD, 2 * USD])
    assert usage[0].input_tokens == usage[1].input_tokens
    assert any(line.startswith("round 2, 0 of 6 back, oldest batch since ") and line.endswith(" s") for line in names)
    scored = [score_run(RunFolder(item_value.out or Path()), ScoreOptions())[0] for item_value in (config, alone)]
    assert [other_entry.in_batches for other_entry in scored] == [True, False]


@pytest.mark.parametrize("model", APIS)
@pytest.mark.parametrize("fate", ["errored", "expired", "lost"])
def test_each_request_that_failed_is_asked_again(config: RunConfig, model: str, fate: str) -> None:
    behaviour = Behaviour(
        looks=0, fate=lambda batch, place: fate if (batch, place) in ((0, 1), (0, 4)) else "succeeded"
    )
    config = replace(config, model=model, solvers=("mllm",))
    with batch_server(behaviour) as server:
        assert go(at(config, server)).failures == ()
        assert sizes(server) == [6, 2]
        assert sorted(server.accepted.values()) == [1, 1, 1, 1, 2, 2]
    steps = [attempt.exchanges[0].reply.steps for attempt in RunFolder(config.out or Path()).attempts("mllm")]
    assert sum(step.data.get("retries", 0) for item in steps for step in item if step.kind == "model") == 2


def test_a_batch_without_results_of_the_run_is_named_as_what_it_is(
    config: RunConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    behaviour = Behaviour(looks=0, fate=lambda batch, place: "lost" if batch == 0 else "succeeded")
    with batch_server(behaviour) as server:
        assert go(replace(at(config, server), solvers=("mllm",))).failures == ()
        assert sizes(server) == [6, 6]
    err = " ".join(capsys.readouterr().err.split())
    assert "contain no request of this run: its 6 requests count as paid, 6 are sent again" in err
    assert "no longer has" not in err


@pytest.mark.parametrize("ends", ["expired", "cancelled"])
def test_of_a_batch_that_ends_early_what_is_done_is_used(config: RunConfig, ends: str) -> None:
    behaviour = Behaviour(looks=0, ends=lambda number: ends if number == 0 else "completed")
    with batch_server(behaviour) as server:
        assert go(replace(at(config, server), solvers=("mllm",))).failures == ()
        assert sizes(server) == [6, 3]


def test_a_request_that_fails_every_time_ends_as_its_single_form_would(config: RunConfig) -> None:
    bad: set[bytes] = set()

    def fate(batch: int, place: int) -> str:
        body = list(server.batches.values())[batch].requests[place][1]
        if (batch, place) == (0, 2):
            bad.add(body)
        return "errored" if body in bad else "succeeded"

    with batch_server(Behaviour(looks=0, fate=fate)) as server:
        end = go(replace(at(config, server, retries=1), solvers=("mllm",)))
        assert sizes(server) == [6, 1]
    (failed,) = end.failures
    assert failed.error.startswith("openai:m: no reply after 2 attempts: StatusError: status 500")


def test_the_line_that_a_batch_fails_at_is_refused_and_the_others_are_sent_again(config: RunConfig) -> None:
    with batch_server(Behaviour(looks=0, bad_line=3)) as server:
        end = go(replace(at(config, server), solvers=("mllm",)))
        assert (sizes(server), server.files) == ([6, 5], {})
    assert end.answered == 5
    assert "does not accept this request" in end.failures[0].error
    assert "not parseable" in end.failures[0].error


def test_batches_get_smaller_where_the_account_takes_no_more(config: RunConfig) -> None:
    with batch_server(Behaviour(looks=0, queue=4)) as server:
        assert go(replace(at(config, server), solvers=("mllm",))).failures == ()
        assert set(server.accepted.values()) == {1}
        assert max(len(batch.requests) for batch in server.batches.values() if batch.state != "failed") <= 3


@pytest.mark.parametrize("model", APIS)
def test_a_batch_that_was_refused_for_now_or_whose_answer_was_lost_is_taken_once(config: RunConfig, model: str) -> None:
    with batch_server(Behaviour(looks=0, refusals=[429, 503], loses_answer={0})) as server:
        assert go(replace(at(replace(config, model=model), server), solvers=("mllm",), limit=4)).failures == ()
        assert sizes(server) == [4]


def test_a_wrong_key_and_a_server_without_batches_end_the_run(config: RunConfig) -> None:
    for status, text in ((401, "check the key"), (404, "does not accept batches")):
        with batch_server(Behaviour(refusals=[status])) as server:
            stopped = go(at(config, server)).stopped
        assert isinstance(stopped, ModelRefused)
        assert text in str(stopped)


def test_the_last_questions_are_asked_directly(config: RunConfig) -> None:
    with batch_server(Behaviour(looks=0, fate=lambda _, place: "errored" if place < 2 else "succeeded")) as server:
        assert go(replace(at(config, server, batch_tail=3), solvers=("mllm",))).failures == ()
        assert sizes(server) == [6]
        assert server.singles.total() == 2


def test_a_full_batch_is_sent_at_once_and_a_request_that_is_too_large_is_refused(
    config: RunConfig, tmp_path: Path
) -> None:
    from hybrid.core.messages import user_message
    from hybrid.models import open_model
    from hybrid.models.base import CallKey
    from hybrid.models.batching.batches import Batches
    from hybrid.models.batching.client import batched

    async def ask(server: BatchServer) -> list[Any]:
        settings = at(config, server).model_settings
        api = batch_api("openai:m", settings)
        api.rules = BatchRules(2, 2000)  # type: ignore[misc]
        batches = Batches(api, "openai:m", server.url, tmp_path)
        model = batched(open_model("openai:m", settings, prepare(config).service.store), batches, settings)

        async def one(number: int) -> Any:
            async with batches.question():
                text = f"{number}" if number else "x" * 3000
                return await model.chat([user_message([text])], (), CallKey(f"q{number}"))

        with batches.asking(6, 2, lambda _: None):
            results = await asyncio.gather(*map(one, range(6)), return_exceptions=True)
        await model.close()
        return results

    with batch_server(Behaviour(looks=0)) as server:
        too_large, *others = asyncio.run(ask(server))
        assert sizes(server) == [2, 2, 1]
    assert "larger than the largest batch" in str(too_large)
    assert all(other.batched for other in others)


def started(config: RunConfig, server: BatchServer, *more: str) -> "subprocess.Popen[bytes]":
    url = f"{server.url}{APIS[config.model or '']}"
    words = ["run", "blink", "--data", "sample", "--limit", "6", "--solver", "mllm", "--model", config.model or ""]
    words += ["--base-url", url, "--out", str(config.out), "--batch", *more]
    return subprocess.Popen([sys.executable, "-m", "hybrid", *words], stderr=subprocess.PIPE)


def until(holds: Callable[[], object]) -> None:
    for _ in range(12_000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("it did not come to that")


@pytest.mark.system
def test_a_killed_command_goes_on_with_what_is_at_the_provider(config: RunConfig) -> None:
    assert config.out is not None
    with batch_server(Behaviour(looks=10_000)) as server:
        # The kill may come between the provider's response and the saving of its id.
        server.behaviour.loses_answer.add(0)
        process = started(config, server)
        until(lambda: server.batches)
        process.kill()
        process.communicate()
        (batch,) = read_batches(config.out / "batches.jsonl").values()
        assert len(batch.calls) == 6
        with pytest.raises(UsageError, match="continue with --batch, because without it"):
            go(replace(at(config, server, batch=False), solvers=("mllm",), tools=()))
        server.behaviour.looks = 0
        # The options on the command line describe the same run.
        process = started(config, server)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err.decode()
        assert sizes(server) == [6]
        assert set(server.accepted.values()) == {1}
    assert len(replies(config, "mllm")) == 6


@pytest.mark.system
@pytest.mark.parametrize("model", ["openai:m", "google_genai:m"])
def test_a_file_without_a_batch_is_used_by_the_next_command_or_deleted_by_cancel(config: RunConfig, model: str) -> None:
    config = replace(config, model=model)
    assert config.out is not None
    journal = config.out / "batches.jsonl"
    with batch_server(Behaviour(looks=0, refusals=[503] * 100)) as server:

        def refused(count: int) -> bool:
            """Return whether the provider has refused the batch, which stays recorded as begun.

            Only a definite refusal is final; after any other error, the provider may have accepted the batch.
            """
            states = [batch.state for batch in read_batches(journal).values()]
            return len(server.behaviour.refusals) < count and states[-1:] == ["begun"]

        for ends in ("cancel", "goes on"):
            refusals_left = len(server.behaviour.refusals)
            process = started(config, server)
            until(partial(refused, refusals_left))
            process.kill()
            process.communicate()
            if ends == "cancel":
                assert "was never taken, 6 requests" in asyncio.run(cancel_batches(config.out))[0]
                assert (server.files, server.uploads) == ({}, 1)
        server.behaviour.refusals.clear()
        started(config, server).communicate(timeout=600)
        assert (server.files, server.uploads, sizes(server)) == ({}, 2, [6])


@pytest.mark.system
def test_an_interrupted_command_says_what_goes_on_and_cancel_ends_it(config: RunConfig) -> None:
    assert config.out is not None
    with batch_server(Behaviour(looks=10_000)) as server:
        process = started(config, server)
        until(lambda: any(batch.id for batch in read_batches(config.out / "batches.jsonl").values()))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 130
        goes_on = (
            f"1 batch of {config.out} (6 requests) still runs at the provider; `hybrid runs cancel "
            f"{config.out}` ends it"
        )
        assert goes_on in err.decode()
        result = subprocess.run(
            [sys.executable, "-m", "hybrid", "runs", "list", config.out], check=True, capture_output=True, text=True
        )
        assert "open, 6 in batches" in result.stdout
        assert asyncio.run(cancel_batches(config.out)) == ["batch_0: ended, 6 requests"]
        assert next(iter(server.batches.values())).state == "cancelling"
        assert server.files == {}
        assert asyncio.run(cancel_batches(config.out)) == [f"{config.out} has no waiting batch"]
        # Results that existed when the batch was cancelled are fetched; the other requests are sent again.
        server.behaviour.looks = 0
        process = started(config, server)
        process.communicate(timeout=600)
        assert (process.returncode, sizes(server)) == (0, [6, 3])


def test_a_budget_counts_a_request_when_it_is_sent(config: RunConfig) -> None:
    def sent(usd: float) -> int:
        with batch_server(Behaviour(looks=0)) as server:
            limits = RunLimits(cost_usd=usd)
            go(replace(at(config, server), solvers=("mllm",), run_limits=limits, out=(config.out or Path()) / str(usd)))
            return sum(sizes(server))

    # The sight probe and the picture-order probe are paid when sent, and show the cost of a request.
    assert sent(4.5 * USD) == 3
    assert sent(1.0) == 6


def test_a_dry_run_says_rounds_bytes_and_both_prices(config: RunConfig) -> None:
    config = replace(config, model="openai:gpt-4o", solvers=("controller", "specialist"))
    notes = asyncio.run(estimate(prepare(config))).notes
    (line,) = [note for note in notes if "in batches" in note]
    assert line.startswith("controller in batches: ")
    assert " rounds expected, 8 at most; about 0." in line
    assert " MB of images; 0." in line
    assert " USD expected instead of 0." in line


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_asked_in_batches_is_refused"))
def test_what_cannot_be_asked_in_batches_is_refused(config: RunConfig, changed: dict[str, Any], message: str) -> None:
    by_value = {key: value for key, value in changed.items() if hasattr(config.model_settings, key)}
    rest = {key: value for key, value in changed.items() if key not in by_value}
    config = replace(config, **rest, model_settings=replace(config.model_settings, **by_value))
    with pytest.raises(UsageError, match=message):
        asyncio.run(estimate(prepare(config, dry=True)))
    with pytest.raises(UsageError, match="--batch-wait soon: write a time"):
        ModelSettings(batch_wait="soon")


def test_damaged_lines_of_the_journal_are_passed_over(tmp_path: Path) -> None:
    text = '{"batch":"h1","model":"m","base_url":null,"at":1,"calls":[["s","q",0,0,"d"]]}'
    sent = '{"batch":"h1","state":"sent","id":"b1"}'
    (tmp_path / "b").write_text(f'nonsense\n{{"batch":"x","state":"sent"}}\n{text}\n{sent}\n{{"ba')
    (batch,) = read_batches(tmp_path / "b").values()
    assert (batch.id, batch.state, batch.calls[0].question) == ("b1", "sent", "q")
