"""Results of other programs, without and with tools: columns, MED's trajectories, and refusals."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.exporting.base import ExportedRun, ExportOptions
from hybrid.exporting.table import EXPORTER as TABLE
from hybrid.scoring.recorded_pair import RecordedReport, decomposed, read_pair
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import results
from hybrid.scoring.sections.decomposition import ANSWERING, GAIN, NAME, PARTS, decompose
from tests.hybrid.scoring.pairs import pair_of
from tests.hybrid.scoring.solvers import letters
from tests.tables import cases


def files(folder: Path, without: str, with_tools: str, suffix: str = "csv") -> tuple[Path, Path]:
    paths = folder / f"without.{suffix}", folder / f"with.{suffix}"
    for path, text in zip(paths, (without, with_tools), strict=True):
        path.write_text(text)
    return paths


def test_csv_with_calls_gives_the_whole_decomposition(tmp_path: Path) -> None:
    paths = files(tmp_path, "id,correct,task\na,0,x\nb,1,x\nc,0,y\nz,1,y\n", "id,correct,calls\nc,1,0\na,1,2\nb,0,1\n")
    pair = read_pair(*paths)
    assert [
        (question.id, question.task, question.alone, question.with_tools, bool(question.tools))
        for question in pair.questions
    ] == [
        ("a", "x", 0, 1, True),
        ("b", "x", 1, 0, True),
        ("c", "y", 0, 1, False),
    ]
    result = decompose(pair.questions, "ratio")
    assert [result[name].value for name in (GAIN, *PARTS)] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3, 0])
    assert (pair.has_calls, pair.only_one) == (True, 1)
    assert any("1 question is in only one of the files" in line for line in pair.missing)


def test_without_calls_gain_and_harm_are_not_split(tmp_path: Path) -> None:
    pair = read_pair(*files(tmp_path, "id,correct\na,false\n", "id,correct\na,true\n"))
    assert not pair.has_calls
    assert "no column calls" in pair.missing[0]
    assert pair.questions[0].with_tools == 1


def test_the_report_has_a_line_a_part_and_every_row(tmp_path: Path) -> None:
    rows = [(f"q{i}", i % 2, (i + 1) % 3 > 0, i % 4) for i in range(24)]
    without = "id,correct\n" + "".join(f"{name},{a}\n" for name, a, _, _ in rows)
    with_tools = "id,correct,calls\n" + "".join(f"{name},{int(w)},{c}\n" for name, _, w, c in rows)
    report = decomposed(read_pair(*files(tmp_path, without, with_tools)), "without", "with")
    (table,) = report.tables()
    assert [line[0] for line in table.rows] == [
        "gain",
        "gain with a call",
        "gain without a call",
        "harm with a call",
        "harm without a call",
    ]
    value = {row.quantity: row.value for row in report.results}
    total = (
        value["gain with a call"]
        + value["gain without a call"]
        - value["harm with a call"]
        - value["harm without a call"]
    )
    assert total == pytest.approx(value["gain"], abs=1e-12)
    assert value["gain"] == pytest.approx(sum(w - a for _, a, w, _ in rows) / 24)
    assert "gain of with over without, 24 questions" in report.render()
    assert len(report.as_json()["results"]) == len(report.rows()) == len(report.results)


def test_a_report_without_calls_has_gains_and_harms(tmp_path: Path) -> None:
    pair = read_pair(*files(tmp_path, "id,correct\na,0\nb,1\nc,1\n", "id,correct\na,1\nb,0\nc,1\n"))
    assert {row.quantity: row.value for row in decomposed(pair, "x", "y").results} == pytest.approx(
        {"gain": 0.0, "gains": 1 / 3, "harms": 1 / 3}
    )
    assert decomposed(pair, "x", "y").tables()[0].notes[0] == "gain = gains - harms"


def test_trajectories_of_med_pair_by_line(tmp_path: Path) -> None:
    def lines(*rows: tuple[int, int]) -> str:
        return "".join(json.dumps({"accuracy_reward": a, "tool_call_counts": c}) + "\n" for a, c in rows)

    pair = read_pair(*files(tmp_path, lines((0, 0), (1, 0)), lines((1, 3), (0, 0)), "jsonl"))
    assert [(question.alone, question.with_tools, bool(question.tools)) for question in pair.questions] == [
        (0, 1, True),
        (1, 0, False),
    ]


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_read_is_named"))
def test_what_cannot_be_read_is_named(tmp_path: Path, without: str, with_tools: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_pair(*files(tmp_path, without, with_tools))


def test_broken_json_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2"):
        read_pair(*files(tmp_path, '{"id": "a", "correct": 1}\n{"id": \n', '{"id": "a", "correct": 1}\n', "jsonl"))


def test_a_json_list_is_read_as_the_same_rows_in_lines(tmp_path: Path) -> None:
    rows = [{"id": f"a{n}\u2028", "correct": n % 2, "calls": 1} for n in range(4)]
    from_list = read_pair(*files(tmp_path, json.dumps(rows, indent=1), json.dumps(rows), "json"))
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    assert from_list == read_pair(*files(tmp_path, lines, lines, "jsonl"))
    with pytest.raises(DataError, match="element 2 of the list is not an object"):
        read_pair(*files(tmp_path, '[{"id": "a", "correct": 1}, 3]', lines, "json"))


def test_tasks_weigh_the_same_where_every_question_has_one(tmp_path: Path) -> None:
    """Tasks have equal weight: one has 30 questions without a gain, the other gains all 3, and the result is +0.5, not
    3 of 33."""
    rows = [(f"x{n}", 1, 1, "x") for n in range(30)] + [(f"y{n}", 0, 1, "y") for n in range(3)]
    without = "id,correct,task\n" + "".join(f"{name},{a},{task}\n" for name, a, _, task in rows)
    with_tools = "id,correct,calls\n" + "".join(f"{name},{b},1\n" for name, _, b, _ in rows)
    pair = read_pair(*files(tmp_path, without, with_tools))
    (gain,) = [row for row in decomposed(pair, "a", "b").results if row.quantity == GAIN]
    assert gain.value == 0.5
    assert "mean over 2 tasks" in gain.note
    assert "; over all 33 questions the gain is +0.091 [" in gain.note
    some = without.replace("x0,1,x", "x0,1,")
    pair = read_pair(*files(tmp_path, some, with_tools))
    (gain,) = [row for row in decomposed(pair, "a", "b").results if row.quantity == GAIN]
    assert gain.value == pytest.approx(3 / 33)
    assert not gain.note, "it is over all questions already"
    assert any("1 question has no task" in line for line in pair.missing)


def test_a_mean_over_tasks_and_a_count_of_the_other_sign_are_both_printed(tmp_path: Path) -> None:
    """A mean over tasks and a count of the opposite sign are both printed: one task loses 4 of 20 questions, the other
    gains 2 of 4, which is +0.15 over tasks and -2 of 24 questions."""
    rows = [(f"x{n}", 1, int(n > 3), "x") for n in range(20)] + [(f"y{n}", 0, int(n < 2), "y") for n in range(4)]
    without = "id,correct,task\n" + "".join(f"{name},{a},{task}\n" for name, a, _, task in rows)
    with_tools = "id,correct,calls\n" + "".join(f"{name},{b},1\n" for name, _, b, _ in rows)
    (gain,) = [
        row
        for row in decomposed(read_pair(*files(tmp_path, without, with_tools)), "a", "b").results
        if row.quantity == GAIN
    ]
    assert gain.value == pytest.approx(0.15)
    assert "; over all 24 questions the gain is -0.083 [" in gain.note
    assert gain.note.endswith("neither a gain nor a loss is claimed")


def by_task(folder: Path, alone: Mapping[str, str], tools: Mapping[str, str]) -> RecordedReport:
    """Decompose two files written from the letters of each task: r is right, any other is wrong."""
    texts = [
        "id,task,correct\n"
        + "".join(f"{task}{n},{task},{int(x == 'r')}\n" for task, of in answers.items() for n, x in enumerate(of))
        for answers in (alone, tools)
    ]
    return decomposed(read_pair(*files(folder, *texts)), "a", "b")


@pytest.mark.parametrize(
    ("alone", "tools", "uneven"),
    [
        # A task of 4 questions carries the mean over tasks.
        ({"Counting": "60r 60w", "Jigsaw": "4w"}, {"Counting": "60r 60w", "Jigsaw": "4r"}, True),
        # The gain is significant over all questions, and not over tasks.
        ({"Counting": "60r 60w", "Jigsaw": "4r 4w"}, {"Counting": "90r 30w", "Jigsaw": "2w 2r 4w"}, True),
        # Both are significant gains, or neither is.
        ({"Counting": "60r 60w", "Jigsaw": "20w"}, {"Counting": "90r 30w", "Jigsaw": "20r"}, False),
        ({"Counting": "60r 60w", "Jigsaw": "10r 10w"}, {"Counting": "61r 59w", "Jigsaw": "11r 9w"}, False),
    ],
)
def test_recorded_results_claim_a_gain_if_compare_does(
    alone: dict[str, str], tools: dict[str, str], uneven: bool, tmp_path: Path
) -> None:
    of_alone, of_tools = ({task: letters(words) for task, words in of.items()} for of in (alone, tools))
    _, _, pair = pair_of(of_alone, of_tools)
    assert (pair.claim == "uneven") is uneven
    report = by_task(tmp_path, of_alone, of_tools)
    gain = report.results[0]
    right = ["".join(of.values()).count("r") for of in (of_alone, of_tools)]
    n = sum(map(len, of_tools.values()))
    assert f"; over all {n} questions the gain is {(right[1] - right[0]) / n:+.3f} [" in gain.note
    assert gain.note.endswith("; the conclusions differ, so neither a gain nor a loss is claimed") is uneven
    for form in ("csv", "text"):
        assert ("neither a gain nor a loss" in " ".join(report.render(form).split())) is uneven
    rows = json.loads(json.dumps(report.as_json()))["results"]
    assert {row["note"] for row in rows} == {gain.note}


def test_the_interval_over_all_questions_is_that_of_files_without_tasks(tmp_path: Path) -> None:
    alone, tools = ({"x": letters(x), "y": letters(y)} for x, y in (("60r60w", "4w"), ("60r60w", "4r")))
    note = by_task(tmp_path, alone, tools).results[0].note
    plain = by_task(tmp_path, {"": "".join(alone.values())}, {"": "".join(tools.values())}).results[0]
    assert not plain.note
    assert f"+0.032 [{plain.low:.3f}, {plain.high:.3f}]" in note


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_cell_costs_its_question_alone(tmp_path: Path, empty: str) -> None:
    without = f"id,correct\na,0\nb,0\nc,{empty}\nd,1\n"
    with_tools = f"id,correct,calls\na,1,2\nb,1,{empty}\nc,1,1\nd,1,0\n"
    pair = read_pair(*files(tmp_path, without, with_tools))
    assert pair.has_calls
    assert [(question.id, bool(question.tools)) for question in pair.questions] == [("a", True), ("d", False)]
    assert "2 questions have an empty cell in correct or calls and are left out." in pair.missing


def test_variants_of_a_question_are_one_cluster_and_facts_must_agree(tmp_path: Path) -> None:
    pair = read_pair(*files(tmp_path, "id,correct\na#r1,0\na#r2,1\n", "id,correct\na#r1,1\na#r2,1\n"))
    assert {question.cluster for question in pair.questions} == {"a"}
    with pytest.raises(DataError, match="a: its task is x in one file and y in the other"):
        read_pair(*files(tmp_path, "id,correct,task\na,0,x\n", "id,correct,task\na,1,y\n"))


def test_a_table_of_ours_can_be_given_with_texts_over_several_lines(tmp_path: Path) -> None:
    paths = files(tmp_path, 'id,note,correct\na,"one\ntwo",0\n', "id,correct,tool_calls,cluster\na,1,2,c1\n")
    (question,) = read_pair(*paths).questions
    assert (question.with_tools, bool(question.tools), question.cluster) == (1, True, "c1")


def test_columns_are_read_in_any_case_and_with_spaces(tmp_path: Path) -> None:
    rows = [("a", 0, 1), ("b", 1, 1), ("c", 0, 1), ("d", 0, 0)]
    without = " ID,Task ,CORRECT\n" + "".join(f"{name},{'x' if name < 'c' else 'y'},{a}\n" for name, a, _ in rows)
    # The rows are in another order, so pairing them by line would be wrong; the last one has a cell too many.
    with_tools = "correct , Calls,id\n" + "".join(f"{w},{w},{name}\n" for name, _, w in rows[::-1])[:-1] + ",beyond\n"
    pair = read_pair(*files(tmp_path, without, with_tools))
    assert [(question.id, question.task) for question in pair.questions] == [*zip("abcd", "xxyy", strict=True)]
    assert [(question.alone, question.with_tools) for question in pair.questions] == [row[1:] for row in rows]
    assert (pair.has_calls, pair.how) == (True, "mean_of_ratios")


def test_a_column_that_has_the_exact_name_is_preferred(tmp_path: Path) -> None:
    pair = read_pair(*files(tmp_path, "id,correct,Correct\na,0,1\n", "Correct,id,correct\n0,a,1\n"))
    assert [(question.alone, question.with_tools) for question in pair.questions] == [(0, 1)]
    # An alias is not used next to the name that it stands for, whichever comes first.
    for header, row in (("calls,tool_calls", "3,"), ("tool_calls,calls", ",3"), ("Calls,tool_calls,calls", ",,3")):
        pair = read_pair(*files(tmp_path, "id,correct\na,0\n", f"id,correct,{header}\na,1,{row}\n"))
        assert (pair.has_calls, bool(pair.questions[0].tools)) == (True, True)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("ID,Id,correct", "'ID' and 'Id' are both read as 'id'"),
        ("id,correct,tool_calls,Calls", "'tool_calls' and 'Calls' are both read as 'calls'"),
        ("id,Correct,CORRECT ", "'Correct' and 'CORRECT ' are both read as 'correct'"),
        ("id,correct,TASK,Task", "both read as 'task'"),
        ("id,correct,Cluster,CLUSTER", "both read as 'cluster'"),
        ("id,correct,correct", "'correct' and 'correct' are both read as 'correct'"),
    ],
)
def test_two_columns_that_are_read_as_one_are_named(header: str, message: str, tmp_path: Path) -> None:
    row = ",".join("1" for _ in header.split(","))
    with pytest.raises(DataError, match=message):
        read_pair(*files(tmp_path, f"{header}\n{row}\n", "id,correct\n1,1\n"))


def test_two_names_of_one_column_are_found_in_json_lines_too(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'ID' and 'Id' are both read as 'id'"):
        read_pair(*files(tmp_path, '{"ID": 1, "Id": 2, "correct": 1}\n', '{"id": 1, "correct": 1}\n', "jsonl"))


def test_columns_that_are_not_used_may_have_one_name(tmp_path: Path) -> None:
    pair = read_pair(*files(tmp_path, "id,Note,note,NOTE,note,correct\na,1,2,3,4,0\n", "id,correct,,\na,1,,\n"))
    assert [(question.alone, question.with_tools) for question in pair.questions] == [(0, 1)]


def test_csv_has_the_rows_and_notes_of_json(tmp_path: Path) -> None:
    rows = [(f"q{i}", "x" if i < 20 else "y", i < 10, i < 4 or i >= 20) for i in range(24)]
    texts = ("".join(f"{row[0]},{row[1]},{int(row[at])}\n" for row in rows) for at in (2, 3))
    report = decomposed(read_pair(*files(tmp_path, *(f"id,task,correct\n{text}" for text in texts))), "a", "b")
    lines = list(csv.DictReader(io.StringIO(report.render("csv"))))
    assert [(line["quantity"], float(line["value"]), line["note"]) for line in lines] == [
        (row.quantity, row.value, row.note) for row in report.results
    ]
    assert "over all 24 questions the gain is" in lines[0]["note"]


def test_the_number_0_is_an_id(tmp_path: Path) -> None:
    """A JSON id 0 is the id "0" of a CSV file, in any order of lines."""
    without, with_tools = tmp_path / "without.csv", tmp_path / "with.jsonl"
    without.write_text("id,correct\n0,0\n1,1\n")
    with_tools.write_text('{"id": 1, "correct": 1}\n{"id": 0, "correct": 1}\n')
    pair = read_pair(without, with_tools)
    assert [(question.id, question.alone, question.with_tools) for question in pair.questions] == [
        ("0", 0, 1),
        ("1", 1, 1),
    ]
    assert pair.only_one == 0


@pytest.mark.parametrize(("cluster", "count"), [("p", 1), ("", 0)])
def test_one_cluster_has_no_interval_and_a_note_gives_the_reason(tmp_path: Path, cluster: str, count: int) -> None:
    rows = "".join(f"{n},{n % 2},{cluster}\n" for n in range(8))
    pair = read_pair(*files(tmp_path, f"id,correct,cluster\n{rows}", f"id,correct,cluster\n{rows}"))
    assert sum("8 questions are of one cluster: no interval." in line for line in pair.missing) == count
    assert (decomposed(pair, "a", "b").results[0].low is None) == bool(count)


def test_questions_without_an_answer_are_parts_of_their_own_as_in_a_run(synthetic_runs: Any, tmp_path: Path) -> None:
    """A question that was refused alone is no gain with a call; the tables of a run lead to the run's parts."""
    solvers = {"mllm": "rrwwuuuarr", "controller": "rwrwrrwurw"}
    costing = {"costing": synthetic_runs.calling}
    run = synthetic_runs.from_letters(tmp_path / "run", {name: {"Jigsaw": w} for name, w in solvers.items()}, **costing)
    tables = [tmp_path / f"{name}.csv" for name in solvers]
    for name, path in zip(solvers, tables, strict=True):
        TABLE.export(ExportedRun.at(run.path / name), path, ExportOptions())
    (section,) = results(compare_paths([run.path]).comparison, [NAME])
    of_run = {row.quantity: (row.value, row.low, row.high) for row in section.rows if not row.group and not row.metric}
    report = decomposed(read_pair(*tables), *solvers)
    of_tables = {row.quantity: (row.value, row.low, row.high) for row in report.results}
    assert of_tables == {name: pytest.approx(of_run[name]) for name in of_tables}
    assert [of_tables[name][0] for name in (*PARTS, *ANSWERING)] == pytest.approx([0.1, 0, 0.2, 0, 0.2, 0])


def test_without_calls_the_parts_still_add_up_to_the_gain(tmp_path: Path) -> None:
    alone = "id,correct,outcome\na,0,Unparsed\nb,1,answered\nc,0,wrong\nd,1,\n"
    report = decomposed(read_pair(*files(tmp_path, alone, "id,correct\na,1\nb,0\nc,1\nd,1\n")), "x", "y")
    values = {row.quantity: row.value for row in report.results}
    assert values == {"gain": 0.25, "gains": 0.25, "harms": 0.25, "gain by answering": 0.25, "harm by no answer": 0}
    assert report.tables()[0].notes[0] == "gain = gains - harms + gain by answering - harm by no answer"
