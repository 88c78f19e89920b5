"""Unneeded packages are not imported: LangGraph by asking alone, LangChain by a server that speaks OpenAI's API."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

LISTS = "print('loaded', sorted({'langgraph', 'langchain', 'langchain_core', 'openai'} & set(sys.modules)))"


def loaded(code: str, home: Path) -> str:
    """Which of these packages a fresh process has loaded when the code has run."""
    result = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{LISTS}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HYBRID_HOME": str(home)},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.rpartition("loaded ")[2].strip()


def test_the_modules_of_the_graphs_import_no_framework(tmp_path: Path) -> None:
    assert loaded("import graphs.controller, graphs.verify, graphs.arbiter", tmp_path) == "[]"
