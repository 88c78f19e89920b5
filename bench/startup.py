"""Measure the cost of starting: CPU and wall time until the first request, or of a command without requests.

    python -m bench.startup [--case mllm]... [--questions 2] [--new-images] [--repeat 5] [--json FILE]

The cases run in turn, `--repeat` times, each in a separate process, after one round that fills the page cache and the
image store; the table shows medians. The first seven are of `hybrid`:

    help                 `hybrid --help`, to its end
    mllm, controller     `hybrid run` of `--questions` until the first request reaches a server on this machine; the
                         controller offers `crop`. All images are in the store from an earlier run, or with
                         `--new-images` none is
    replay               `hybrid run` of two recorded replies, scored and printed, to its end
    resume               the same again, with nothing to do
    score, compare       `hybrid score` and `hybrid compare` of that run

The others are for comparison: `import-langgraph` is `python -c "import langgraph.graph"`, and `aiohttp`, `openai`,
`langgraph` are the bare loops of `bench._bare_clients` until their first request; they read a file when they ask. cpu_s
is the CPU time of the process and its descendants, in steps of 10 ms if it is read before the end.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._chat_server import on_thread
from bench._frame import environment, measured, medians, options, table, turns, write_json
from bench._loop_questions import TASK, write_questions
from bench.loop import command

QUESTIONS = 2
IN_FLIGHT = 64
POLL_S = 1.0
HYBRID = ("help", "mllm", "controller", "replay", "resume", "score", "compare")
BARE = ("import-langgraph", "aiohttp", "openai", "langgraph")
CASES = (*HYBRID, *BARE)
# Cases that end with the first request, mapped to their clients in `bench.loop`.
ASKING = {"mllm": "hybrid-mllm", "controller": "hybrid-controller", "aiohttp": "aiohttp"} | {
    name: name for name in ("openai", "langgraph")
}


@dataclass(frozen=True)
class Start:
    """Seconds of one start: until the first request, or for the whole command."""

    case: str
    wall_s: float
    cpu_s: float


class Places:
    """Paths of the questions, the recorded replies, the home and the run of all cases."""

    def __init__(self, root: Path, count: int, *, new_images: bool) -> None:
        self.questions, self.home = write_questions(root / "questions", count), root / "home"
        self.replies, self.run = root / "model", root / "run"
        self.new_images = new_images
        self.replies.mkdir()
        lines = [{"id": f"val_{TASK}_{number}", "text": "Answer: (A)"} for number in range(1, count + 1)]
        (self.replies / "recordings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def words(case: str, places: Places) -> list[str]:
    """Return the command line of a case that runs to its end."""
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


@contextmanager
def first_request() -> Iterator[tuple[str, threading.Event]]:
    """Yield the address of a server, and an event that is set when a request arrives; the server never answers."""
    came = threading.Event()

    def answer(head: bytes, _: bytes) -> bytes:
        if head.startswith(b"POST"):
            came.set()
        raise ConnectionError

    with on_thread(answer) as url:
        yield f"{url}/v1", came


def start(case: str, places: Places) -> Start:
    """Start a case once: until its first request, or to its end."""
    with tempfile.TemporaryDirectory() as folder, first_request() as (url, came):
        out = Path(folder)
        if case in ASKING:
            asking = command(ASKING[case], url, places.questions, IN_FLIGHT, out)
            home = environment(out / "home" if places.new_images else places.home)
            measurement = measured(asking, home, out / "log", kill_when=lambda: came.wait(POLL_S))
            if measurement.killed is None:
                raise SystemExit(f"{' '.join(asking)} asked nothing:\n{(out / 'log').read_text()[-3000:]}")
        else:
            if case == "replay" and places.run.exists():
                places.run.rename(out / "earlier")
            measurement = measured(words(case, places), environment(places.home), out / "log")
    return Start(case, measurement.wall_s, measurement.cpu_s)


def main() -> None:
    """Print the table."""
    flags = {"--case": list(CASES), "--questions": QUESTIONS, "--new-images": False, "--repeat": 5, "--json": Path}
    arguments = options(__doc__, flags)
    cases = [case for case in CASES if case in (arguments.case or CASES)]
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder), arguments.questions, new_images=arguments.new_images)
        # This round creates the files that other cases read, and fills the page cache.
        for case in dict.fromkeys(["replay", *cases]):
            start(case, places)
        rows = turns(cases, arguments.repeat, lambda case: start(case, places))
    print(table(medians(rows, "case")))
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
