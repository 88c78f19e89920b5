"""Measure the peak memory of a run by number of questions: it is flat if questions are streamed and then dropped.

    python -m bench.memory [--client hybrid-mllm]... [--questions 100 --questions 1000 --questions 5000] [--repeat 1]
                           [--json FILE]

The clients, questions and server are those of `bench.loop`: a JPEG of about 50 kB a question, 64 in flight, answers
after 100 ms. peak_mb is the peak memory of the process and its descendants, sampled ten times a second; a file page (of
a library) that several of them share counts once. summed_mb is the largest sum of their resident memory, in which
shared pages count for each process. Values are medians of `--repeat` runs.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench._frame import medians, options, resident_mb, table, turns, used_mb, write_json
from bench._loop_questions import write_questions
from bench.loop import CLIENTS, run_client

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


def main() -> None:
    """Print the table."""
    flags = options(__doc__, {"--client": list(CLIENTS), "--questions": [int], "--repeat": 1, "--json": Path})
    counts = flags.questions or COUNTS
    with tempfile.TemporaryDirectory() as folder:
        questions = {count: write_questions(Path(folder) / str(count), count) for count in counts}

        def peak(case: tuple[str, int]) -> Peak:
            client, count = case
            result, _ = run_client(client, questions[count], IN_FLIGHT, looks=(used_mb, resident_mb))
            return Peak(client, count, *result.peaks_mb)

        cases = [(client, count) for count in counts for client in flags.client or COMPARED]
        rows = turns(cases, flags.repeat, peak)
    print(table(medians(rows, "client", "questions")))
    write_json(flags.json, rows)


if __name__ == "__main__":
    main()
