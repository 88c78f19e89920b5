"""Peak memory of a run over its number of questions: flat, if questions stream and finished ones are dropped.

    python -m bench.memory [--client hybrid-mllm]... [--questions 100 --questions 1000 --questions 5000] [--repeat 1]
                           [--json FILE]

The clients, questions and server are those of `bench.loop`: a JPEG of about 50 kB a question, 64 in flight, answers
after 100 ms. peak_mb is the most memory of the process and all that it started, looked at ten times a second: a page
of a file (a library) that several of them share counts once. summed_mb is the largest sum of their resident memory,
where it counts for each. Medians of `--repeat` runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._chat_server import chat_server
from bench._loop_questions import write_questions
from bench.loop import CLIENTS, LATENCY_S, command, family, measured, resident_mb

COMPARED = ("hybrid-mllm", "hybrid-controller", "langgraph")
COUNTS = (100, 1000, 5000)
IN_FLIGHT = 64


@dataclass(frozen=True)
class Peak:
    """The memory of one run."""

    client: str
    questions: int
    peak_mb: float
    summed_mb: float


def used_mb(root: int) -> float:
    """Memory of a process and its descendants, in MB; a page of a file counts once. 0 when they are gone."""
    own, shared = 0, dict[tuple[str, str, str], int]()
    for one in family(root):
        try:
            lines = Path(f"/proc/{one}/smaps").read_text().splitlines()
        except OSError:
            continue
        place, resident = ("", "", ""), 0
        for line in lines:
            name, *rest = line.split()
            match name:
                case "Rss:":
                    resident = int(rest[0])
                case "Anonymous:":
                    own += int(rest[0])
                    shared[place] = max(shared.get(place, 0), resident - int(rest[0]))
                case _ if not name.endswith(":"):
                    _, offset, device, inode = rest[:4]
                    place = device, inode, offset
    return (own + sum(shared.values())) * 1024 / 1e6


def peak(client: str, questions: Path, count: int) -> Peak:
    """Run a client over all questions. Raises `SystemExit` where it fails."""
    with tempfile.TemporaryDirectory() as folder, chat_server(LATENCY_S) as server:
        out = Path(folder)
        words = command(client, server.url, questions, IN_FLIGHT, out)
        summed = [0.0]

        def both(root: int) -> float:
            summed[0] = max(summed[0], resident_mb(root))
            return used_mb(root)

        ended = measured(words, out / "home", out / "log", both)
        return Peak(client, count, ended.memory_mb, summed[0])


def table(peaks: Mapping[tuple[str, int], Sequence[Peak]], clients: Sequence[str], counts: Sequence[int]) -> str:
    """Medians as text: a table for each of the two numbers, a line a client, a column a number of questions."""
    lines = []
    for number in ("peak_mb", "summed_mb"):
        lines += ["", f"{number:<20}" + "".join(f"{count:>10,}" for count in counts)]
        for client in clients:
            medians = (statistics.median(getattr(one, number) for one in peaks[client, count]) for count in counts)
            lines.append(f"{client:<20}" + "".join(f"{mb:>10.0f}" for mb in medians))
    return "\n".join(lines[1:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", action="append", choices=CLIENTS, dest="clients")
    parser.add_argument("--questions", action="append", type=int, dest="counts")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for every run's numbers")
    options = parser.parse_args()
    clients, counts = tuple(options.clients or COMPARED), tuple(options.counts or COUNTS)
    found: dict[tuple[str, int], list[Peak]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            questions = write_questions(Path(folder) / str(count), count)
            for client in clients:
                found[client, count] = [peak(client, questions, count) for _ in range(options.repeat)]
    print(table(found, clients, counts))
    if options.json:
        numbers = [asdict(one) for peaks in found.values() for one in peaks]
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
