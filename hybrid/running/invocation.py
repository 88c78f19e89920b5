"""The command, time and code version that started or continued a run: an entry of its manifest's `commands`.

    invocation()    # Invocation(at="2026-11-23T14:05:09Z", command="hybrid run blink ...", commit="9189e78...")

None of this is part of a run's identity. The command line is that of this process; the manifest is written redacted.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from hybrid.core.secrets import redact
from hybrid.log.manifest import Invocation
from hybrid.models.credentials import keep_words

# The clone that the program runs from, or the folder that holds the installed packages.
PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = "hybrid"


def invocation() -> Invocation:
    """Return the invocation of this process, and register the secrets in its command line."""
    keep_words(sys.argv)
    # Redact word by word, because shell quoting would split a secret.
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Invocation(at, command_line([redact(word) for word in sys.argv]), commit_of(PROJECT))


def command_line(words: Sequence[str]) -> str:
    """Return the words of a command in shell syntax; `python -m hybrid` and the script both become `hybrid`."""
    program, *options = words or ("",)
    name = Path(program).name
    if name == "__main__.py" and Path(program).parent.name == PROGRAM:
        name = PROGRAM
    return shlex.join([name or "python", *options])


@cache
def commit_of(project: Path) -> str | None:
    """Return the commit of a clone, ending in `-dirty` if files differ; None without a clone or git."""
    if not (project / ".git").exists():
        return None
    # Git hooks name another repository in the environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Avoid the index lock, because another git command may be running; `describe --dirty` would always take it.
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    status = ("git", "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=no")
    try:
        git = subprocess.run(  # noqa: S603 - fixed words
            status, cwd=project, env=environment, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = git.stdout.splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    dirty = any(not line.startswith("#") for line in lines)
    return None if commit == "(initial)" else f"{commit}{'-dirty' * dirty}"
