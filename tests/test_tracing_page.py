"""docs/tracing.md: its attributes are those that are recorded, and its program reads the written file."""

import re
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tracing.md"
ATTRIBUTE = r"(?:gen_ai|hybrid|error|http)\.[a-z_.0-9]+"


def test_the_page_names_every_attribute_and_no_other() -> None:
    seen = set(
        re.findall(
            rf'"({ATTRIBUTE})"', "".join(file.read_text() for file in (ROOT / "hybrid" / "tracing").glob("*.py"))
        )
    )
    assert set(re.findall(rf"`({ATTRIBUTE})`", PAGE.read_text())) == seen | {"hybrid.tracing"}


def test_the_program_of_the_page_reads_a_file_of_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `trace`")
    from hybrid.core.errors import ToolError
    from hybrid.core.types import Fault
    from hybrid.tracing import run_span, span, tool_call
    from hybrid.tracing.open_telemetry import lines

    monkeypatch.chdir(tmp_path)
    with lines("spans.jsonl", run_span("blink", "run"), text=False):
        for name in ("crop", "depth"):
            with pytest.raises(ToolError), span(partial(tool_call, name, (), {})):
                raise ToolError("late", Fault.TIMEOUT)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out.splitlines()
    assert sorted(" ".join(line.split()[2:]) for line in printed) == [
        "execute_tool crop timeout",
        "execute_tool depth timeout",
    ]
