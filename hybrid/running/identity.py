"""What a manifest states about a run: the identity of what it asks, and the commands that started or continued it.

identity = resolved_identity(setup, benchmark, mounted, choice)
invocation()    # Invocation(at="2026-11-23T14:05:09Z", command="hybrid run blink ...", commit="9189e78...")

The identity consists of the identifying options, with names resolved to hashes and versions. A command, its time and
the version of the code are not part of it. The command line is that of this process; the manifest is written redacted.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from hybrid.benchmarks.base import Benchmark
from hybrid.config import identity_of
from hybrid.core.format_lines import REASONING
from hybrid.core.secrets import redact
from hybrid.core.types import Json
from hybrid.log.manifest import Invocation
from hybrid.models import OPENED
from hybrid.models.credentials import keep_words
from hybrid.plugins.prompt_texts import text_hash
from hybrid.running.data import Mounted, fingerprint
from hybrid.running.generated import VERSION as GENERATOR
from hybrid.running.object_code import is_installed, object_code
from hybrid.running.tools_in_use import ToolChoice
from hybrid.serving.sources import plugin_code_hashes
from hybrid.solving.captions import captions_fact
from hybrid.solving.session import AskSetup
from hybrid.version import __version__


def resolved_identity(setup: AskSetup, benchmark: Benchmark, mounted: Mounted, choice: ToolChoice) -> dict[str, Json]:
    """Return the options that are part of the run's identity, with everything that they name resolved."""
    config, model, source, wording = setup.config, setup.model, mounted.source, setup.wording
    handed_in, code_of_model = config.objects.model, dict[str, Json]()
    if handed_in is not None and not is_installed(type(handed_in)):
        code_of_model = {"code": object_code(type(handed_in))}
    # Generated rows depend only on seed and generator, so a larger sample is the same data.
    read: dict[str, Json] = {"generator": GENERATOR}
    if not mounted.is_sample or "folder" in mounted.origin:
        read = {"sha256": fingerprint(benchmark.files(source), source.folder)}
    facts: dict[str, Json] = {
        "benchmark": benchmark.card.name,
        "split": source.split,
        "tasks": list(source.tasks),
        "settings": dict(source.settings),
        "data": {**mounted.origin, **read},
        "model": {**model.metadata(), **code_of_model} if model else None,
        "prompts": {
            "format_line": wording.format_line,
            "format_lines": wording.sha256,
            "texts": text_hash(benchmark.texts),
            # Included only if chosen, so that earlier runs without the option keep their identity.
            **({"reasoning": REASONING[config.reasoning]} if config.reasoning else {}),
        },
        "limits": asdict(config.limits),
        "trust": setup.trust.sha256 if setup.trust else None,
        "tools_offered": list(choice.tools_offered),
        "tool_style": setup.style.fact,
        "captioner": captions_fact(setup.captioner) if setup.captioner else None,
        "context": {"sha256": setup.context.sha256, "missing": config.context_missing},
    }
    words = (name.partition(":")[0] for name in (config.model, config.captioner) if name is not None)
    plugins = plugin_code_hashes((("hybrid.benchmarks", benchmark.card.name), *((OPENED, word) for word in words)))
    return {
        "hybrid": __version__,
        "pictures": config.service.pictures,
        **identity_of(config, facts),
        # Plug-in tools and solvers are recorded with the tools and solvers.
        **({"plugins": dict(plugins)} if plugins else {}),
    }


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
    """Return the commit of a clone, ending in `-dirty` if tracked files were changed; None without a clone or git."""
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
