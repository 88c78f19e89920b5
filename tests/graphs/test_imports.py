"""Only needed packages are imported: LangGraph only if questions are asked, and no LangChain for OpenAI-compatible
servers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

LISTS = "print('loaded', sorted({'langgraph', 'langchain', 'langchain_core', 'openai'} & set(sys.modules)))"


def loaded(code: str, home: Path) -> str:
    """Run the code in a new process; return those packages of `LISTS` that the process has loaded."""
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
