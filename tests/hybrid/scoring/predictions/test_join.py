"""Foreign predictions matched to BLINK's questions: by id, by proven order, by text; nothing is dropped silently."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hybrid.benchmarks.base import PredictedRow, ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.benchmarks.mvp_bench import BENCHMARK as MVP
from hybrid.core.errors import DataError, UsageError
from hybrid.core.types import Kind, Question
from hybrid.plugins.registry import load
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.predictions.base import Recognised
from hybrid.scoring.predictions.join import join
from hybrid.scoring.reports import score_paths
from tests.image_bytes import saved

OWN = load("hybrid.benchmarks", "questions")
OPTIONS = ScoreOptions()
HEADING = ("index", "question", "A", "B", "answer", "category", "prediction")


def question(task: str, number: int, answer: str = "A", text: str = "Which?", **changes: Any) -> Question:
    facts: dict[str, Any] = {"choices": ("left", "right"), "target": f"({answer})", "route": task}
    return Question(f"val_{task}_{number}", task, (), text, Kind.CHOICE, **{**facts, **changes})


def puzzles(answers: str, first: int = 1) -> list[Question]:
    return [question("Jigsaw", number, answer) for number, answer in enumerate(answers, first)]


def rows(answers: str, task: str = "Jigsaw", **changes: Any) -> list[PredictedRow]:
    """Return rows in the order of the answers, with an index that starts at 41."""
    return [
        PredictedRow(f"line {n}", f"reply {n}", task=task, index=40 + n, text="Which?", answer=answer, **changes)
        for n, answer in enumerate(answers, 1)
    ]


def card(jigsaws: int) -> Any:
    return replace(BENCHMARK.card, tasks={**BENCHMARK.card.tasks, "Jigsaw": jigsaws})


def replies(joined: Any) -> dict[str, str]:
    return {question.id: prediction.text for question, prediction in joined.pairs}


@pytest.mark.parametrize(
    "result",
    [rows("ABBB"), rows("ABB"), [replace(row, answer=None) for row in rows("ABBA")], rows("ABBA", choices=("x", "y"))],
    ids=["another answer", "a row is missing", "no answers", "other options"],
)
def test_an_order_that_is_not_proven_is_not_used(result: list[PredictedRow]) -> None:
    with pytest.raises(DataError, match="predictions fits a question of the data: Jigsaw 41"):
        join(Recognised("f", tuple(result)), card(4), puzzles("ABBA"))


def test_ids_come_first_and_strangers_are_listed() -> None:
    values = (
        PredictedRow("line 1", "x", id="val_Jigsaw_2", answer="B"),
        PredictedRow("line 2", "y", id="val_Jigsaw_9"),
    )
    joined = join(Recognised("f", values), card(2), puzzles("AB"))
    assert replies(joined) == {"val_Jigsaw_2": "x"}
    assert (joined.origin.missing, joined.origin.extra) == (("val_Jigsaw_1",), ("val_Jigsaw_9",))
    assert joined.origin.lines() == (
        "format: f",
        "joined 1 row by the benchmark's ids",
        "missing: 1 question of the data has no prediction: val_Jigsaw_1",
        "extra: 1 prediction has no question in the data: val_Jigsaw_9",
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
    result = rows("".join(answers))
    joined = join(Recognised("f", tuple(result[place] for place in order)), card(6), puzzles("".join(answers)))
    assert replies(joined) == {f"val_Jigsaw_{n}": f"reply {n}" for n in range(1, 7)}


def sheet(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADING, delimiter="\t", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(lines)
    return path


def relation(number: int, reply: str, **changes: Any) -> dict[str, Any]:
    """Return a line about a question of the test data, whose right answer alternates between (A) and (B)."""
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
        ({"category": "other"}, "line 2: 'other' is not a BLINK task"),
        ({"answer": "C"}, "line 2: the answer '\\(C\\)' is not one of the 2 choices"),
        ({"answer": ""}, "the answer None is not one of the "),
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
    """The order of a whole task identifies its questions: a sheet has all 150 puzzles, whose texts are the same, and
    half of the puzzles are available."""
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


def own_table(folder: Path, count: int = 6) -> Path:
    """Return a user's TSV in VLMEvalKit's layout, with indices that are not a counter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "red.png").write_bytes(saved(Image.new("RGB", (8, 8), (200, 30, 30))))
    path = folder / "own.tsv"
    heading = ("index", "image_path", "question", "A", "B", "answer", "category")
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(heading)
        for number in range(count):
            writer.writerow(
                (262148000 + 3 * number, "red.png", f"Which of {number}?", "left", "right", "AB"[number % 2], "x")
            )
    return path


def predicted_sheet(table: Path, path: Path, reply: str = "A", rows: int = 6) -> Path:
    """Return the sheet that VLMEvalKit's inference writes: the table's rows without pictures, and `prediction`."""
    with table.open(newline="") as file:
        request = list(csv.DictReader(file, delimiter="\t"))[:rows]
    with path.open("w", newline="") as file:
        names = [name for name in request[0] if name != "image_path"]
        writer = csv.DictWriter(file, [*names, "prediction"], delimiter="\t", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**row, "prediction": reply} for row in request)
    return path


def test_a_sheet_of_ones_own_table_joins_by_index(tmp_path: Path) -> None:
    table = own_table(tmp_path)
    sheet = predicted_sheet(table, tmp_path / "model_own.tsv")
    scored = score_predictions(sheet, OWN, None, OPTIONS, str(table))
    assert scored.origin is not None
    assert "joined 6 rows by their index, which is the data's id" in scored.origin.lines()
    assert [score.id for score in scored.scores] == [str(262148000 + 3 * number) for number in range(6)]
    assert [score.correct for score in scored.scores] == [1.0, 0.0] * 3


def test_a_sheet_of_another_table_with_the_same_index_is_not_joined(tmp_path: Path) -> None:
    table = own_table(tmp_path)
    sheet = predicted_sheet(table, tmp_path / "model_own.tsv")
    sheet.write_text(sheet.read_text().replace("Which of 3?", "What is 3?"))
    with pytest.raises(DataError, match=r"262148000 is a rotation of a circular data set, or an id in"):
        score_predictions(sheet, OWN, None, OPTIONS, str(table))


def test_rotations_join_the_rotations_of_the_table(tmp_path: Path) -> None:
    table = own_table(tmp_path, 0)
    lines = ["7\tred.png\tWhich?\tleft\tright\tA\tx", "1000007\tred.png\tWhich?\tright\tleft\tB\tx"]
    table.write_text(table.read_text() + "".join(f"{line}\n" for line in lines))
    sheet = predicted_sheet(table, tmp_path / "model_own.tsv", "B")
    scored = score_predictions(sheet, OWN, None, OPTIONS, str(table))
    assert [(score.id, score.correct) for score in scored.scores] == [("7", 0.0), ("7#circ1", 1.0)]


def test_predictions_of_a_part_say_of_how_many_questions(tmp_path: Path) -> None:
    table = own_table(tmp_path)
    sheet = predicted_sheet(table, tmp_path / "model_own.tsv", rows=4)
    report = score_paths([sheet], benchmark="questions", data=str(table), out=tmp_path / "run")
    direct = score_paths([sheet], benchmark="questions", data=str(table))
    for item in (report, direct):
        text = " ".join(item.render().split())
        assert "4 of 6 questions" in text
        assert "has predictions for 4 of 6 questions of the data" in text
        assert "4/4" not in text


def test_a_submission_is_read_with_the_data(tmp_path: Path) -> None:
    path = tmp_path / "submission.json"
    path.write_text(json.dumps({"1": "(A)", "2": "(Z)", "3": None, "4": "B", "9": "A"}))
    table = own_table(tmp_path, 0)
    rows = "".join(f"{number}\tred.png\tWhich?\tleft\tright\tA\tx\n" for number in range(1, 5))
    table.write_text(table.read_text() + rows)
    scored = score_predictions(path, OWN, None, OPTIONS, str(table))
    assert [score.answer for score in scored.scores] == ["A", None, None, "B"]
    assert scored.origin is not None
    assert scored.origin.extra == ("9",)
    with pytest.raises(UsageError, match="holds neither questions nor right answers: give --data DIR"):
        score_predictions(path, OWN, None, OPTIONS)


def test_files_of_joined_pictures_are_read_by_their_task(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "blink_outputs" / "GPT4o" / "Jigsaw.json"
    (tmp_path / "Jigsaw_concat.json").write_bytes(source.read_bytes())
    concat = score_predictions(tmp_path, BENCHMARK, "stored", OPTIONS)
    assert len(concat.scores) == 150
    assert [score.correct for score in concat.scores] == [
        score.correct for score in score_predictions(source, BENCHMARK, "stored", OPTIONS).scores
    ]
    (tmp_path / "Jigsaw.json").write_bytes(source.read_bytes())
    with pytest.raises(DataError, match=r"Jigsaw\.json and Jigsaw_concat\.json: they come from two runs"):
        score_predictions(tmp_path, BENCHMARK, "stored", OPTIONS)
