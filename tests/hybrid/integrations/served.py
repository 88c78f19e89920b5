"""MCP servers as tests start them: the project's own, and foreign ones over HTTP and stdio."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.time_limits import running_process

ROOT = Path(__file__).resolve().parents[3]
SERVE = [sys.executable, "-m", "hybrid", "tools", "serve"]
PLAIN = Path(__file__).with_name("plain_server.py")
# Values of `--mcp-image` for the plain server.
PLAIN_IMAGES = {f"plain_{name}": "image" for name in ("look", "dies", "odd", "refuses", "unwilling", "variables")}
STRANGE_IMAGES = {
    **{f"strange_{name}": "image" for name in ("invert", "fails", "hangs", "hostile")},
    "strange_measure": "photo_base64:base64",
}


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@dataclass(frozen=True)
class Served:
    """A server over HTTP: its address and its process."""

    url: str
    port: int
    process: "subprocess.Popen[str]"


@contextmanager
def over_http(*words: str) -> Iterator[Served]:
    """Start `hybrid tools serve --http` and wait until it prints its address."""
    with running_process(
        [*SERVE, "--http", *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            text = process.stderr.readline()
            match = re.match(r"(http://127\.0\.0\.1:(\d+)/mcp) serves \d+ tools; Ctrl-C ends it", text)
            assert match, text
            yield Served(match[1], int(match[2]), process)
        finally:
            process.send_signal(signal.SIGTERM)
            rest, errors = process.communicate()
        assert (process.returncode, rest) == (0, "")
        assert errors.splitlines()[-1] == "ended"


def own(home: Path, *words: str) -> str:
    """Return the command of `hybrid tools serve` as a value of `--mcp`; it sets variables, because the server inherits
    none."""
    variables = (f"HYBRID_HOME={home}", f"PYTHONPATH={ROOT}", "OMP_NUM_THREADS=1")
    return "hybrid=" + shlex.join(["env", *variables, *SERVE, *words])


@contextmanager
def strange_over_http(log: Path) -> Iterator[str]:
    """Run the foreign server over HTTP; yield its address."""
    command = [sys.executable, str(Path(__file__).with_name("strange_server.py")), str(log)]
    with running_process(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def plain(variant: str = "", script: Path = PLAIN) -> str:
    """Return the command of the server without any package as a value of `--mcp`."""
    return "plain=" + shlex.join([sys.executable, "-S", str(script), *([variant] if variant else [])])
