"""The cost of starting: processor and wall time until the first request, or of a command that asks nothing.

    python -m bench.startup [--case mllm]... [--questions 2] [--new-images] [--repeat 5] [--json FILE]

The cases run one after the other in turn, `--repeat` times, each in a process of its own, after one round that fills
the disk's cache and the image store; the table shows medians. The first seven are of `hybrid`:

    help                 `hybrid --help`, to its end
    mllm, controller     `hybrid run` of `--questions` until the first request reaches a server on this machine; the
                         controller offers `crop`. All images are in the store from an earlier run, or with
                         `--new-images` none is
    replay               `hybrid run` of two recorded replies, scored and printed, to its end
    resume               the same again: there is nothing to do
    score, compare       `hybrid score` and `hybrid compare` of what that run left

The others are what they are compared with: `import-langgraph` is `python -c "import langgraph.graph"`, and `aiohttp`,
`openai`, `langgraph` are the bare loops of `bench._bare_clients` until their first request; they read a file when they
ask. cpu_s is the processor time of the process and of all that it started, in steps of 10 ms where that is read before
its end.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench._loop_questions import TASK, write_questions
from bench.loop import command, environment, measured

QUESTIONS = 2
IN_FLIGHT = 64
PATIENCE_S = 300
HYBRID = ("help", "mllm", "controller", "replay", "resume", "score", "compare")
BARE = ("import-langgraph", "aiohttp", "openai", "langgraph")
CASES = (*HYBRID, *BARE)
ASKING = {"mllm": "hybrid-mllm", "controller": "hybrid-controller", "aiohttp": "aiohttp"} | {
    name: name for name in ("openai", "langgraph")
}
"""The cases that end with the first request, and the names of their clients in `bench.loop`."""


@dataclass(frozen=True)
class Start:
    """One case's start: seconds until its first request, or of all of it."""

    case: str
    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Places:
    """Where the questions, the recorded replies, the home and the run of all cases lie."""

    root: Path
    count: int
    new_images: bool

    @property
    def questions(self) -> Path:
        """As `write_questions` makes them."""
        return self.root / "questions"

    @property
    def home(self) -> Path:
        """The image store."""
        return self.root / "home"

    @property
    def replies(self) -> Path:
        """A recorded model."""
        return self.root / "model"

    @property
    def run(self) -> Path:
        """The files that `replay` leaves."""
        return self.root / "run"

    def prepare(self) -> None:
        """Write questions and replies."""
        write_questions(self.questions, self.count)
        self.replies.mkdir()
        lines = [{"id": f"val_{TASK}_{number}", "text": "Answer: (A)"} for number in range(1, self.count + 1)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.replies / "recordings.jsonl").write_text(text)


def words(case: str, places: Places) -> list[str]:
    """The command line of a case that runs to its end."""
    hybrid = [sys.executable, "-m", "hybrid"]
    replay = ["run", "blink", "--data", str(places.questions / "blink"), "--model", f"replay:{places.replies}"]
    replay += ["--solver", "mllm", "--out", str(places.run)]
    match case:
        case "help":
            return [*hybrid, "--help"]
        case "replay" | "resume":
            return [*hybrid, *replay]
        case "score" | "compare":
            return [*hybrid, case, str(places.run)]
        case _:
            return [sys.executable, "-c", "import langgraph.graph"]


def cpu_s(root: int) -> float:
    """Processor time of a living process and its descendants so far, and of those that it has waited for."""
    times: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            times[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [root]
    while waiting:
        one = waiting.pop()
        total += times[one][1] if one in times else 0.0
        waiting += [child for child, (parent, _) in times.items() if parent == one]
    return total


@contextmanager
def first_request() -> Iterator[tuple[str, threading.Event]]:
    """The address of a server, and what is set when a request has come; it answers none."""
    came = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.set()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", came
        finally:
            server.shutdown()
            thread.join()


def until_request(case: str, places: Places, out: Path) -> Start:
    """Start a client and end it when its first request has come. Raises `SystemExit` where none comes."""
    with first_request() as (url, came), (out / "log").open("wb") as log:
        words = command(ASKING[case], url, places.questions, IN_FLIGHT, out)
        began = time.monotonic()
        home = out / "home" if places.new_images else places.home
        process = subprocess.Popen(  # noqa: S603 - our own client
            words, env=environment(home), stdout=log, stderr=log, start_new_session=True
        )
        try:
            if not came.wait(PATIENCE_S):
                raise SystemExit(f"{' '.join(words)} asked nothing:\n{(out / 'log').read_text()[-3000:]}")
            return Start(case, time.monotonic() - began, cpu_s(process.pid))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def to_the_end(case: str, places: Places, out: Path) -> Start:
    """Run a command to its end."""
    if case == "replay" and places.run.exists():
        places.run.rename(out / "earlier")
    ended = measured(words(case, places), places.home, out / "log")
    return Start(case, ended.wall_s, ended.cpu_s)


def start(case: str, places: Places) -> Start:
    """One start of a case."""
    with tempfile.TemporaryDirectory() as folder:
        run: Callable[[str, Places, Path], Start] = until_request if case in ASKING else to_the_end
        return run(case, places, Path(folder))


def table(found: Mapping[str, Sequence[Start]]) -> str:
    """Medians as text, columns aligned."""
    lines = [f"{'case':<18}{'wall_s':>9}{'cpu_s':>9}"]
    for case, starts in found.items():
        wall, cpu = (statistics.median(getattr(one, name) for one in starts) for name in ("wall_s", "cpu_s"))
        lines.append(f"{case:<18}{wall:>9.2f}{cpu:>9.2f}")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=CASES, dest="cases")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--new-images", action="store_true", help="begin each run with an empty image store")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, help="a file for every start's numbers")
    options = parser.parse_args()
    cases = [case for case in CASES if case in (options.cases or CASES)]
    found: dict[str, list[Start]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder), options.questions, options.new_images)
        places.prepare()
        # What others read must be there, and the first round fills the disk's cache.
        for case in dict.fromkeys(["replay", *cases]):
            start(case, places)
        for _ in range(options.repeat):
            for case in cases:
                found[case].append(start(case, places))
    # Children inherit it: without bytecode on disk each start compiles every module, about 1.5 s more.
    print(f"PYTHONDONTWRITEBYTECODE is {'set' if sys.dont_write_bytecode else 'not set: bytecode is kept'}")
    print(table(found))
    if options.json:
        numbers = [asdict(one) for starts in found.values() for one in starts]
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
