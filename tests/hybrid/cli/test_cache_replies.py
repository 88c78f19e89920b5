"""`--cache-replies`: a request that an earlier run has paid for is not sent again and its cost is not counted again."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import hybrid
from bench._chat_server import answer_body, framed, on_thread, sight
from hybrid.cli import cli
from hybrid.core.errors import UsageError
from hybrid.core.messages import AssistantMessage, TokenUsage
from hybrid.core.secrets import keep_secret
from hybrid.core.types import BrokenQuestion, Exchange, Kind, Prompt, Reply, Usage
from hybrid.display.tables import NONE
from hybrid.log.folder import RunFolder
from hybrid.models.base import CallKey, ReusedReply
from hybrid.report.questions import _ask
from hybrid.running.probes import SIGHT_PROBE
from hybrid.running.replies import RunReplies
from hybrid.running.reply_cache import ReplyCache, ReusingLog
from hybrid.scoring.ablation import _count_calls
from hybrid.scoring.run_list import list_scored, show_run
from hybrid.scoring.sections.unchanged import spent
from hybrid.tracing import model_reply

SENT: list[bytes] = []
PROBES: list[bytes] = []


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a model that answers "(A)". Its requests are recorded in `SENT`, and those of probes in `PROBES`."""

    def reply(_head: bytes, body: bytes) -> bytes:
        if (probed := sight(body)) is not None:
            PROBES.append(body)
            return probed
        SENT.append(body)
        return framed(answer_body({"content": "Answer: (A)"}, "stop"))

    with on_thread(reply) as url:
        yield f"{url}/v1"


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> dict[str, Any]:
    """Return the options of a run that asks the model at `address` two questions, with a price."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    SENT.clear()
    PROBES.clear()
    priced = {"price": "1000/1000"}
    common = {"data": "sample", "task": "Jigsaw", "limit": 2, "solvers": ["mllm"]}
    return {**common, "model": "openai:mock", "base_url": address, "model_arg": priced, "cache_replies": True}


def usage_of(run: Path) -> list[dict[str, Any]]:
    lines = (run / "mllm" / "attempts.jsonl").read_text().splitlines()
    return [exchange["reply"]["usage"] for line in lines for exchange in json.loads(line)["exchanges"]]


def check_shown_costs(folder: Path) -> None:
    """Check that no view of a run whose replies were all reused shows its tokens, cost or seconds."""
    listing = show_run(folder)
    assert listing.tables()[1].rows[0][-3:] == (NONE, NONE, NONE)
    note = "mllm: 2 of 2 model calls answered by replies of earlier runs (--cache-replies), so tokens, cost and seconds"
    assert listing.tables()[1].notes == (f"{note} are not known.",)
    (row,) = listing.rows()
    assert (row["cost_usd"], row["wall_s"]) == (None, None)
    counts: Any = row["usage"]
    assert (counts["input_tokens"], counts["seconds"], counts["reused_calls"]) == (None, None, 2)
    assert list_scored([folder]).tables()[0].rows[0][6] == NONE
    words = ["export", str(folder), "--to", "every_eval_ever", "-o", "shared", "--allow", "generated"]
    assert cli.main(words, standalone_mode=False) == 0
    (samples,) = Path("shared").rglob("*.jsonl")
    for line in samples.read_text().splitlines():
        sample = json.loads(line)
        assert sample["metadata"]["reused_calls"] == "1"
        assert not {"token_usage", "performance"} & set(sample)
    usage = Usage(model_calls=2, reused_calls=2, cost_usd=0.0)
    assert _count_calls(usage) == {"model_calls": 2, "tool_calls": 0, "reused_calls": 2, "cost_usd": None}
    for question in hybrid.table(folder / "mllm"):
        assert [question[name] for name in ("tokens", "cost_usd", "call_seconds", "seconds")] == [None] * 4
        assert question["model_calls"] == 1


def test_the_page_of_a_question_has_no_tokens_and_no_cost_of_a_reused_reply() -> None:
    usage = Usage(model_calls=1, reused_calls=1, cost_usd=0.0)
    exchange = Exchange(Prompt(("Which?",), Kind.CHOICE), Reply("(A)", usage=usage))
    entry = _ask(exchange, BrokenQuestion("q1", "Jigsaw", "no picture"), cast(Any, None))
    assert (entry.input_tokens, entry.output_tokens, entry.cost_usd, entry.seconds) == (None, None, None, None)
    assert (entry.model_calls, entry.reused_calls) == (1, 1)


def test_the_span_of_a_reused_reply_has_no_tokens_and_no_cost() -> None:
    message = AssistantMessage("(A)", usage=TokenUsage(7, 1), reused=True)
    facts = model_reply(message, 0.0).attributes
    assert (facts["gen_ai.usage.input_tokens"], facts["hybrid.cost_usd"], facts["hybrid.reused"]) == (None, None, True)
    assert model_reply(replace(message, reused=False), 0.5).attributes["hybrid.cost_usd"] == 0.5


def test_a_second_run_sends_nothing_spends_nothing_and_says_so(
    options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first = hybrid.run("blink", out="first", **options)
    assert len(SENT) == 2
    assert [usage["cost_usd"] for usage in usage_of(Path("first"))] == [pytest.approx(0.11)] * 2
    second = hybrid.run("blink", out="second", **options)
    assert len(SENT) == 2
    # Each run checks separately whether its server sees pictures.
    assert len(PROBES) == 4
    for usage in usage_of(Path("second")):
        assert (usage["model_calls"], usage["reused_calls"]) == (1, 1)
        assert (usage["input_tokens"], usage["output_tokens"], usage["cost_usd"]) == (0, 0, 0.0)
    assert json.loads(Path("second/manifest.json").read_text())["reused_replies"] == 2
    assert "reused_replies" not in json.loads(Path("first/manifest.json").read_text())
    assert second.as_json()["solvers"]["mllm"]["metrics"] == first.as_json()["solvers"]["mllm"]["metrics"]
    assert "answered by replies of earlier runs" in " ".join(str(second).split())
    assert "earlier runs" not in str(first)
    assert "2 model calls answered by replies of earlier runs (--cache-replies)" in capsys.readouterr().err
    cost = " ".join(hybrid.compare("first/mllm", "second/mllm", only=["cost"]).render("text").split())
    assert "replies of earlier runs (--cache-replies): 2 of 2, not counted" in cost
    # The run that paid nothing is not called the least expensive.
    assert "The least and the most expensive" not in cost
    for attempt in RunFolder(Path("second")).recorded("mllm").by_id.values():
        assert spent([exchange.reply.usage for exchange in attempt.exchanges]) == {
            "USD": None,
            "tokens": None,
            "seconds": None,
        }
    check_shown_costs(Path("second"))
    # A longer run pays only for new requests, and continuing it does not change the number of reused replies.
    hybrid.run("blink", out="second", **{**options, "limit": 3})
    assert len(SENT) == 3
    assert json.loads(Path("second/manifest.json").read_text())["reused_replies"] == 2


def test_a_server_that_lost_its_sight_is_refused(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    hybrid.run("blink", out="first", **options)
    is_probe, blind = sight, framed(answer_body({"content": "I see no picture."}, "stop"))
    monkeypatch.setitem(globals(), "sight", lambda body: None if is_probe(body) is None else blind)
    with pytest.raises(UsageError, match="does not see"):
        hybrid.run("blink", out="second", **options)
    assert len(SENT) == 2


def test_damaged_entries_are_asked_again_and_not_counted(options: dict[str, Any]) -> None:
    hybrid.run("blink", out="first", **options)
    entries = [path for path in Path("home/replies").rglob("*") if path.is_file()]
    assert len(entries) == 2
    entries[0].write_bytes(b"damaged")
    second = hybrid.run("blink", out="second", **options)
    assert len(SENT) == 3
    assert json.loads(Path("second/manifest.json").read_text())["reused_replies"] == 1
    assert "1 of 2 model calls answered by replies of earlier runs" in " ".join(str(second).split())


@pytest.mark.parametrize(
    "change",
    [
        {"cache_replies": False},
        {"model": "openai:other"},
        {"max_tokens": 7},
        {"model_arg": {"price": "1000/1000", "temperature": 1}},
    ],
    ids=["without the option", "another model", "another limit", "another temperature"],
)
def test_what_was_not_sent_before_is_sent(options: dict[str, Any], change: dict[str, Any]) -> None:
    hybrid.run("blink", out="first", **options)
    hybrid.run("blink", out="second", **{**options, **change})
    assert len(SENT) == 4


def test_repetitions_and_samples_share_no_reply(options: dict[str, Any]) -> None:
    settings = {"setting": {"repeats": "2", "samples": "2"}, "limit": 1}
    options["model_arg"]["temperature"] = 1
    hybrid.run("blink", out="first", **{**options, **settings})
    assert len(SENT) == 4
    hybrid.run("blink", out="second", **{**options, **settings})
    assert len(SENT) == 4


def test_a_model_that_is_an_object_is_refused(options: dict[str, Any]) -> None:
    from langchain_core.language_models import FakeListChatModel

    keywords = {**options, "model": FakeListChatModel(responses=["(A)"]), "base_url": None, "model_arg": {}}
    with pytest.raises(UsageError, match="a Python object, may change unnoticed"):
        hybrid.run("blink", out="first", **keywords)


def test_another_engine_is_refused(options: dict[str, Any]) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    with pytest.raises(UsageError, match="on the disk of this machine"):
        hybrid.run("blink", out="first", **{**options, "engine": "ray"})
    assert SENT == []


def log_of(folder: Path, cache: ReplyCache) -> ReusingLog:
    return ReusingLog(RunReplies(folder / "replies.jsonl", lambda _: ()), cache)


CALL, PROBE = CallKey("q1", 0, 2, "", "mllm"), CallKey(SIGHT_PROBE)


def test_the_place_of_a_call_counts_and_its_solver_does_not(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "cache", "model")
    for call in (CALL, PROBE):
        log_of(tmp_path, cache).keep(call, "sha", b"said")
    (tmp_path / "other").mkdir()
    other = log_of(tmp_path / "other", cache)
    reply = other.find_reply(CallKey("q1", 0, 2, "", "verify"), "sha")
    assert (reply, type(reply)) == (b"said", ReusedReply)
    for call, sha256 in (
        (CallKey("q2", 0, 2, "", "mllm"), "sha"),
        (CallKey("q1", 1, 2, "", "mllm"), "sha"),
        (CallKey("q1", 0, 3, "", "mllm"), "sha"),
        (CallKey("q1", 0, 2, "", "mllm@2"), "sha"),
        (CALL, "another"),
        (PROBE, "sha"),
    ):
        assert other.find_reply(call, sha256) is None
    assert ReplyCache(tmp_path / "cache", "another model").find(CALL, "sha") is None
    # The run's own reply is not marked as reused, because the run has paid for it.
    assert type(log_of(tmp_path, cache).find_reply(CALL, "sha")) is bytes


def test_a_secret_is_not_kept_and_a_folder_that_is_not_writable_costs_nothing(tmp_path: Path) -> None:
    keep_secret("sk-reply-cache-secret")
    cache = ReplyCache(tmp_path / "cache", "model")
    log_of(tmp_path, cache).keep(CALL, "sha", b"your key is sk-reply-cache-secret")
    assert not (tmp_path / "cache").exists()
    (tmp_path / "file").write_bytes(b"")
    log = log_of(tmp_path, ReplyCache(tmp_path / "file", "model"))
    log.keep(CALL, "second", b"said")
    assert isinstance(log.failed, OSError)
    assert log.find_reply(CALL, "second") is None
    assert log_of(tmp_path, cache).find_reply(CALL, "second") == b"said"
    assert os.path.getsize(tmp_path / "file") == 0
