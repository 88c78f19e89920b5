"""HVSBench as a whole: questions out of files, the dialogue, verdicts, leaks, bad input."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions, Source
from hybrid.benchmarks.hvsbench import BENCHMARK, CHANCE_COUNT, HVSBench
from hybrid.benchmarks.hvsbench.metrics import FALLBACK_COUNT
from hybrid.benchmarks.hvsbench.sample import TASKS, write
from hybrid.errors import DataError, UsageError
from hybrid.images import ImageStore
from hybrid.log.codec import codec
from hybrid.running.data import mount, questions
from hybrid.types import Exchange, Json, Kind, Outcome, Prompt, Question, Reply, Score

PER_TASK = 2
HUMAN = "X = [0.5, 0.2, 0.8] Y = [0.5, 0.3, 0.6] T = [100, 200, 300]"
CHANCE = ScoreOptions(abstain="chance")
WRONG = ScoreOptions(abstain="wrong")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hvsbench")
    write(folder, tuple(TASKS), PER_TASK, 0)
    return folder


def source(folder: Path, *tasks: str, **chosen: str) -> Source:
    store = ImageStore(folder / "store")
    return mount(BENCHMARK, str(folder), split=None, tasks=tasks, settings=chosen, store=store).source


@pytest.fixture(scope="module")
def asked(sample: Path) -> dict[str, Question]:
    """The first question of every type."""
    found: dict[str, Question] = {}
    for question in questions(BENCHMARK, source(sample), None):
        assert isinstance(question, Question)
        found.setdefault(question.task, question)
    return found


class Queue:
    """Says what it was given, in order, and keeps the prompts."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.prompts: list[Prompt] = []

    async def ask(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        return Reply(self.texts.pop(0))


def verdict(
    question: Question, text: str, outcome: Outcome = Outcome.ANSWERED, options: ScoreOptions = CHANCE
) -> Score:
    exchange = Exchange(Prompt((question.text,), question.kind, question.choices), Reply(text, outcome))
    return BENCHMARK.score(question, (exchange,), options)


def right_answer(question: Question) -> str:
    return HUMAN if question.kind is Kind.SCANPATH else f"Answer: {question.target}"


def test_every_type_is_read(asked: Mapping[str, Question]) -> None:
    assert tuple(asked) == BENCHMARK.card.sample_tasks == tuple(TASKS) == tuple(BENCHMARK.card.tasks)
    for task, question in asked.items():
        assert question.id.startswith(f"{task}_")
        assert question.route == task
        assert len(question.images) == 1
        assert question.groups["origin"] == "generated"
        assert question.cluster.startswith("image-")
    fields = {question.groups["field"] for question in asked.values()}
    assert fields == {"prominence", "subitizing", "prioritizing", "free_viewing", "searching"}


def test_questions_survive_the_disk(asked: Mapping[str, Question]) -> None:
    for question in asked.values():
        restored = codec(Question).validate_json(codec(Question).dump_json(question))
        assert verdict(restored, HUMAN) == verdict(question, HUMAN)
        assert verdict(restored, right_answer(question)) == verdict(question, right_answer(question))


@pytest.mark.parametrize("task", TASKS)
async def test_the_dialogue_asks_once_with_text_and_image(asked: Mapping[str, Question], task: str) -> None:
    solver = Queue(right_answer(asked[task]))
    exchanges = await BENCHMARK.dialogue(asked[task].asked(), solver.ask)
    (prompt,) = solver.prompts
    assert prompt.parts[0] == asked[task].text
    assert [image.name for image in prompt.images] == ["img:1"]
    score = BENCHMARK.score(asked[task], exchanges, WRONG)
    assert score.correct == (None if asked[task].kind is Kind.SCANPATH else 1.0)
    assert score.outcome is Outcome.ANSWERED


@pytest.mark.parametrize("task", TASKS)
async def test_nothing_but_the_text_reaches_a_prompt(asked: Mapping[str, Question], task: str) -> None:
    question = asked[task]
    other = replace(
        question,
        task="other",
        target="other",
        groups={"field": "other", "origin": "other"},
        id="other",
        cluster="other",
    )
    first, second = Queue(""), Queue("")
    await BENCHMARK.dialogue(question.asked(), first.ask)
    await BENCHMARK.dialogue(other.asked(), second.ask)
    assert codec(Prompt).dump_json(first.prompts[0]) == codec(Prompt).dump_json(second.prompts[0])
    assert not question.protocol


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_reply_is_never_correct(asked: Mapping[str, Question], task: str) -> None:
    for outcome in Outcome:
        score = verdict(asked[task], " \n", outcome, WRONG)
        assert not score.correct
        assert score.answer is None
        assert score.rule == "none"
        assert score.outcome is (Outcome.UNPARSED if outcome is Outcome.ANSWERED else outcome)


CHANCES = {"Q1": 1 / 4, "Q2": CHANCE_COUNT, "Q4": 1 / 2, "Q6": 1 / 3, "Q8": 1 / 2, "Q10": 1 / 4}


@pytest.mark.parametrize(("task", "chance"), CHANCES.items())
def test_an_abstention_is_worth_chance_or_nothing(asked: Mapping[str, Question], task: str, chance: float) -> None:
    assert verdict(asked[task], "", Outcome.ABSTAINED).correct == pytest.approx(chance)
    assert verdict(asked[task], "", Outcome.ABSTAINED, WRONG).correct == 0.0
    for text, outcome in (("", Outcome.BUDGET), ("", Outcome.TOOL_FAULT), ("I cannot say", Outcome.ANSWERED)):
        assert verdict(asked[task], text, outcome).correct == pytest.approx(chance)
        assert verdict(asked[task], text, outcome, WRONG).correct == 0.0
    assert verdict(asked[task], "", Outcome.OUTAGE).correct == 0.0


def test_an_abstained_order_is_worth_one_in_all_orders(asked: Mapping[str, Question]) -> None:
    number = len(asked["Q3"].choices)
    assert verdict(asked["Q3"], "", Outcome.ABSTAINED).correct == pytest.approx({3: 1 / 6, 4: 1 / 24}[number])


def test_an_abstained_scanpath_is_a_random_human_path_or_the_fallback(asked: Mapping[str, Question]) -> None:
    values = verdict(asked["Q9"], "", Outcome.ABSTAINED).values
    assert values["m_dir"] == values["m_dir_random"]
    assert verdict(asked["Q9"], "I cannot say").values == values
    wrong = verdict(asked["Q9"], "", Outcome.ABSTAINED, WRONG)
    unread = verdict(asked["Q9"], "I cannot say", options=WRONG)
    assert wrong.values == unread.values
    assert (wrong.outcome, unread.outcome) == (Outcome.ABSTAINED, Outcome.UNPARSED)
    assert unread.values["m_pos"] != values["m_pos"]


@pytest.mark.parametrize(
    ("text", "predicted"), [("5", 5.0), ("There are five: four boats and one flower", 5.0), ("B", None)]
)
def test_counts_and_the_fallback(asked: Mapping[str, Question], text: str, predicted: float | None) -> None:
    question = replace(asked["Q2"], target=5)
    score = verdict(question, text, options=WRONG)
    assert score.values["predicted"] == (FALLBACK_COUNT if predicted is None else predicted)
    assert score.values["error"] == pytest.approx(score.values["predicted"] - 5)
    assert score.correct == float(predicted == 5)
    assert score.outcome is (Outcome.UNPARSED if predicted is None else Outcome.ANSWERED)
    assert verdict(replace(question, target=4), text, options=WRONG).correct == 0.0


def test_an_order_counts_only_when_it_is_the_whole_order(asked: Mapping[str, Question]) -> None:
    question = replace(asked["Q3"], target="BCA", choices=("a", "b", "c"))
    assert verdict(question, "B C A").correct == 1.0
    assert verdict(question, "The order between the A,B,C should be BCA").correct == 1.0
    assert verdict(question, "its A and B").correct == 0.0
    assert verdict(question, "BC").correct == 0.0


def test_the_article_is_no_answer(asked: Mapping[str, Question]) -> None:
    question = replace(asked["Q5"], target="B")
    assert verdict(question, "A clock is a clock. So the answer is B").correct == 1.0
    assert verdict(question, "[A]").correct == 0.0


def test_more_options_than_eight(asked: Mapping[str, Question]) -> None:
    question = replace(asked["Q1"], target="K", choices=tuple(f"[{n}, {n}, {n + 1}, {n + 1}]" for n in range(17)))
    assert verdict(question, "Answer: (K)").correct == 1.0
    assert verdict(question, "Answer: (R)").outcome is Outcome.UNPARSED


def test_a_human_path_is_like_the_humans_and_a_corner_is_not(asked: Mapping[str, Question]) -> None:
    text = BENCHMARK.oracle(asked["Q9"], Prompt(("",), Kind.SCANPATH))
    corner = "X = [1.0, 1.0, 1.0] Y = [1.0, 1.0, 1.0] T = [9, 9, 9]"
    human, other = verdict(asked["Q9"], text), verdict(asked["Q9"], corner)
    assert (human.correct, human.answer, human.rule) == (None, f"{asked['Q9'].given.fixations} fixations", "lists")
    assert human.values["m_pos"] > 0.9 > other.values["m_pos"]
    assert human.values["m_dir_human"] == other.values["m_dir_human"]
    assert set(human.values) == {
        f"{name}{end}" for name in ("m_shape", "m_dir", "m_len", "m_pos") for end in ("", "_human", "_random")
    }


@settings(max_examples=40)
@given(text=st.text(max_size=120), task=st.sampled_from(tuple(TASKS)))
def test_any_reply_is_scored(text: str, task: str) -> None:
    question = QUESTIONS[task]
    score = verdict(question, text)
    assert score.correct is None or 0 <= score.correct <= 1
    assert (score.answer is None) == (score.outcome is Outcome.UNPARSED)
    assert all(abs(value) <= 1.5 for name, value in score.values.items() if name.startswith("m_"))


TARGET: Json = {
    "paths": [{"x": [0.5, 0.1, 0.9], "y": [0.5, 0.2, 0.7], "t_ms": [9, 9, 9]}],
    "other": None,
    "screen": [512, 320],
    "crop": 6,
    "crop_truth": False,
}


def of_type(task: str) -> Question:
    kinds = {"Q2": Kind.INTEGER, "Q3": Kind.ORDER, "Q9": Kind.SCANPATH, "Q12": Kind.SCANPATH}
    kind = kinds.get(task, Kind.CHOICE)
    targets: dict[Kind, Json] = {Kind.INTEGER: 3, Kind.ORDER: "BA", Kind.SCANPATH: TARGET, Kind.CHOICE: "A"}
    choices = ("the dog", "the cat") if kind in (Kind.CHOICE, Kind.ORDER) else ()
    return Question(f"{task}_1", task, (), "Which?", kind, choices, targets[kind], task)


QUESTIONS = {task: of_type(task) for task in TASKS}


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_is_one_sentence_with_the_answer(asked: Mapping[str, Question], task: str) -> None:
    question = asked[task]
    sentence = BENCHMARK.oracle(question, Prompt((question.text,), question.kind, question.choices))
    assert "\n" not in sentence
    if question.kind is Kind.SCANPATH:
        assert verdict(question, sentence).values["m_pos"] > 0.9
    else:
        assert verdict(question, sentence).correct == 1.0


def test_stored_answers_are_scored_like_replies(asked: Mapping[str, Question]) -> None:
    assert BENCHMARK.score_stored(asked["Q1"], str(asked["Q1"].target)).correct == 1.0
    assert BENCHMARK.score_stored(asked["Q2"], "many").correct == 0.0


def test_there_is_no_server_and_no_published_prediction(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no server"):
        BENCHMARK.submission({})
    assert BENCHMARK.predictions(tmp_path) is None


def test_summary_of_right_answers(sample: Path) -> None:
    scores = [
        verdict(q, right_answer(q)) for q in questions(BENCHMARK, source(sample), None) if isinstance(q, Question)
    ]
    found = {metric.name: metric for metric in BENCHMARK.summarise(scores)}
    assert found["overall_accuracy"].value == 1.0
    assert found["overall_accuracy"].n == 11 * PER_TASK
    assert found["accuracy.prioritizing"].n == 5 * PER_TASK
    assert found["mae"].value == found["rmse"].value == 0.0
    assert found["m_dir.q9"].n == found["m_dir_human.q12"].n == PER_TASK


def test_hints_stand_before_the_question_in_our_words(sample: Path, asked: Mapping[str, Question]) -> None:
    hints = BENCHMARK.texts
    fits = {"Q1": "salient", "Q2": "salient", "Q5": "ranking", "Q8": "fixation", "Q12": "fixation"}
    for task, name in fits.items():
        question = next(iter(BENCHMARK.questions(source(sample, task, hints="on"))))
        assert isinstance(question, Question)
        assert question.text == f"{hints[name].strip()}\n{asked[task].text}"
        assert question.given == asked[task].given


def test_hints_can_be_replaced_and_are_not_shown_unasked(sample: Path, asked: Mapping[str, Question]) -> None:
    other = HVSBench({**BENCHMARK.texts, "ranking": "Think."})
    (question, *_) = other.questions(source(sample, "Q5", hints="on"))
    assert isinstance(question, Question)
    assert question.text == f"Think.\n{asked['Q5'].text}"
    assert next(iter(other.questions(source(sample, "Q5")))) == asked["Q5"]


def test_scanpath_settings_reach_the_scorer(sample: Path) -> None:
    question = next(iter(BENCHMARK.questions(source(sample, "Q9", screen="1680x1050", crop_truth="on"))))
    assert isinstance(question, Question)
    assert isinstance(question.target, Mapping)
    assert (question.target["screen"], question.target["crop_truth"]) == ([1680, 1050], True)
    assert json.loads(json.dumps(question.target)) == question.target


@pytest.mark.parametrize(
    ("key", "value"),
    [("hints", "yes"), ("screen", "wide"), ("screen", "0x1"), ("crop_truth", "6"), ("boxes", "cxcywh")],
)
def test_unknown_setting_values(sample: Path, key: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"--setting {key}={value}"):
        list(BENCHMARK.questions(source(sample, **{key: value})))


def test_unknown_settings_splits_and_tasks(sample: Path) -> None:
    store = ImageStore(sample / "store")
    with pytest.raises(UsageError, match="no setting 'speed'"):
        source(sample, speed="1")
    with pytest.raises(UsageError, match="no split 'val'"):
        mount(BENCHMARK, str(sample), split="val", tasks=(), settings={}, store=store)
    with pytest.raises(UsageError, match="no task 'Q14'"):
        source(sample, "Q14")


def test_a_folder_without_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected data/test-\*.parquet"):
        source(tmp_path)


def test_joining_predictions_needs_no_images(sample: Path, asked: Mapping[str, Question]) -> None:
    joined = questions(BENCHMARK, replace(source(sample), for_predictions=True), None)
    assert len(joined) == len(TASKS) * PER_TASK
    for question in joined:
        assert isinstance(question, Question)
        if question.id == asked[question.task].id:
            assert question == replace(asked[question.task], images=(), given=question.given)
