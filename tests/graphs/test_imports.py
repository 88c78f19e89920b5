"""Unneeded packages are not imported: LangGraph by asking alone, LangChain by a server that speaks OpenAI's API."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

LISTS = "print('loaded', sorted({'langgraph', 'langchain', 'langchain_core', 'openai'} & set(sys.modules)))"


def loaded(code: str, home: Path) -> str:
    """Which of these packages a fresh process has loaded when the code has run."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{LISTS}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HYBRID_HOME": str(home)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rpartition("loaded ")[2].strip()


def test_the_modules_of_the_graphs_import_no_framework(tmp_path: Path) -> None:
    assert loaded("import graphs.controller, graphs.verify, graphs.arbiter", tmp_path) == "[]"


def test_a_run_of_the_pure_mllm_against_a_server_imports_no_framework(
    adversary: Any, completion: Any, fakes: Any, tmp_path: Path
) -> None:
    adversary.queue = [completion("7306"), completion("Answer: (A)")]
    data = fakes.blink_folder(tmp_path / "blink", 0, 2)
    words = ["run", "blink", "--data", str(data), "--solver", "mllm", "--model", "openai:m", "--json"]
    words += ["--base-url", adversary.url, "--out", str(tmp_path / "run")]
    code = f"from hybrid.cli import cli\nassert cli.main({words!r}, standalone_mode=False) in (0, None)"
    assert loaded(code, tmp_path / "home") == "[]"
    assert len(adversary.requests) == 3
    lines = (tmp_path / "run" / "mllm" / "attempts.jsonl").read_text().splitlines()
    assert {json.loads(line)["exchanges"][0]["reply"]["text"] for line in lines} == {"Answer: (A)"}
