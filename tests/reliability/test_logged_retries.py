"""Messages about a tool that breaks and a server that fails once: on stderr and in log.txt."""

from pathlib import Path

import pytest
from faulty_server import Fault, FaultyServer, Request
from runs import MLLM, Questions, words

from tests.finished_runs import Command
from tests.tool_source import tool_source

BREAKS = tool_source("breaks", 'raise LookupError("no such shelf")')
LINE = BREAKS.splitlines().index('        raise LookupError("no such shelf")') + 1


@pytest.fixture(autouse=True)
def tools_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the folders that a command searches from other tests."""
    import tools

    monkeypatch.setattr(tools, "__path__", list(tools.__path__))


@pytest.mark.system
@pytest.mark.parametrize("debug", [True, False])
def test_the_traceback_of_a_tool_in_a_process_of_its_own(
    tmp_path: Path, questions: Questions, hybrid: Command, debug: bool
) -> None:
    current = tmp_path / "own"
    current.mkdir()
    (current / "breaks.py").write_text(BREAKS)
    more = ("--solver", "controller", "--tools", "breaks", "--tool-path", current, "--json")
    with FaultyServer(call=lambda _: ("breaks", '{"images": ["img:1"]}')) as server:
        arguments = words(questions(1), server.url, tmp_path / "run", *more)
        result = hybrid(*arguments, *(["--debug"] if debug else []), code=3)
    assert (
        f"1 of 1 call of breaks failed: the tool failed: LookupError: no such shelf (own/breaks.py, line {LINE})"
        in (result.err)
    )
    text = f'File "{current / "breaks.py"}", line {LINE}, in run'
    assert (text in result.err) is debug
    assert ("Traceback" in result.err) is debug
    assert "1 tool fault" in result.err
    log = (tmp_path / "run" / "log.txt").read_text()
    assert text in log
    assert "LookupError: no such shelf" in log


@pytest.mark.usefixtures("impatient")
def test_a_request_that_is_sent_once_more_is_logged_and_counted(
    tmp_path: Path, questions: Questions, hybrid: Command
) -> None:
    def once(request: Request) -> Fault | None:
        return (Fault.RATE, Fault.HTTP_500)[request.question % 2] if request.earlier == 0 else None

    with FaultyServer(once) as server:
        result = hybrid(*words(questions(2), server.url, tmp_path / "run", *MLLM, "--concurrency", "1"), code=0)
    assert "2 retries" in result.err
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "openai:mock: request 1 for val_Spatial_Relation_1 failed: " in log
    assert "500" in log
    assert "429" in log
    assert "request 1 for" not in result.err
    loud = tmp_path / "loud"
    with FaultyServer(once) as server:
        text = hybrid(*words(questions(1), server.url, loud, *MLLM, "--verbose"))
    assert "request 1 for val_Spatial_Relation_1 failed: " in text.err
