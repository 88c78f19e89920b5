"""Every case of the conclusion, including edge cases, by letters: r right, w wrong, a abstained, f failed."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench._runs import write_run as write_attempts
from hybrid.core.types import Attempt, Cell, Exchange, Fault, Kind, Metric, Outcome, Prompt, Question, Reply, Usage
from hybrid.display.terminal import clipped
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.compare import Comparison, ComparisonOptions, SolverPair, compare
from hybrid.scoring.conclusion import ORDER, _Conclusion, cases, conclusion
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.conclusion_words import NAME_WIDTH
from hybrid.scoring.headline import headline_tables
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.rendering import tables_of
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.scoring.sections import results
from tests.hybrid.scoring.solvers import by_task, ids, letters, on_mvp, question, solver
from tests.synthetic_runs import answering

PAIR = ("mllm", "controller")
R, W, A, F = ("r" * 40, "w" * 40, "a" * 40, "f" * 40)


@dataclass(frozen=True)
class Said:
    """Answers of solvers in a real run and with blank tools, and the expected cases with parts of their sentences."""

    cases: Mapping[str, str]
    real: Mapping[str, Mapping[str, str]]
    blank: str = ""
    options: ComparisonOptions = field(default_factory=ComparisonOptions)
    calls: bool = True
    # The ids of all sentences, if no other may be printed.
    ids: Sequence[str] = ()


def of(n: int, right: int) -> str:
    """Return letters for this many questions; the first ones are right."""
    return "r" * right + "w" * (n - right)


TABLE = {
    name: Said(
        row["said"],
        {solver: by_task(value) for solver, value in row["answers"].items()},
        letters(row.get("blank", "")),
        ComparisonOptions(pairs=()) if "pairs" in row else ComparisonOptions(),
        row.get("calls", True),
        row.get("ids", ()),
    )
    for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}


def compare_row(synthetic_runs: Any, folder: Path, message: Said) -> Comparison:
    """Return the comparison of the runs of one row of the table."""
    costing = {"costing": synthetic_runs.calling} if message.calls else {}
    paths = [synthetic_runs.from_letters(folder / "real", message.real, **costing).path]
    if message.blank:
        blank = {"controller": {"Jigsaw": message.blank}}
        paths.append(synthetic_runs.from_letters(folder / "blank", blank, tool_output="blank").path)
    solvers = compare_paths(paths).solvers
    return compare(solvers, message.options)


@pytest.mark.parametrize("name", TABLE)
def test_the_sentences_of_a_case(name: str, synthetic_runs: Any, tmp_path: Path) -> None:
    message = TABLE[name]
    sentences = conclusion(compare_row(synthetic_runs, tmp_path, message))
    assert 1 <= len(sentences) <= 8
    text = {item.id: item.text for item in sentences}
    assert "nothing.answered" not in text or len(sentences) == 1
    assert not message.ids or message.ids == list(text)
    # A single task gets no sentence of its own.
    assert len(next(iter(message.real.values()))) > 1 or not {"tasks.shown", "tasks.none"} & set(text)
    for case, words in message.cases.items():
        sentence = PART_OF.get(case, case.partition(".")[0] if case.startswith("limits.") else case)
        values = [case] if case in text else [name for name in text if name.partition(".")[0] == sentence]
        assert any(words in text[name] for name in values), (case, text)


# By case, the sentence that contains it. Cases of `limits` are in the sentence of that name.
PART_OF = {
    **dict.fromkeys(
        ("called.few", *(f"gain.rule.{part}" for part in ("direction", "both", "verdict", "sign"))), "gain"
    ),
    **{
        f"{part}.{state}": "content"
        for part in ("presence", "content")
        for state in ("more", "less", "open", "none", "unclear")
    },
}

# The sentences of test_conclusion_review.py.
REVIEW = {"equal", "used", "room", "selection", "calls", "price", "places", "words", "pooled"}
# Cases with a separate test: most are below, in test_task_claims.py or in test_chosen_pairs.py. `limits.partial` is
# tested in tests/hybrid/benchmarks, `limits.predicted` in predictions/test_join.py, and `trained` in
# test_as_trained.py.
BY_HAND = {
    *["gain.units", "gain.waiting", "gain.not_begun", "specialists.units", "specialists.waiting", "solvers.waiting"],
    *["gain.not_chosen", "specialists.not_chosen"],
    *["gain.uneven", "specialists.uneven", "specialists.others"],
    *["solvers.no_interval", "solvers.no_value"],
    *["content.units", "content.apart", "content.waiting", "tasks.shown", "tasks.none", "tasks.rest", "tasks.untested"],
    "tasks.unscored",
    *(
        f"limits.{reason}"
        for reason in [
            *["weight", "partial", "predicted", "rule", "faults", "open"],
            *["generated", "recorded", "unreadable", "model"],
        ]
    ),
    *(f"trained.{state}" for state in ("more", "less", "open", "unclaimed", "untested")),
    *(case for case in cases() if case.partition(".")[0] in REVIEW),
}


def test_every_case_is_walked() -> None:
    assert {case for value in TABLE.values() for case in value.cases if case != "limits"} | BY_HAND == set(cases())


def test_cases_are_listed_in_the_order_printed() -> None:
    sentences = list(dict.fromkeys(case.partition(".")[0] for case in cases()))
    assert sentences == [sentence for sentence in ORDER if sentence in sentences]
    assert sentences[:4] == ["nothing", "pooled", "gain", "called"]
    assert sentences[-1] == "limits"


@pytest.fixture
def full(synthetic_runs: Any, tmp_path: Path) -> Comparison:
    """Return a comparison that has a gain with all its parts, and a blank control."""
    return compare_row(synthetic_runs, tmp_path, TABLE["a gain that what the tools say explains"])


def test_replies_of_another_model_limit_the_claim(full: Comparison) -> None:
    (hybrid,) = [item for item in full.solvers if item.solver == "controller"]
    manifest = {**hybrid.manifest, "answered_by": {"controller": {"gpt-4o-2024-08-06": 30, "gpt-4o-mini": 10}}}
    words = "10 of 40 replies came from another model than the run asked for (gpt-4o-mini)"
    for message, other_text in (("openai:gpt-4o", True), ("azure_openai:mine", False)):
        variant = replace(hybrid, model=message)
        # The manifest is filled in as if the run had been read from its folder.
        variant.__dict__["manifest"] = manifest
        solvers = [variant if other is hybrid else other for other in full.solvers]
        text = " ".join(sentence.text for sentence in conclusion(replace(full, solvers=tuple(solvers))))
        assert (words in text) is other_text


@pytest.mark.parametrize(("unreadable", "is_said"), [(0, False), (2, False), (3, True)])
def test_calls_that_could_not_be_read_limit_the_claim_above_one_in_twenty(
    full: Comparison, unreadable: int, is_said: bool
) -> None:
    (hybrid,) = [item for item in full.solvers if item.solver == "controller"]
    assert len(hybrid.scores) == 40
    solvers = [
        replace(entry, usage=Usage(unreadable=unreadable)) if entry is hybrid else entry for entry in full.solvers
    ]
    words = f"controller wrote calls that could not be read about {unreadable} of 40 questions"
    assert (words in conclusion(compare(solvers))[-1].text) is is_said


LETTERS = st.text("rwauf", min_size=8, max_size=8)


@pytest.mark.system
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(tools=LETTERS, alone=LETTERS, specialists=LETTERS)
def test_no_sentence_says_more_than_its_interval(full: Comparison, tools: str, alone: str, specialists: str) -> None:
    messages = {"controller": tools, "mllm": alone, "specialist": specialists}
    solvers = [answering(item, messages[item.solver] * 5) for item in full.solvers if item.solver in messages]
    comparison = compare(solvers)
    sentences = conclusion(comparison)
    assert 1 <= len(sentences) <= 8
    rows = [
        row for row in ConclusionRows(comparison).of("differences") if row.quantity == "difference" and not row.group
    ]
    for sentence, other in (("gain", "mllm"), ("specialists", "specialist")):
        values = [row for row in rows if {row.a, row.b} == {"controller", other}]
        text = {f"{sentence}.more", f"{sentence}.less"} & ids(sentences)
        assert not text or (values and all(row.excludes_zero for row in values))
        for row in values if text else ():
            ahead = (row.low or 0) > 0
            assert ahead == (row.b == "controller") == (f"{sentence}.more" in text) or (
                ahead != (row.b == "controller") and f"{sentence}.less" in text
            )


def test_a_model_alone_that_the_run_has_not_begun_is_not_said_to_be_missing(
    synthetic_runs: Any, tmp_path: Path
) -> None:
    run = synthetic_runs.from_letters(
        tmp_path / "real", {"controller": {"Jigsaw": "rw"}}, costing=synthetic_runs.calling
    )
    folder = RunFolder(run.path)
    facts = folder.manifest["solvers"]["controller"]
    folder.write_manifest(folder.manifest | {"solvers": {"controller": facts, "mllm": facts}})
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    assert "because the run stopped before it asked mllm" in by_id["gain.not_begun"]
    assert "gain.absent" not in by_id


@pytest.mark.parametrize(("count", "is_said"), [(7, True), (8, False)])
def test_calls_on_a_fifth_of_the_questions_are_not_seldom(
    synthetic_runs: Any, tmp_path: Path, count: int, is_said: bool
) -> None:
    def call(solver: str, question: Question, reply: Reply) -> Reply:
        is_called = int(question.id.rsplit("_", 1)[1]) <= count
        return synthetic_runs.calling(solver, question, reply) if is_called else reply

    answers = {name: {"Jigsaw": "rw" * 20} for name in ("controller", "mllm")}
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=call)
    gain = conclusion(compare(compare_paths([run.path]).solvers))[0].text
    assert (f"controller called a tool on {count} of 40 questions" in gain) is is_said


def test_repetitions_have_no_number_of_right_answers(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {name: {"Jigsaw": "rw" * 20} for name in ("controller", "mllm", "mllm@2")}
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    gain = conclusion(compare(compare_paths([run.path]).solvers))[0]
    assert (gain.id, " right" in gain.text) == ("gain.open", False)


def test_a_lead_where_one_repetition_of_the_specialists_answers_is_a_lead(synthetic_runs: Any, tmp_path: Path) -> None:
    # The specialist answers the first 40 questions in one of two repetitions, and the last 20 in none.
    rest = "rw" * 60
    answers = {
        "controller": "r" * 40 + "a" * 40 + rest + "w" * 20,
        "specialist": "a" * 40 + "r" * 10 + "w" * 30 + rest + "a" * 20,
        "specialist@2": "w" * 40 + "r" * 10 + "w" * 30 + rest + "a" * 20,
    }
    by_solver = {name: {"Jigsaw": letters} for name, letters in answers.items()}
    run = synthetic_runs.from_letters(tmp_path / "real", by_solver, costing=synthetic_runs.calling)
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    assert "specialists.others" not in by_id
    said = by_id["specialists.more"]
    assert said.startswith(
        "The specialists alone answer 200 of 220 questions in at least one repetition; on these, unanswered "
    )
    assert "that both answered at least once, without their unanswered repetitions" in said


def test_questions_of_one_picture_have_no_interval_and_say_so() -> None:
    def one_picture(solver: Scored) -> Scored:
        by_name = {}
        for rule, value in solver.counted.items():
            scores = tuple(replace(score, cluster="picture") for score in value.scores)
            by_name[rule] = Counted(scores, metrics_of(load("hybrid.benchmarks", "blink"), solver.questions, scores))
        return replace(solver, counted=by_name)

    alone = one_picture(solver("mllm", {"Jigsaw": "rrrrrrw"}))
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare([alone]))}
    assert by_id["solvers.no_interval"] == "accuracy_macro: mllm 0.857 (7 questions); one picture: no interval."
    sentences = conclusion(compare([alone, one_picture(solver("controller", {"Jigsaw": "rrrrrrr"}))]))
    assert "one picture: no interval" in sentences[0].text


def test_readable_answers_without_a_value_are_no_silence() -> None:
    # MVP-Bench counts no group whose first rotation failed.
    for word, identity in (("frrr", "solvers.no_value"), ("fuuu", "solvers.silent")):
        assert conclusion(compare([on_mvp("mllm", word, rotations=True)]))[0].id == identity


def test_one_question_of_a_metric_that_is_no_share_has_a_value_and_no_interval() -> None:
    scored = solver("mllm", {"Jigsaw": "r"})
    metric = Metric("accuracy_macro", 1.25, 1, "ratio", (Cell("", "Jigsaw_1", 1.25, 1.0),), share=False)
    other = replace(metric, name="another", value=9.0)

    def measured(scored: Scored, metric: Metric) -> Scored:
        return replace(
            scored, counted={rule: Counted(each.scores, (other, metric)) for rule, each in scored.counted.items()}
        )

    # A solver without a value is not named.
    without = measured(solver("text_only", {"Counting": "r"}), replace(metric, value=None, n=0, cells=()))
    (sentence,) = conclusion(compare([measured(scored, metric)]), limits=False)
    assert conclusion(compare([measured(scored, metric), without]), limits=False)[0] == sentence
    words = "accuracy_macro: mllm 1.250 (1 question); too few questions."
    assert (sentence.id, sentence.text) == ("solvers.no_interval", words)


def test_the_counts_of_a_sentence_are_of_one_set(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {name: {"Counting": "f", "Jigsaw": "rww"} for name in ("controller", "mllm")}
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    by_id = {sentence.id: sentence.text for sentence in conclusion(compare(compare_paths([run.path]).solvers))}
    assert "not tested: 1 of 4 questions failed" in by_id["gain.failed"]
    assert "failed and left out: controller 1 of 4, mllm 1 of 4" in by_id["limits"]


def adjusted_values(comparison: Comparison) -> dict[tuple[frozenset[str], str, str], set[tuple[str, float | None]]]:
    """Return, by pair, metric and task, the families and the adjusted p values that the sections give to the
    difference."""
    by_difference: dict[tuple[frozenset[str], str, str], set[tuple[str, float | None]]] = {}
    for section in results(comparison, ("differences", "gain")):
        for row in section.rows:
            if row.p_holm is not None and row.metric in (comparison.headline, "accuracy"):
                key = (frozenset((row.a, row.b)), row.metric, row.group)
                by_difference.setdefault(key, set()).add((row.family, row.p_holm))
    return by_difference


def test_one_difference_has_one_verdict_on_a_page(full: Comparison) -> None:
    """Each p value of a pair and task is adjusted in the family of its claim, whatever the section."""
    verdicts = adjusted_values(full)
    assert len(verdicts) > 6
    assert all(len(verdict) == 1 for verdict in verdicts.values()), verdicts
    for result in results(full, ("differences", "gain")):
        for table in tables_of(full, result):
            heads = [column.name for column in table.columns if column.name.startswith("p (Holm")]
            assert all(head == "p (Holm in family)" or "," in head for head in heads)


TWO_GAINS = {"controller": {"Jigsaw": letters("28r 12w")}, "verify": {"Jigsaw": letters("26r 14w")}}


@pytest.mark.parametrize("pairs", [None, (SolverPair("mllm", "controller [blank]"),)])
def test_a_pair_that_one_section_alone_tests_counts_in_all(
    pairs: tuple[SolverPair, ...] | None, synthetic_runs: Any, tmp_path: Path
) -> None:
    """A pair that only one section tests counts in all sections. One of two solvers with tools has no blank run;
    `--pairs` omits pairs that the section on gain tests."""
    answers = {**TWO_GAINS, "mllm": {"Jigsaw": letters("16r 24w")}}
    solvers = compare_row(synthetic_runs, tmp_path, Said({}, answers, letters("24r 16w"))).solvers
    comparison = compare(solvers, ComparisonOptions(pairs=pairs))
    assert {len(value) for value in adjusted_values(comparison).values()} == {1}
    (row,) = (row for row in ConclusionRows(comparison).of("gain") if row.quantity == "presence" and not row.group)
    assert row.p is not None
    assert row.p_holm == min(1.0, 2 * row.p)


def test_another_metric_has_no_ranking_over_all_questions(synthetic_runs: Any, tmp_path: Path) -> None:
    """MVP-Bench's mAcc counts pairs, so it gives no ranking over all questions: a solver that is right more often has
    fewer complete pairs."""

    def answer(question: Question, is_right: bool) -> Reply:
        wrong = {"yes": "no", "no": "yes"}[str(question.target)]
        return Reply(f"Answer: {question.target if is_right else wrong}")

    def never_whole(question: Question) -> Reply:
        is_odd = int(question.groups["question"]) % 2 == 1
        return answer(question, not (is_odd and question.groups["image"] == "manipulated"))

    def sometimes_whole(question: Question) -> Reply:
        return answer(question, int(question.groups["pair"]) < 5 or question.groups["image"] == "natural")

    questions = list(synthetic_runs.QUESTIONS_OF["mvp_bench"](20))
    solvers = {"mllm": never_whole, "text_only": sometimes_whole}
    run = synthetic_runs.write_run(tmp_path / "run", "mvp_bench", questions, solvers)
    comparison = compare(compare_paths([run.path]).solvers)
    first = conclusion(comparison, limits=False)[0]
    assert first.text.startswith("Of 2 solvers, none of them a model with tools, text_only has the highest mAcc, 0.250")
    assert "it would be" not in first.text
    # A mean over tasks is compared with all questions; a count of pairs is not.
    pair = ConclusionRows(comparison).pair(comparison.named("mllm"), comparison.named("text_only"))
    assert pair.rows[0].value == 0.25
    assert comparison.overlap(pair.a, pair.b).accuracy("wrong")[0].value == 0.75
    assert pair.over_all is None


def test_scanpaths_are_not_counted_among_questions_with_right_answers(tmp_path: Path) -> None:
    """HVSBench's overall accuracy leaves out scanpaths, so they are not among the questions of any count."""
    path = {"x": [0.2, 0.5, 0.8], "y": [0.3, 0.5, 0.7], "t_ms": [200.0, 250.0, 300.0]}
    target = {"paths": [path], "other": None, "screen": [512, 320], "crop": 6, "crop_truth": False}
    scanpaths = [
        question(f"Q9_{n}", "Q9", kind=Kind.SCANPATH, choices=(), target=target, groups={"field": "free_viewing"})
        for n in range(20)
    ]
    choices = [
        question(f"{task}_{n}", task, target="A", groups={"field": "prioritizing"})
        for task in ("Q6", "Q7")
        for n in range(20)
    ]

    def reply(asked: Question, letter: str) -> Reply:
        lists = "X = [0.2, 0.5, 0.8]\nY = [0.3, 0.5, 0.7]\nT = [200, 250, 300]"
        return Reply(lists if asked.kind is Kind.SCANPATH else f"Answer: {letter}")

    def attempts(letter: str, answered: int) -> list[Attempt]:
        return [
            attempt(asked, reply(asked, letter) if n % 20 < answered else Reply("", Outcome.ABSTAINED))
            for n, asked in enumerate([*scanpaths, *choices])
        ]

    solvers = {"mllm": attempts("A", 20), "controller": attempts("A", 20), "specialist": attempts("B", 15)}
    run = write_attempts(tmp_path / "run", [*scanpaths, *choices], solvers, {"benchmark": "hvsbench"})
    text = {
        sentence.id.partition(".")[0]: sentence.text
        for sentence in conclusion(compare(compare_paths([run.path]).solvers))
    }
    assert text["specialists"].startswith(
        "The specialists alone answer 30 of 40 questions; on these, they get 0 right, with tools 30"
    )
    assert "On the other 10 questions: with tools 10 right" in text["specialists"]
    assert "neither right nor wrong: Q9" in text["tasks"]


def attempt(asked: Question, reply: Reply) -> Attempt:
    prompt = Prompt((asked.text,), asked.kind, asked.choices, route=asked.task)
    return Attempt(asked.id, (Exchange(prompt, reply),), 0.1)


def test_the_parts_of_other_questions_are_not_told(synthetic_runs: Any, tmp_path: Path) -> None:
    """One question failed for the MLLM alone, so the parts of the gain are not tested.

    The effect of tool output is tested on the other questions.
    """
    tools, blank = letters("25r 5w 9r 1f"), letters("10r 10w 10a 9r 1r")
    costing = {"costing": synthetic_runs.calling}
    paths = [
        synthetic_runs.from_letters(tmp_path / "real", {"controller": {"Jigsaw": tools}}, **costing).path,
        synthetic_runs.from_letters(tmp_path / "alone", {"mllm": {"Jigsaw": blank[:39]}}).path,
        synthetic_runs.from_letters(tmp_path / "blank", {"controller": {"Jigsaw": blank}}, tool_output="blank").path,
    ]
    sentences = {
        sentence.id.partition(".")[0]: sentence for sentence in conclusion(compare(compare_paths(paths).solvers))
    }
    assert sentences["content"].id in ("content.parts", "content.source")
    assert "no interval" not in sentences["content"].text


@pytest.mark.parametrize(("failed", "is_said"), [(1, False), (2, True)])
def test_faults_of_a_tool_limit_the_claim(synthetic_runs: Any, tmp_path: Path, failed: int, is_said: bool) -> None:
    """A tool's faults are mentioned if at least one in twenty of its calls fails."""

    def call(solver: str, question: Question, reply: Reply) -> Reply:
        run_path: Reply = synthetic_runs.calling(solver, question, reply)
        is_lost = int(question.id.rsplit("_", 1)[1]) <= failed
        steps = [replace(step, fault=Fault.TOOL_ERROR if is_lost else None) for step in run_path.steps]
        return replace(run_path, steps=tuple(steps))

    answers = {name: {"Jigsaw": "rw" * 20} for name in ("controller", "mllm")}
    run = synthetic_runs.from_letters(tmp_path / "run", answers, costing=call)
    limits = conclusion(compare(compare_paths([run.path]).solvers))[-1].text
    assert (f"controller called jigsaw: {failed} of 40 calls ended in faults" in limits) is is_said


def test_no_mean_over_tasks_is_told_while_questions_are_open(synthetic_runs: Any, tmp_path: Path) -> None:
    by_task = {"Counting": letters("20r 20w"), "Jigsaw": letters("30r 10w")}
    answers = dict.fromkeys(("controller", "mllm", "specialist"), by_task)
    run = synthetic_runs.from_letters(tmp_path / "real", answers, costing=synthetic_runs.calling)
    blank = synthetic_runs.from_letters(tmp_path / "blank", {"controller": by_task}, tool_output="blank")
    solvers = compare_paths([run.path, blank.path]).solvers
    waiting = [replace(solver, open=3) if solver.solver == "controller" else solver for solver in solvers]
    sentences = {sentence.id: sentence for sentence in conclusion(compare(waiting))}
    assert {"gain.waiting", "specialists.waiting", "content.waiting"} <= set(sentences)
    words = "The effect of tools is not known yet, because 3 questions are not finished: ask again as before"
    assert sentences["gain.waiting"].text == words
    assert "not finished yet: controller 3 of 83" in sentences["limits"].text
    alone = [replace(solver, open=2) for solver in solvers if solver.solver == "mllm"]
    (first, *_) = conclusion(compare(alone))
    assert first.id == "solvers.waiting"
    assert "because 2 questions are not finished" in first.text


def test_a_metric_of_other_units_is_not_tested(full: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Overlap, "untested", lambda self, metrics=None, solvers=None: "units")
    sentences = conclusion(compare(full.solvers))
    assert {"gain.units", "specialists.units", "content.units"} <= ids(sentences)
    assert "not tested, as accuracy_macro does not count the same units for both" in sentences[0].text


@pytest.mark.parametrize(("model", "is_said"), [("replay:folder", True), ("openai:gpt-4o", False)])
def test_recorded_answers_limit_the_claim(full: Comparison, model: str, is_said: bool) -> None:
    solvers = [replace(solver, model=model) for solver in full.solvers]
    words = "the model's answers are recordings"
    assert (words in conclusion(compare(solvers))[-1].text) is is_said
    # Of two solvers without tools, only one has a model.
    two = [
        replace(solver, model=model if solver.solver == "mllm" else None)
        for solver in full.solvers
        if solver.solver in ("mllm", "specialist")
    ]
    assert (words in conclusion(compare(two))[-1].text) is is_said


def test_solvers_of_a_run_that_are_not_compared_were_asked_nevertheless(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {name: {"Jigsaw": letters("6r 4w")} for name in ("controller", "mllm", "specialist")}
    run = synthetic_runs.from_letters(tmp_path / "real", answers).path
    by_id = {item.id: item.text for item in conclusion(compare_paths([run / "controller"]).comparison)}
    command = f"hybrid compare {run.as_posix()}"
    opening = "The effect of tools is not known here, because this comparison leaves out the model alone; "
    called = "controller called a tool on 0 of 10 questions"
    assert by_id["gain.not_chosen"] == f"{opening}{called}; to include it: {command}"
    specialists = f"This comparison leaves out the specialists alone; to include them: {command}"
    assert by_id["specialists.not_chosen"] == specialists
    # The command also compares the solvers that these sentences miss, and names all compared runs.
    full = {item.id for item in conclusion(compare_paths([run]).comparison)}
    assert not full & {"gain.not_chosen", "specialists.not_chosen"}
    other = synthetic_runs.from_letters(tmp_path / "blank", {"controller": {"Jigsaw": letters("5r 5w")}}, "blank").path
    both = conclusion(compare_paths([run / "controller", other]).comparison)
    assert next(item.command for item in both if item.id == "gain.not_chosen") == f"{command} {other.as_posix()}"
    assert "not asked" not in " ".join(by_id.values())


@pytest.mark.parametrize(
    ("mllm", "count"),
    [
        (("20r 20w", "40f", "24r 16w"), 2),
        (("20r 20w", "40f", "40f"), 1),
        (("40f", "20r 20w", "24r 16w"), 2),
        (("40f", "40f", "20r 20w"), 1),
    ],
)
def test_a_repetition_that_failed_entirely_is_in_no_mean(
    synthetic_runs: Any, tmp_path: Path, mllm: tuple[str, str, str], count: int
) -> None:
    counts = {**dict(zip(("mllm", "mllm@2", "mllm@3"), mllm, strict=True)), "controller": "36r 4w"}
    answers = {name: {"Jigsaw": letters(text)} for name, text in counts.items()}
    run = synthetic_runs.from_letters(tmp_path / "real", answers)
    solvers = compare_paths([run.path]).solvers
    alone = [solver for solver in solvers if solver.solver != "controller"]
    words = f"mean of {count} repetitions" if count > 1 else "mean of"
    for chosen in (solvers, alone):
        text = conclusion(compare(chosen), limits=False)[0].text
        assert (words in text) == (count > 1), text
        assert f"{0.55 if count > 1 else 0.5:.3f}" in text
        assert "mean of 3" not in text
    notes = headline_tables(compare(solvers))[0].notes
    assert any("(mllm 2)" in note for note in notes) == (count > 1)
    assert not any("(mllm 3)" in note for note in notes)


def test_a_specialist_that_answers_is_not_said_to_be_silent_like_a_solver_of_a_similar_name() -> None:
    # Long names are cut in the middle.
    names = [f"a_solver_with_the_number_{number}_in_the_middle_of_its_name" for number in (1, 2)]
    assert clipped(names[0], NAME_WIDTH) == clipped(names[1], NAME_WIDTH)
    specialist = solver(names[0], {"Jigsaw": letters("20rw")})
    with_tools = solver(names[1], {"Jigsaw": "a" * 40})
    rows = ConclusionRows(compare([specialist, with_tools]))
    sentence = _Conclusion(rows)._next_to_specialists(specialist, with_tools, "accuracy")
    assert sentence.id == "specialists.alone"
    assert f"nothing to compare, as {clipped(names[1], NAME_WIDTH)} answers nothing" in sentence.text
