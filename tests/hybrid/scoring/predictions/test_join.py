"""Foreign predictions put to BLINK's questions: by id, by proven order, by text; nothing is dropped in silence."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.base import PredictedRow, ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.benchmarks.mvp_bench import BENCHMARK as MVP
from hybrid.errors import DataError, UsageError
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.predictions.base import Recognised
from hybrid.scoring.predictions.join import join
from hybrid.types import Kind, Question

OPTIONS = ScoreOptions()
HEADING = ("index", "question", "A", "B", "answer", "category", "prediction")


def question(task: str, number: int, answer: str = "A", text: str = "Which?", **changes: Any) -> Question:
    facts: dict[str, Any] = {"choices": ("left", "right"), "target": f"({answer})", "route": task}
    return Question(f"val_{task}_{number}", task, (), text, Kind.CHOICE, **{**facts, **changes})


def puzzles(answers: str, first: int = 1) -> list[Question]:
    return [question("Jigsaw", number, answer) for number, answer in enumerate(answers, first)]


def rows(answers: str, task: str = "Jigsaw", **changes: Any) -> list[PredictedRow]:
    """Rows with an index that starts anywhere, in the order of the answers."""
    return [
        PredictedRow(f"line {n}", f"reply {n}", task=task, index=40 + n, text="Which?", answer=answer, **changes)
        for n, answer in enumerate(answers, 1)
    ]


def card(jigsaws: int) -> Any:
    return replace(BENCHMARK.card, tasks={**BENCHMARK.card.tasks, "Jigsaw": jigsaws})


def replies(joined: Any) -> dict[str, str]:
    return {question.id: prediction.text for question, prediction in joined.pairs}


@pytest.mark.parametrize(
    "found",
    [rows("ABBB"), rows("ABB"), [replace(row, answer=None) for row in rows("ABBA")], rows("ABBA", choices=("x", "y"))],
    ids=["another answer", "a row is missing", "no answers", "other options"],
)
def test_an_order_that_is_not_proven_is_not_used(found: list[PredictedRow]) -> None:
    with pytest.raises(DataError, match="predictions fits a question of the data: Jigsaw 41"):
        join(Recognised("f", tuple(found)), card(4), puzzles("ABBA"))


def test_ids_come_first_and_strangers_are_listed() -> None:
    found = (PredictedRow("line 1", "x", id="val_Jigsaw_2", answer="B"), PredictedRow("line 2", "y", id="val_Jigsaw_9"))
    joined = join(Recognised("f", found), card(2), puzzles("AB"))
    assert replies(joined) == {"val_Jigsaw_2": "x"}
    assert (joined.origin.missing, joined.origin.extra) == (("val_Jigsaw_1",), ("val_Jigsaw_9",))
    assert joined.origin.lines() == (
        "format: f",
        "joined 1 rows by the benchmark's ids",
        "missing: 1 questions of the data have no prediction: val_Jigsaw_1",
        "extra: 1 predictions have no question in the data: val_Jigsaw_9",
    )


def test_contradictions_are_errors() -> None:
    twice = (PredictedRow("line 1", "x", id="val_Jigsaw_1"), PredictedRow("line 2", "y", id="val_Jigsaw_1"))
    with pytest.raises(DataError, match="line 2: val_Jigsaw_1 is also answered in line 1"):
        join(Recognised("f", twice), card(1), puzzles("A"))
    wrong = (PredictedRow("line 1", "x", id="val_Jigsaw_1", answer="B"),)
    with pytest.raises(DataError, match=r"line 1: the answer to val_Jigsaw_1 is 'B', in the data '\(A\)'"):
        join(Recognised("f", wrong), card(1), puzzles("A"))


@given(st.permutations(range(6)), st.lists(st.sampled_from("AB"), min_size=6, max_size=6))
def test_the_order_of_the_lines_changes_nothing(order: list[int], answers: list[str]) -> None:
    found = rows("".join(answers))
    joined = join(Recognised("f", tuple(found[place] for place in order)), card(6), puzzles("".join(answers)))
    assert replies(joined) == {f"val_Jigsaw_{n}": f"reply {n}" for n in range(1, 7)}


def sheet(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADING, delimiter="\t", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(lines)
    return path


def relation(number: int, reply: str, **changes: Any) -> dict[str, Any]:
    """A line about a question of the test data, which alternates between (A) and (B)."""
    text = f"Is the cat {number} on the mat?"
    facts = {"index": 100 + number, "question": text, "A": "yes", "B": "no", "answer": "A" if number % 2 else "B"}
    return {**facts, "category": "Spatial_Relation", "prediction": reply, **changes}


def test_a_sheet_is_scored_with_the_data(tmp_path: Path, fakes: Any) -> None:
    data = fakes.blink_folder(tmp_path / "blink", jigsaws=2, spatials=4)
    path = sheet(tmp_path / "GPT4o_BLINK.tsv", [relation(n, "Yes, (A).") for n in (3, 1, 2)] + [relation(77, "no")])
    scored = score_predictions(path, BENCHMARK, None, OPTIONS, str(data))
    assert {score.id: score.correct for score in scored.scores} == {
        "val_Spatial_Relation_1": 1.0,
        "val_Spatial_Relation_2": 0.0,
        "val_Spatial_Relation_3": 1.0,
    }
    assert scored.scores[0].groups["images"] == "1"
    assert "agreement" not in {metric.name for metric in scored.metrics}
    report = scored.as_json()["predictions"]
    assert isinstance(report, dict)
    assert report["missing"] == ["val_Jigsaw_1", "val_Jigsaw_2", "val_Spatial_Relation_4"]
    assert report["extra"] == ["Spatial_Relation 177"]
    with pytest.raises(UsageError, match="keeps no extracted answers; use --field text"):
        score_predictions(path, BENCHMARK, "stored", OPTIONS, str(data))


def test_a_sheet_with_its_own_answers_needs_no_data(tmp_path: Path) -> None:
    path = sheet(tmp_path / "GPT4o_BLINK.tsv", [relation(n, "(A)") for n in (1, 2)])
    scored = score_predictions(path, BENCHMARK, None, OPTIONS)
    assert [(score.id, score.correct) for score in scored.scores] == [
        ("Spatial_Relation_index_101", 1.0),
        ("Spatial_Relation_index_102", 0.0),
    ]
    assert scored.scores[0].groups == {"granularity": "image", "visual_prompt": "none"}
    with pytest.raises(UsageError, match="give the questions of mvp_bench with --data DIR"):
        score_predictions(path, MVP, None, OPTIONS)
    for changes, message in (
        ({"category": "other"}, "line 2: 'other' names no task of BLINK"),
        ({"answer": "C"}, "line 2: the answer '\\(C\\)' is none of the 2 choices"),
        ({"answer": ""}, "the answer None is none"),
    ):
        with pytest.raises(DataError, match=message):
            score_predictions(sheet(tmp_path / "b.tsv", [relation(1, "(A)", **changes)]), BENCHMARK, None, OPTIONS)


def sample_log(path: Path) -> Path:
    lines = []
    for n, reply, parsed in ((1, "(A) yes", "A"), (2, "The answer is (B).", "T"), (3, "", "")):
        entry = {"id": f"val_Spatial_Relation_{n}", "pred_parsed": parsed, "sub_task": "Spatial_Relation"}
        target = "(A)" if n % 2 else "(B)"
        lines.append({"doc_id": n - 1, "target": target, "filtered_resps": [reply], "blink_acc": entry})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("with_data", [True, False])
def test_a_sample_log_has_their_letter_and_the_text(tmp_path: Path, fakes: Any, with_data: bool) -> None:
    data = str(fakes.blink_folder(tmp_path / "blink", jigsaws=0, spatials=3)) if with_data else None
    path = sample_log(tmp_path / "samples_blink_spatial_relation.jsonl")
    stored = score_predictions(path, BENCHMARK, None, OPTIONS, data)
    assert [score.correct for score in stored.scores] == [1.0, 0.0, 0.0]
    text = score_predictions(path, BENCHMARK, "text", OPTIONS, data)
    assert [score.correct for score in text.scores] == [1.0, 1.0, 0.0]
    assert [score.id for score in text.scores] == [f"val_Spatial_Relation_{n}" for n in (1, 2, 3)]
    assert text.scores[2].answer is None


@pytest.mark.system
@pytest.mark.shared_data
def test_the_order_of_whole_tasks_finds_the_published_questions(shared_data: Path, tmp_path: Path) -> None:
    """A sheet of all 150 puzzles, whose questions read alike, against the half of them that is here."""
    saved = json.loads((shared_data / "blink_outputs" / "GPT4o" / "Jigsaw.json").read_text())["val"]
    saved.sort(key=lambda row: int(row["idx"].rsplit("_", 1)[1]))
    lines = [
        relation(
            n, row["full_prediction"], question="can you tell which one", A="the second image", B="the third image"
        )
        | {"answer": row["answer"][1], "category": "Jigsaw"}
        for n, row in enumerate(saved)
    ]
    scored = score_predictions(sheet(tmp_path / "s.tsv", lines), BENCHMARK, "text", OPTIONS, str(shared_data / "blink"))
    direct = score_predictions(
        shared_data / "blink_outputs" / "GPT4o" / "Jigsaw.json", BENCHMARK, "text", OPTIONS, str(shared_data / "blink")
    )
    assert len(scored.scores) == 75
    assert {s.id: s.correct for s in scored.scores} == {s.id: s.correct for s in direct.scores}
