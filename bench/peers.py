"""The tool service compared with alternatives: the same images through the same networks, with random weights.

    uv run --with litserve==0.2.19 --with inspect-ai==0.3.285 python -m bench.peers
    uv run python -m bench.peers --program loop --program hybrid --images 32      # needs neither

Each program sends `--images` images (JPEG files, 640x480) through a small network of the architecture of Depth Anything
V2 (depth), OWLv2 (detection) or EfficientLoFTR (matching, in pairs), all on the CPU with one thread per operation:

    loop             a loop of PyTorch over batches of eight, in one process
    loader           a DataLoader whose two workers read and prepare the batches
    pipeline         transformers' pipeline(batch_size=8); matching pair by pair, as that pipeline makes no batches
    litserve         a LitServe server that batches up to eight, 32 requests in flight
    http             an HTTP server of one tool, asked one request after the other
    inspect          Inspect AI, whose model calls the network as a tool, 32 samples in flight
    hybrid           this project's tool service with its worker process, 32 requests in flight
    hybrid-overlays  the same with the overlays that a report shows

The programs run in turn, `--repeat` times, each in a separate process. wall_s and cpu_s are from the start of the first
process to the last answer, of all processes; window_s and window_cpu_s begin when everything is loaded. The table shows
medians, and each number's ratio to that of `loop` in the same turn. Only `hybrid` writes every output to a cache on
disk, writes the text that a model reads, and survives a tool that hangs or crashes.
"""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._frame import environment, family, measured, options, table, turns, write_json
from bench._networks import NETWORKS
from bench._peer_clients import ANSWERS, PROGRAMS, STARTED
from bench._peer_network import WORK
from bench._throughput import machine, pictures
from hybrid.samples.item import jpeg

POLL_S = 0.02
# Packages without which a program cannot run.
NEEDED: Mapping[str, str] = {"litserve": "litserve", "inspect": "inspect_ai"}
# Programs that return the network's own numbers, which have to agree.
SAME_NUMBERS = ("loop", "loader", "pipeline", "litserve", "http", "inspect")
TOLERANCE = 1e-3


@dataclass(frozen=True)
class PeerRun:
    """The cost of one program in one turn."""

    work: str
    program: str
    wall_s: float
    cpu_s: float
    window_s: float
    window_cpu_s: float


@dataclass(frozen=True)
class PeerRow:
    """Medians of a program, and of its ratios to `loop` in the same turn."""

    work: str
    program: str
    wall_s: float
    cpu_s: float
    window_s: float
    window_cpu_s: float
    wall_ratio: float
    cpu_ratio: float
    window_ratio: float
    window_cpu_ratio: float


class Watch:
    """Waits for the answers of a program, and notes time and CPU time when it has loaded everything."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.began_s = self.cpu_s = 0.0

    def finished(self) -> bool:
        """Wait a moment, and return whether the answers are there."""
        time.sleep(POLL_S)
        started = self.out / STARTED
        if not self.began_s and started.exists():
            self.began_s, self.cpu_s = time.time(), sum(family(int(started.read_text())).values())
        return (self.out / ANSWERS).exists()


def run_program(work: str, program: str, images: Path, checkpoint: Path) -> tuple[PeerRun, list[float]]:
    """Run a program once; return its cost and its answers. Raises `SystemExit` if it fails."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        out = Path(folder)
        watch = Watch(out)
        words = [sys.executable, "-m", "bench._peer_clients", program, work, "--images", str(images)]
        words += ["--checkpoint", str(checkpoint), "--out", str(out)]
        threads = environment(out / "home", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
        root = Path(__file__).resolve().parents[1]
        result = measured(words, threads, out / "log.txt", kill_when=watch.finished, cwd=root)
        if result.killed is None:
            raise SystemExit(f"{program} ended before its answers")
        answers = json.loads((out / ANSWERS).read_text())
        window = (result.killed - watch.began_s, result.cpu_s - watch.cpu_s)
        return PeerRun(work, program, result.wall_s, result.cpu_s, *window), answers


def check_answers(work: str, program: str, answers: Sequence[float], expected: Sequence[float]) -> None:
    """Raise `SystemExit` if a program's answers differ from the loop's in number or in value."""
    if len(answers) != len(expected):
        raise SystemExit(f"{work}: {program} answered {len(answers)} of {len(expected)} requests")
    pairs = zip(answers, expected, strict=True)
    if program in SAME_NUMBERS and not all(math.isclose(*pair, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for pair in pairs):
        raise SystemExit(f"{work}: {program} does not return what the loop returns")


def with_ratios(runs: Sequence[PeerRun]) -> list[PeerRow]:
    """Return a row per work and program: medians, and the medians of the ratios to `loop` in the same turn."""
    groups: dict[tuple[str, str], list[PeerRun]] = {}
    for run in runs:
        groups.setdefault((run.work, run.program), []).append(run)
    names, rows = ("wall_s", "cpu_s", "window_s", "window_cpu_s"), []
    for (work, program), group in groups.items():
        numbers = [statistics.median(getattr(run, name) for run in group) for name in names]
        pairs = list(zip(group, groups.get((work, "loop"), ()), strict=False))
        ratios = [statistics.median(getattr(run, name) / getattr(base, name) for run, base in pairs) for name in names]
        rows.append(PeerRow(work, program, *numbers, *ratios))
    return rows


def write_images(folder: Path, count: int) -> None:
    """Write the images."""
    folder.mkdir()
    for number, pixels in enumerate(pictures(count, seed=2000)):
        (folder / f"{number:06}.jpg").write_bytes(jpeg(pixels))


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    flags = {"--program": [*PROGRAMS], "--work": [*WORK], "--images": 128, "--repeat": 3, "--json": Path}
    arguments = options(__doc__, flags, words)
    if arguments.images % 2:
        raise SystemExit("--images: matching needs an even number")
    requested = [name for name in PROGRAMS if name in (arguments.program or PROGRAMS)]
    missing = [name for name in requested if name in NEEDED and importlib.util.find_spec(NEEDED[name]) is None]
    programs = list(dict.fromkeys(["loop", *(name for name in requested if name not in missing)]))
    works = arguments.work or list(WORK)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_images(root / "images", arguments.images)
        for work in works:
            (root / work).mkdir()
            NETWORKS[WORK[work]].build(root / work, real=False)
        expected: dict[str, list[float]] = {}

        def once(case: tuple[str, str]) -> PeerRun:
            work, program = case
            run, answers = run_program(work, program, root / "images", root / work)
            check_answers(work, program, answers, expected.setdefault(work, answers))
            return run

        runs = turns([(work, program) for work in works for program in programs], arguments.repeat, once)
    print(f"{arguments.images} images, {machine('cpu')}")
    print(table(with_ratios(runs)))
    if missing:
        print(f"left out, because the package is not installed: {', '.join(missing)}")
    write_json(arguments.json, runs)


if __name__ == "__main__":
    main()
