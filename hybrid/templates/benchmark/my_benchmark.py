"""Where the second of two pictures differs from the first: an example to be changed.

`hybrid run my_benchmark --data sample --limit 4 --solver chance --path my_benchmarks`

The folder of the data has pictures and `questions.jsonl`, one JSON object per line: `id`, `images` (two files), and the
box that differs, `box_px` (left, top, right, bottom).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from hybrid.benchmark import (
    AS_PAPERS,
    Benchmark,
    BenchmarkCard,
    BrokenQuestion,
    Cell,
    DataError,
    Exchange,
    Kind,
    Metric,
    MetricCard,
    Outcome,
    Point,
    Question,
    Score,
    ScoreOptions,
    Source,
    accuracy,
    metric_of,
    parse,
    unanswered,
)

TASK = "difference"
TEXT = "The two pictures differ in one place. Which point of the second picture lies there?"
SIZE_PX = (160, 120)


class MyBenchmark(Benchmark):
    """One ask per question with both pictures; a point inside the box is right."""

    card = BenchmarkCard(
        name="my_benchmark",
        title="Where two pictures differ",
        citation="an example",
        licence="Apache-2.0",
        image_sources=(),
        hub_id=None,
        splits=("test",),
        # Number of questions of the first split; 0 if unknown.
        tasks={TASK: 0},
        # The tasks that `--data sample` draws.
        sample_tasks=(TASK,),
        routes_are_tasks=True,
        metrics=(
            MetricCard("accuracy", "points inside of the box / questions", "questions", "ours"),
            MetricCard("distance", "mean distance of a point to the middle of the box, px", "points", "ours"),
        ),
    )

    def tasks(self, source: Source) -> tuple[str, ...]:
        """Return the tasks of the data."""
        return (TASK,)

    def files(self, source: Source) -> tuple[Path, ...]:
        """The table, whose hash is part of a run's configuration."""
        return (source.folder / "questions.jsonl",)

    def questions(self, source: Source) -> Iterator[Question | BrokenQuestion]:
        """Yield one question per row; an unusable row becomes a broken question."""
        for number, line in enumerate((source.folder / "questions.jsonl").read_text("utf-8").splitlines(), 1):
            try:
                yield self._question(source, json.loads(line))
            except (ValueError, KeyError, OSError, DataError) as error:
                yield BrokenQuestion(f"line{number}", TASK, f"questions.jsonl:{number}: {error!r}")

    def _question(self, source: Source, row: dict[str, object]) -> Question:
        names = [str(name) for name in row["images"]]  # type: ignore[attr-defined]
        images = tuple(source.store.put((source.folder / name).read_bytes(), name) for name in names)
        return Question(str(row["id"]), TASK, images, TEXT, Kind.POINT, target=row["box_px"], route=TASK)  # type: ignore[arg-type]

    def score(self, question: Question, exchanges: Sequence[Exchange], options: ScoreOptions) -> Score:
        """Score as right if the last reply names a point inside of the box."""
        reply = exchanges[-1].reply
        point = parse(reply.text, question.kind).value
        if isinstance(point, Point):
            return self._judge(question, point)
        # An abstention, a fault of a tool or an unreadable reply is no answer.
        outcome = Outcome.UNPARSED if reply.outcome is Outcome.ANSWERED else reply.outcome
        return Score(question.id, question.task, unanswered(outcome, 0.0, options), outcome)

    def score_stored(self, question: Question, stored: str, options: ScoreOptions = AS_PAPERS) -> Score:
        """Score an answer that another program stored."""
        point = parse(stored, question.kind).value
        if isinstance(point, Point):
            return self._judge(question, point)
        return Score(question.id, question.task, 0.0, Outcome.UNPARSED)

    def _judge(self, question: Question, point: Point) -> Score:
        x0, y0, x1, y1 = box_of(question)
        inside = x0 <= point.x < x1 and y0 <= point.y < y1
        distance = float(np.hypot(point.x - (x0 + x1) / 2, point.y - (y0 + y1) / 2))
        answer = f"({point.x:g}, {point.y:g})"
        values = {"distance": distance}
        return Score(question.id, question.task, float(inside), Outcome.ANSWERED, answer, "point", values)

    def summarise(self, scores: Sequence[Score]) -> tuple[Metric, ...]:
        """Return the share of right points and a custom metric, to which each question contributes a `Cell`."""
        cells = [Cell("", score.unit, score.values["distance"], 1.0) for score in scores if "distance" in score.values]
        return (accuracy("accuracy", scores), metric_of("distance", cells, share=False))

    def oracle(self, question: Question, prompt: object) -> str:
        """Return the output of a perfect tool (`--tool-output oracle`)."""
        return f"The pictures differ at {self._middle(question)}."

    def oracle_answer(self, question: Question, prompt: object) -> str:
        """Return the right reply."""
        return f"Answer: {self._middle(question)}"

    def _middle(self, question: Question) -> str:
        x0, y0, x1, y1 = box_of(question)
        return f"({(x0 + x1) / 2:g}, {(y0 + y1) / 2:g})"

    def generate(self, folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: str = "sample") -> None:
        """Draw questions in the layout of the data: noise, and a bright square in the second picture."""
        rng = np.random.default_rng(seed)
        width, height = SIZE_PX
        rows = []
        for number in range(1, per_task + 1):
            first = rng.integers(60, 120, (height, width, 3), dtype=np.uint8)
            x0, y0 = int(rng.integers(0, width - 24)), int(rng.integers(0, height - 24))
            second = first.copy()
            second[y0 : y0 + 24, x0 : x0 + 24] = 240
            names = [f"{number}_{place}.png" for place in (1, 2)]
            for name, pixels in zip(names, (first, second), strict=True):
                Image.fromarray(pixels).save(folder / name)
            rows.append({"id": str(number), "images": names, "box_px": [x0, y0, x0 + 24, y0 + 24]})
        lines = [json.dumps(row) for row in rows]
        (folder / "questions.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")


def box_of(question: Question) -> tuple[float, ...]:
    """Return left, top, right and bottom of the box that differs."""
    if not isinstance(question.target, list | tuple):
        raise TypeError(f"{question.id}: its target is not a box")
    return tuple(float(side) for side in question.target)


BENCHMARK = MyBenchmark()
