"""The tables of a comparison as a user reads them, in every form; and what a paper printed below."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hybrid.scoring.compare_tables import (
    HELPED,
    LOST,
    MISSING,
    SPENT,
    accuracy_table,
    metric_table,
    outcome_table,
    paired_table,
    published_below,
    tables,
)

from hybrid.benchmarks.base import Abstain, ScoreOptions
from hybrid.benchmarks.blink import BENCHMARK
from hybrid.errors import UsageError
from hybrid.scoring.compare import Choice, Comparison, compare
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored, metrics_of, score_predictions
from hybrid.stats import Contrast, Interval
from hybrid.tables import Column, as_csv, as_latex, as_markdown, as_text
from hybrid.types import Outcome, Usage


def saved(folder: Path, said: Mapping[str, str], rule: Abstain = "chance") -> Scored:
    """BLINK's saved outputs, a letter for each question; every answer is (A), and Z is no answer."""
    folder.mkdir(parents=True)
    for task, letters in said.items():
        rows = [
            {"idx": f"val_{task}_{n}", "answer": "(A)", "full_prediction": letter, "prediction": f"({letter})"}
            for n, letter in enumerate(letters, 1)
        ]
        (folder / f"{task}.json").write_text(json.dumps({"val": rows, "test": []}))
    return score_predictions(folder, BENCHMARK, "stored", ScoreOptions(abstain=rule))


@pytest.fixture
def solvers(tmp_path: Path) -> list[Scored]:
    said = {"one": {"Jigsaw": "AABBZ", "Counting": "ABCD"}, "two": {"Jigsaw": "BAAAA", "Counting": "ZZZZ"}}
    return [saved(tmp_path / name, words) for name, words in said.items()]


FOUND = (
    Contrast(0.375, 0.525, 0.15, Interval(-0.012, 0.312, "by hand"), 0.04, "by hand", 9),
    Contrast(0.389, 0.556, 1 / 6, Interval(0.01, 0.32, "by hand"), 0.0004, "by hand", 9),
    Contrast(0.25, 0.25, 0.0, None, None, "none", 4),
    Contrast(0.5, 0.8, 0.3, Interval(-0.1, 0.7, "by hand"), 0.0125, "by hand", 5),
)


@pytest.fixture
def by_hand(solvers: list[Scored]) -> Comparison:
    """The counts are real, the intervals and p values given: these tests are of the printing."""
    found = compare(solvers)
    contests = [
        replace(contest, contrast=given, p_holm=None if given.p_value is None else 2 * given.p_value)
        for contest, given in zip(found.contests, FOUND, strict=True)
    ]
    return replace(found, contests=tuple(contests))


ACCURACY = """\
blink: accuracy by task

task      solver    k/n  acc, none = chance          95 %  none  acc, none = wrong
--------  ------  -----  ------------------  ------------  ----  -----------------
Counting  one       1/4               0.250  [0.05, 0.70]     0              0.250
Counting  two       1/4               0.250             -     4              0.000
Jigsaw    one     2.5/5               0.500  [0.11, 0.89]     1              0.400
Jigsaw    two       4/5               0.800  [0.38, 0.96]     0              0.800

none: questions without a readable answer (abstained, unparsed, out of budget, tool fault). They
count as a guess would on average (none = chance), or as wrong, as in the papers (none = wrong).
"""

HEADLINE = """\
Paired differences on the same questions

a -> b      metric          n  b - a, none = chance             95 %      p  p (Holm)  both answered  helped  harmed  \
a none  b none
----------  --------------  -  --------------------  ---------------  -----  --------  -------------  ------  ------  \
------  ------
one -> two  accuracy_macro  9                +0.150  [-0.012, 0.312]  0.040     0.080              4       2       1  \
     1       4

Of the questions that both answered: helped, b is right and a wrong; harmed, the reverse. a none, b none: questions \
without a
readable answer from a, from b. n counts the metric's own units.
p and interval are of the difference in the row; Holm over the one test of this table.
Every pair shares all of its 9 questions.
"""

METRICS = (
    'a -> b,metric,n,"b - a, none = chance",95 %,p,p (Holm)\n'
    'one -> two,accuracy_micro,9,+0.167,"[0.010, 0.320]",<0.001,<0.001\n'
)

TASKS = """\
**Paired differences on the same questions, by task**

| a -\\> b | task | n | b - a, none = chance | 95 % | p | p (Holm) | both answered | helped | harmed | a none | b none |
| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| one -\\> two | Counting | 4 | +0.000 | - | - | - | 0 | 0 | 0 | 0 | 4 |
| one -\\> two | Jigsaw | 5 | +0.300 | [-0.100, 0.700] | 0.013 | 0.025 | 4 | 2 | 1 | 1 | 0 |

Of the questions that both answered: helped, b is right and a wrong; harmed, the reverse. a none, b none: \
questions without a readable answer from a, from b. n counts the metric's own units.

p and interval are of the difference in the row; Holm over the one test of this table.

Nothing is tested where one of the two answered nothing.
"""

LATEX_ROW = (
    r"one -\textgreater{} two & Jigsaw & 5 & +0.300 & {[}-0.100, 0.700{]} & 0.013 & 0.025 & 4 & 2 & 1 & 1 & 0 \\"
)


def test_accuracy_is_shown_by_both_rules(solvers: list[Scored]) -> None:
    assert as_text(accuracy_table(compare(solvers))) == ACCURACY


def test_the_rule_that_was_chosen_comes_first(tmp_path: Path) -> None:
    one = saved(tmp_path / "one", {"Jigsaw": "AABBZ"}, "wrong")
    table = accuracy_table(compare([one]))
    assert table.names == ("task", "solver", "k/n", "acc, none = wrong", "95 %", "none", "acc, none = chance")
    assert table.rows[0][2:4] == ("2/5", "0.400")
    assert table.rows[0][5:] == ("1", "0.500")


def test_paired_differences_in_every_form(by_hand: Comparison) -> None:
    assert as_text(paired_table(by_hand, "headline")) == HEADLINE
    assert as_csv(paired_table(by_hand, "metrics")) == METRICS
    assert as_markdown(paired_table(by_hand, "tasks")) == TASKS
    assert LATEX_ROW in as_latex(paired_table(by_hand, "tasks"))


def test_metrics_are_shown_by_both_rules(solvers: list[Scored]) -> None:
    rows = {row[:2]: row[2:] for row in metric_table(compare(solvers)).rows}
    assert [(name, *rows[name][:2], rows[name][3]) for name in rows] == [
        (("accuracy_macro", "one"), "9", "0.375", "0.325"),
        (("accuracy_macro", "two"), "9", "0.525", "0.400"),
        (("accuracy_micro", "one"), "9", "0.389", "0.333"),
        (("accuracy_micro", "two"), "9", "0.556", "0.444"),
    ]
    assert all(row[2].startswith("[0.") for row in rows.values())


def test_nothing_is_averaged_but_what_the_paper_averages(solvers: list[Scored]) -> None:
    plain, by = compare(solvers), compare(solvers, Choice(by="granularity"))
    assert metric_table(by) == metric_table(plain)
    assert accuracy_table(by).names[0] == "granularity"
    assert [row[:3] for row in accuracy_table(by).rows] == [
        ("crop", "one", "2.5/5"),
        ("crop", "two", "4/5"),
        ("image", "one", "1/4"),
        ("image", "two", "1/4"),
    ]
    told = "".join(as_text(table) for table in tables(solvers, Choice(by="granularity")))
    assert "mean of" not in told
    assert "by granularity" in told


def failing(one: Scored, identity: str) -> Scored:
    counted = {}
    for rule, old in one.counted.items():
        scores = tuple(
            replace(s, outcome=Outcome.OUTAGE, correct=0.0, answer=None) if s.id == identity else s for s in old.scores
        )
        counted[rule] = Counted(scores, metrics_of(BENCHMARK, {}, scores))
    return replace(one, counted=counted)


def test_failures_are_in_the_title_and_out_of_the_numbers(solvers: list[Scored]) -> None:
    found = compare([failing(solvers[0], "val_Jigsaw_1"), solvers[1]])
    shown = accuracy_table(found)
    assert shown.title == "blink: accuracy by task (one: 1 of 9 failed)"
    assert shown.rows[2][:4] == ("Jigsaw", "one", "1.5/4", "0.375")
    assert "A failed question is missing, not wrong: it is in no n. with_failed counts it as wrong." in shown.notes
    rows = {row[:2]: row[2:4] for row in metric_table(found).rows}
    assert rows["accuracy_macro", "one"] == ("8", "0.312")
    assert rows["with_failed.accuracy_macro", "one"] == ("9", "0.275")
    paired = paired_table(found, "headline")
    assert paired.rows[0][2:7] == ("8", "+0.312", "-", "-", "-")
    assert "Nothing is tested where more than 1% failed; --allow-failed tests it all the same." in paired.notes
    assert "Left out, because one of the two failed: one -> two 1 of 9." in paired.notes
    allowed = compare(found.solvers, Choice(allow_failed=True))
    assert "-" not in paired_table(allowed, "headline").rows[0][4:7]


def test_where_nobody_answered_there_is_no_accuracy(solvers: list[Scored]) -> None:
    down = solvers[0]
    for score in down.scores:
        down = failing(down, score.id)
    found = compare([down, solvers[1]])
    assert {row[2:] for row in accuracy_table(found).rows if row[1] == "one"} == {("-", "-", "-", "0", "-")}
    rows = {row[:2]: row[2:] for row in metric_table(found).rows}
    assert rows["accuracy_macro", "one"] == ("0", "-", "-", "-")
    assert paired_table(found, "headline").rows == ()


def test_pairs_say_what_they_share(solvers: list[Scored], tmp_path: Path) -> None:
    part = saved(tmp_path / "part", {"Jigsaw": "AB"})
    notes = paired_table(compare([*solvers, part]), "headline").notes
    assert "one -> two: 9 questions shared; only a has 0, only b 0." in notes
    assert "two -> part: 2 questions shared; only a has 7, only b 0." in notes


def test_other_settings_are_told(solvers: list[Scored]) -> None:
    facts = {"kind": "folder", "sha256": "a"}
    asked = [
        replace(one, data=Data("blink", "val", facts, {"marks": marks}))
        for one, marks in zip(solvers, ("drawn", "radius:5"), strict=True)
    ]
    notes = paired_table(compare(asked), "headline").notes
    assert "one -> two: asked with other settings (marks: drawn -> radius:5)." in notes


def test_brief_is_the_headline_alone(solvers: list[Scored]) -> None:
    titles = [table.title for table in tables(solvers, brief=True)]
    assert titles == [
        "blink: metrics",
        "blink: accuracy by task",
        "Paired differences on the same questions",
        "Outcomes and cost",
    ]
    assert tables([]) == ()
    whole = tables(solvers)
    assert [table.title for table in whole][2:5] == [
        "Paired differences on the same questions",
        "Paired differences on the same questions: other metrics",
        "Paired differences on the same questions, by task",
    ]
    assert whole[2] == tables(solvers, brief=True)[2]


def test_one_solver_has_no_pairs(solvers: list[Scored]) -> None:
    assert not any("Paired" in table.title for table in tables(solvers[:1]))


def test_what_nobody_recorded_is_not_nothing(solvers: list[Scored]) -> None:
    recorded = replace(solvers[0], usage=Usage(model_calls=9, seconds=0.5), wall_s=0.25)
    live = replace(recorded, usage=Usage(9, 2, 1234, 56, 0, 0.5, 61.04), wall_s=12.0)
    toolish = replace(recorded, usage=Usage(tool_calls=4, seconds=3.0, tool_faults=1), wall_s=None)
    table = outcome_table([solvers[1], recorded, live, toolish])
    spent = ("model calls", "tool calls", "lost", "tokens in", "tokens out", "busy", "wall", "cost USD")
    assert table.names[3:] == spent
    assert [row[3:] for row in table.rows] == [
        ("-",) * 8,
        ("9", "0", "0", "-", "-", "0.5 s", "0.2 s", "-"),
        ("9", "2", "0", "1,234", "56", "61.0 s", "12.0 s", "0.5000"),
        ("0", "4", "1", "0", "0", "3.0 s", "-", "-"),
    ]
    assert table.rows[0][:3] == ("two", "5", "4")


def test_published_numbers_of_the_same_metrics_are_below(solvers: list[Scored]) -> None:
    found = published_below(compare(solvers))
    assert found
    heads = {name.split(" ")[0] for table in found for name in table.names[1:]}
    assert heads == {"accuracy_macro", "Jigsaw", "Counting"}
    assert all("(val)" in table.title for table in found)
    assert found[0].notes[0].startswith("As printed: percent, unless a note says fraction.")
    everything = tables(solvers, printed=True)
    assert everything[-len(found) :] == found
    assert len(everything) == len(tables(solvers)) + len(found)


def test_generated_questions_have_no_published_numbers(solvers: list[Scored]) -> None:
    generated = replace(solvers[0], data=Data("blink", "val", {"kind": "sample", "seed": 0}, {}))
    with pytest.raises(UsageError, match="the questions were generated"):
        published_below(compare([generated]))


def heads(*names: str, left: int) -> tuple[Column, ...]:
    return tuple(Column(name, "left" if place < left else "right") for place, name in enumerate(names))


def test_every_column_has_its_head_and_its_side(solvers: list[Scored]) -> None:
    found = compare(solvers)
    assert metric_table(found).columns == heads(
        "metric", "solver", "n", "none = chance", "95 %", "none = wrong", left=2
    )
    spent = ("model calls", "tool calls", "lost", "tokens in", "tokens out", "busy", "wall", "cost USD")
    outcomes = outcome_table(solvers)
    assert outcomes.columns == heads("solver", "answered", "unparsed", *spent, left=1)
    assert outcomes.notes == (LOST, SPENT)


def test_labels_that_all_share_are_in_the_title(solvers: list[Scored]) -> None:
    labelled = [replace(one, labels=("imported", "unchecked weights: depth")) for one in solvers]
    found = compare(labelled)
    assert metric_table(found).title == "blink: metrics [imported; unchecked weights: depth]"
    assert metric_table(compare([labelled[0], solvers[1]])).title == "blink: metrics"


def test_what_was_left_out_is_told_below_the_metrics(solvers: list[Scored]) -> None:
    score = replace(solvers[0].scores[0], outcome=Outcome.OUTAGE)
    counted = {
        rule: Counted((score, *one.scores[1:]), metrics_of(BENCHMARK, solvers[0].questions, (score, *one.scores[1:])))
        for rule, one in solvers[0].counted.items()
    }
    failed = replace(solvers[0], counted=counted)
    assert MISSING in metric_table(compare([failed, solvers[1]])).notes
    assert MISSING not in metric_table(compare(solvers)).notes


def test_a_pair_that_shares_all_and_one_that_does_not(solvers: list[Scored], tmp_path: Path) -> None:
    assert "Every pair shares all of its 9 questions." in paired_table(compare(solvers), "headline").notes
    half = saved(tmp_path / "half", {"Jigsaw": "AB"})
    notes = paired_table(compare([solvers[0], half]), "headline").notes
    assert "one -> half: 2 questions shared; only a has 7, only b 0." in notes
    assert not [note for note in notes if note.startswith("Every pair")]


def test_the_family_of_a_table_says_how_many_tests_it_has(solvers: list[Scored]) -> None:
    notes = {family: paired_table(compare(solvers), family).notes for family in ("headline", "metrics", "tasks")}
    assert any("the one test" in note for note in notes["headline"])
    three = compare([*solvers, replace(solvers[0], solver="three")])
    assert any("the 3 tests" in note for note in paired_table(three, "headline").notes)
    assert (HELPED in notes["headline"], HELPED in notes["metrics"], HELPED in notes["tasks"]) == (True, False, True)
