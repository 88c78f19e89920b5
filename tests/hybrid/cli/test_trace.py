"""`hybrid run --trace` writes to a collector, which may be unreachable, or to a file; invalid values are refused."""

import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `trace`")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hybrid.core.secrets import redact
from hybrid.log.folder import LOG
from tests.finished_runs import Command, Words
from tests.servers import JsonHandler, LocalServer, listening
from tests.tables import cases
from tests.time_limits import END_S

LOST = "--trace otlp: spans are lost, and the run goes on: "
KEY = "zq71-collector-0123456789"


@dataclass
class Collector:
    """A receiver of OTLP/HTTP on 127.0.0.1; while `held` it answers no request."""

    status: int = 200
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        collector = self
        self.free.set()

        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.requests.append((self.path, headers, body))
                collector.free.wait(END_S)
                self.answer(b"", collector.status)

        self.server = LocalServer(Handler)

    def spans(self) -> list[Any]:
        results = []
        for _, _, body in self.requests:
            string = ExportTraceServiceRequest.FromString(body)
            results += [span for item in string.resource_spans for scope in item.scope_spans for span in scope.spans]
        return results


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    item = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", item.server.url)
    with listening(item.server):
        yield item
        item.free.set()


@pytest.fixture
def collector_down(monkeypatch: pytest.MonkeyPatch, servers: Any) -> None:
    """A collector that is not running."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{servers.free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


def test_a_collector_gets_the_spans(
    command: Command, blink: Words, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{KEY},x-version=4")
    assert command("run", *blink, "--solver", "mllm", "--trace", "otlp").code == 0
    assert redact(KEY) == "[redacted]"
    path, headers, body = collector.requests[0]
    assert path == "/v1/traces"
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["authorization"] == f"Bearer {KEY}"
    resource = ExportTraceServiceRequest.FromString(body).resource_spans[0].resource
    assert {attribute.key: attribute.value.string_value for attribute in resource.attributes}[
        "service.name"
    ] == "hybrid"
    names = [span.name for span in collector.spans()]
    assert sorted(set(names)) == ["chat model", "question mllm", "run blink"]
    assert [names.count(name) for name in sorted(set(names))] == [6, 6, 1]
    assert len({span.trace_id for span in collector.spans()}) == 1


@pytest.mark.system
def test_a_collector_that_is_away_costs_a_line(
    command: Command, blink: Words, collector_down: None, tmp_path: Path
) -> None:
    plain = command("run", *blink[:-1], tmp_path / "plain", "--solver", "mllm", "--solver", "arbiter", "--quiet")
    traced = command("run", *blink, "--solver", "mllm", "--solver", "arbiter", "--trace", "otlp", "--quiet")
    assert traced.code == plain.code
    assert traced.err == ""
    for solver in ("mllm", "arbiter"):
        files = [tmp_path / run / solver / "scores.jsonl" for run in ("plain", "run")]
        assert files[0].read_bytes() == files[1].read_bytes()
    log = (tmp_path / "run" / LOG).read_text()
    assert log.count(LOST) == 1
    assert "Connection refused" in log or "timeout" in log
    assert "WARNING" in log
    assert len([line for line in log.splitlines() if "WARNING" in line or "ERROR" in line]) == 1


def test_a_collector_that_refuses_is_named_with_its_reason(
    command: Command, blink: Words, collector: Collector, tmp_path: Path
) -> None:
    collector.status = 401
    assert command("run", *blink, "--solver", "mllm", "--trace", "otlp").code == 0
    (line,) = [line for line in (tmp_path / "run" / LOG).read_text().splitlines() if "spans" in line]
    assert line.endswith(f"{LOST}Failed to export spans batch code: 401, reason: Unauthorized")


def test_a_configuration_names_it_too_and_every_run_of_a_matrix_adds_its_lines(
    command: Command, blink: Words, tmp_path: Path
) -> None:
    config = {"trace": "spans.jsonl", "trace-text": True, "solver": ["mllm"], "format-line": ["on", "off"]}
    (tmp_path / "run.json").write_text(json.dumps(config))
    assert command("run", "--config", "run.json", *blink).code == 0
    rows = [json.loads(line) for line in Path("spans.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows].count("run blink") == 2
    chats = [row["attributes"] for row in rows if row["name"] == "chat model"]
    assert len(chats) == 12
    datas = [json.loads(chat["gen_ai.input.messages"]) for chat in chats]
    assert {part["type"] for (message,) in datas for part in message["parts"]} == {"text", "image"}
    assert all(json.loads(item["gen_ai.output.messages"])[0]["parts"][0]["content"] == "Answer: (A)" for item in chats)


def test_a_trace_without_the_extra_says_how_to_get_it(
    command: Command, blink: Words, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "hybrid.tracing.open_telemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    result = command("run", *blink, "--trace", "otlp", code=2)
    (line,) = [line for line in result.err.splitlines() if line.startswith("hybrid: ")]
    assert re.search(r"uv pip install -e '\S+\[trace\]'", line)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_traced_is_refused_before_anything_is_asked"))
def test_what_cannot_be_traced_is_refused_before_anything_is_asked(
    command: Command,
    blink: Words,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: Words,
    variable: tuple[str, str] | None,
    message: str,
) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    if variable is not None:
        monkeypatch.setenv(*variable)
    result = command("run", *blink, "--trace", *words, code=2)
    (line,) = [line for line in result.err.splitlines() if line.startswith("hybrid: ")]
    assert message in line
    assert not (tmp_path / "run" / "mllm").exists()
    assert logging.getLogger("opentelemetry").propagate


@pytest.mark.system
def test_a_run_without_it_imports_none_of_it(blink: Words) -> None:
    words = [sys.executable, "-X", "importtime", "-m", "hybrid", "run", *blink, "--solver", "mllm", "--limit", "1"]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "hybrid.running.run" in result.stderr
    assert "opentelemetry" not in result.stderr
    assert "open_telemetry" not in result.stderr
