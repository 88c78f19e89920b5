"""A command imports only what it needs, both until the first answer is saved and until its end."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Words

pytestmark = pytest.mark.system

# A program that lists the packages imported at its first answer and at its end. It notices the first answer when the
# thread that writes answers calls `os.fsync`.
WATCHED = """
import json, os, sys, threading
at_first, wait = [], os.fsync
def watched(file):
    if not at_first and threading.current_thread().name.startswith("record-"):
        at_first.append({name.partition(".")[0] for name in sys.modules})
    wait(file)
os.fsync = watched
from hybrid.cli import main
try:
    main()
finally:
    last = {name.partition(".")[0] for name in sys.modules}
    print(json.dumps([sorted(at_first[0]), sorted(last)]), file=sys.stderr)
"""
# Libraries that only a learned tool needs.
LEARNED = {"torch", "torchvision", "transformers", "timm", "kornia"}
GRAPHS = {"langchain_core", "langchain", "langgraph"}


def imported(tmp_path: Path, *words: str) -> tuple[set[str], set[str]]:
    """Return the top-level packages that `hybrid WORDS` has imported at the first answer, and at its end."""
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    environment |= {"HYBRID_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "not-a-key"}
    values = [sys.executable, "-c", WATCHED, *words, "--out", str(tmp_path / "run")]
    result = subprocess.run(values, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    first, last = json.loads(result.stderr.splitlines()[-1])
    assert {"hybrid", "click"} <= set(first) <= set(last)
    return set(first), set(last)


def asking(url: str, data: Path) -> Words:
    return ("run", "mvp_bench", "--data", str(data), "--model", "openai:mock", "--base-url", url)


def test_a_pure_mllm_needs_no_tool_no_graph_and_no_array(server: str, photographs: Path, tmp_path: Path) -> None:
    first, last = imported(tmp_path, *asking(server, photographs), "--solver", "mllm")
    assert "aiohttp" in first
    assert first & (LEARNED | GRAPHS | {"numpy", "cv2", "pyarrow", "scipy"}) == set()
    assert last & (LEARNED | GRAPHS | {"openai"}) == set()


def test_a_controller_with_tools_needs_nothing_learned(server: str, photographs: Path, tmp_path: Path) -> None:
    words = ("--solver", "controller", "--tools", "crop,depth")
    _, last = imported(tmp_path, *asking(server, photographs), *words)
    assert "langgraph" in last
    # The client of MCP servers is not imported either, if no server is named.
    assert last & (LEARNED | {"mcp"}) == set()


def test_a_replay_run_with_specialists_needs_nothing_learned(tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=1, spatials=0)
    model = fakes.recordings(tmp_path / "model", fakes.blink_replies(1, 0))
    words = ("run", "blink", "--data", str(data), "--model", f"replay:{model}")
    _, last = imported(tmp_path, *words, "--solver", "mllm", "--solver", "specialist")
    assert last & (LEARNED | GRAPHS | {"aiohttp"}) == set()


def test_a_person_is_told_at_once_and_a_log_is_not() -> None:
    """On a terminal the first line is printed before the options are checked."""
    words = [sys.executable, "-m", "hybrid", "run", "crystal"]
    actual, reference = pty.openpty()
    try:
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=reference, check=False)
        lines = os.read(actual, 10_000).decode().splitlines()
    finally:
        os.close(actual)
        os.close(reference)
    assert lines[0] == "crystal: preparing ..."
    assert lines[1].startswith("hybrid: no 'crystal' in hybrid.benchmarks/")
    assert subprocess.run(words, capture_output=True, text=True, check=False).stderr.splitlines() == lines[1:]
