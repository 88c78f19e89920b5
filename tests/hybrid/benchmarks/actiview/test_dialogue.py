"""ActiView's dialogues with queued replies: the prompts, and that no part is visible before it is revealed."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.actiview import BENCHMARK
from hybrid.benchmarks.actiview.dialogue import dialogue_of, retrace
from hybrid.benchmarks.actiview.sample import write
from hybrid.benchmarks.base import ScoreOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Kind, Outcome, Prompt, Question, Reply
from hybrid.running.data import mount, questions
from tests.hybrid.benchmarks.mounted import hold_dialogue
from tests.tables import cases

run = partial(hold_dialogue, BENCHMARK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shrunk: Callable[[Path], Path]) -> Path:
    built = tmp_path_factory.mktemp("actiview")
    write(built, ("object_attr",), 1, 5)
    return shrunk(built)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(tmp_path_factory.mktemp("store"))


@cache
def question_of(folder: Path, store: ImageStore, **given_settings: str) -> Question:
    mounted = mount(BENCHMARK, str(folder), split=None, tasks=(), settings=given_settings, store=store)
    question = questions(BENCHMARK, mounted.source, 1)[0]
    assert isinstance(question, Question)
    return question


def picture_names(question: Question, prompt: Prompt) -> list[str]:
    """Return the pictures of a prompt: `full`, `lines` or the number of a part, in order."""
    names = {image.sha256: ("full", "lines", "1", "2", "3", "4")[place] for place, image in enumerate(question.images)}
    assert [ref.name for ref in prompt.images] == [f"img:{number}" for number in range(1, len(prompt.images) + 1)]
    return [names[ref.image.sha256] for ref in prompt.images]


def asks(question: Question, replies: Sequence[str]) -> list[tuple[Kind, list[str]]]:
    return [(item.prompt.kind, picture_names(question, item.prompt)) for item in run(question, replies)]


def test_full(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="full")
    (exchange,) = run(question, ["A"])
    assert picture_names(question, exchange.prompt) == ["full"]
    assert exchange.prompt.choices == question.choices
    assert question.text in exchange.prompt.text
    assert f"Options: A. {question.choices[0]}; B. {question.choices[1]}" in exchange.prompt.text


@pytest.mark.parametrize(
    *cases(__file__, "test_declining_is_no_answer_and_counted_where_it_is_allowed", outcome=Outcome)
)
@pytest.mark.parametrize("parse", ["strict", "official"])
def test_declining_is_no_answer_and_counted_where_it_is_allowed(
    folder: Path, store: ImageStore, mode: str, text: str, outcome: Outcome, declined: float | None, parse: Any
) -> None:
    question = question_of(folder, store, mode=mode)
    variant = text.replace("(A)", "A") if parse == "official" else text
    score = BENCHMARK.score(question, run(question, [variant]), ScoreOptions(parse))
    assert (score.outcome, score.values.get("declined")) == (outcome, declined)
    if outcome is not Outcome.ANSWERED:
        assert score.correct == 0.0
        guessed = BENCHMARK.score(question, run(question, [variant]), ScoreOptions(parse, "guess"))
        assert guessed.correct == pytest.approx(1 / len(question.choices))
    metrics = {metric.name: metric.value for metric in BENCHMARK.summarise([score])}
    assert metrics.get("declined.mean") == declined
    assert f"accuracy.{mode}" in metrics
    assert not [name for name in metrics if name.startswith(("views", "recall"))]


def test_single(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="single", start="H")
    assert asks(question, ["A"]) == [(Kind.CHOICE, [str(question.protocol["start"])])]


def test_mixed(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="mixed")
    plan, change = '```json\n{"part": "1, 2", "reason": "x"}\n```', '{"keep": "1", "shift": "4"}'
    assert asks(question, [plan, change, "A"]) == [
        (Kind.VIEW_PLAN, ["lines"]),
        (Kind.VIEW_PLAN, ["full", "1", "2"]),
        (Kind.CHOICE, ["lines", "1", "4"]),
    ]
    assert asks(question, [plan, '{"keep": "none", "shift": "none"}', "A"])[-1] == (Kind.CHOICE, ["lines"])
    assert asks(question, [plan, "what?", "A"])[-1] == (Kind.CHOICE, ["lines", "1", "2"])
    assert asks(question, ['{"part": "none"}', "A"]) == [(Kind.VIEW_PLAN, ["lines"]), (Kind.CHOICE, ["full"])]
    official = question_of(folder, store, mode="mixed", decisions="official")
    assert len(asks(official, [plan, "A"])) == 2
    assert asks(official, ['{"part": "2"}', '{"keep": "3", "shift": "4"}', "A"])[-1][1] == ["lines", "4"]


def test_oracle_views(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, views="oracle")
    clues = json.loads((folder / "asset" / "groundtruth_views.json").read_text())[0]
    assert asks(question, ["A"]) == [(Kind.CHOICE, ["full", *map(str, clues)])]
    score = BENCHMARK.score(question, run(question, ["A"]), ScoreOptions())
    assert score.values["oracle_views"] == 1.0
    assert "hits" not in score.values
    assert BENCHMARK.summarise([score])[0].name == "accuracy_oracle_views.all"


def test_concatenated_parts(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, images="concat")
    (picture,) = run(question, ["1, 3, 4", "A"])[1].prompt.images
    part = question.images[2]
    assert (picture.image.width, picture.image.height) == (3 * part.width, part.height)
    pixels, upper_right = store.pixels(picture.image), store.pixels(question.images[4])
    assert (pixels[:, part.width : 2 * part.width] == upper_right).all()
    assert picture_names(question, run(question, ["2", "A"])[1].prompt) == ["2"]
    assert picture_names(question, run(question, ["none", "A"])[1].prompt) == ["full"]


def test_any_view_on_average_is_for_zoom_and_shifting_concatenates(folder: Path, store: ImageStore) -> None:
    mounted = mount(
        BENCHMARK, str(folder), split=None, tasks=(), settings={"mode": "average", "images": "any_view"}, store=store
    )
    values = [question for question in questions(BENCHMARK, mounted.source, 1) if isinstance(question, Question)]
    assert [question.protocol["images"] for question in values] == ["any_view", *["concat"] * 4]
    scores = [BENCHMARK.score(question, run(question, ["1, 2", "no", "A"]), ScoreOptions()) for question in values]
    names = [metric.name for metric in BENCHMARK.summarise(scores)]
    assert "model_avg_any_view_uses_gold" in names
    assert not any(name.startswith("accuracy.") for name in names)


@pytest.mark.parametrize("choose", ["fixed", "choose"])
@pytest.mark.parametrize("start", ["R", "H", *(pytest.param(item, marks=pytest.mark.system) for item in "EM")])
def test_every_row_of_parts_is_there_when_shifting(folder: Path, store: ImageStore, choose: str, start: str) -> None:
    question = question_of(folder, store, mode="shift", images="concat", shift=choose, start=start)
    for replies in (["yes"], ["1", "2", "3", "4", "no"], ["4", "no"], ["2, 3", "no"], ["yes", "no"]):
        assert all(len(entry.prompt.images) == 1 for entry in run(question, replies))


def test_described_parts(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="shift", images="description")
    question = replace(question, protocol={**question.protocol, "start": 1})
    exchanges = run(question, ["yes", "a grey wall", "yes", "a door", "no", "A"])
    assert [exchange.prompt.kind for exchange in exchanges] == [
        Kind.CONTINUE,
        Kind.FREE,
        Kind.CONTINUE,
        Kind.FREE,
        Kind.CONTINUE,
        Kind.CHOICE,
    ]
    assert [picture_names(question, item.prompt) for item in exchanges] == [["1"], ["1"], ["2"], ["2"], ["3"], ["3"]]
    assert "A description of part 1 (upper left): a grey wall" in exchanges[-1].prompt.text
    assert "part 2 (lower left): a door" in exchanges[-1].prompt.text
    assert question.text not in exchanges[1].prompt.text


@settings(max_examples=60)
@given(
    replies=st.lists(
        st.one_of(st.text(max_size=30), st.sampled_from(["1, 2", "no", "yes", '{"part": "1,3"}', '{"keep": "1"}', ""])),
        min_size=1,
        max_size=6,
    ),
    mode=st.sampled_from(["zoom", "shift", "mixed"]),
    decisions=st.sampled_from(["strict", "official"]),
)
def test_any_replies_lead_to_an_answer_that_can_be_retraced(
    folder: Path, store: ImageStore, replies: list[str], mode: str, decisions: str
) -> None:
    question = question_of(folder, store, mode=mode, decisions=decisions)
    exchanges = run(question, replies)
    assert exchanges[-1].prompt.kind is Kind.CHOICE
    trail = retrace(dialogue_of(question, BENCHMARK.texts), [exchange.reply for exchange in exchanges])
    assert trail is not None
    seen = {name for name in picture_names(question, exchanges[-1].prompt) if name.isdigit()}
    assert seen == {str(number) for number in trail.shown}
    score = BENCHMARK.score(question, exchanges, ScoreOptions())
    assert score.values["views"] == len(trail.shown)
    if not exchanges[-1].reply.text.strip():
        assert score.correct == 0.0
    assert retrace(dialogue_of(question, BENCHMARK.texts), [item.reply for item in exchanges[:-1]]) is None


def test_an_ask_that_failed_fails_the_question(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store)
    exchanges = list(run(question, ["1", str(json.loads(json.dumps(question.target))["answer"])]))
    assert BENCHMARK.score(question, exchanges, ScoreOptions()).correct == 1.0
    exchanges[0] = replace(exchanges[0], reply=Reply("1", Outcome.NOT_RECORDED))
    score = BENCHMARK.score(question, exchanges, ScoreOptions())
    assert (score.correct, score.outcome) == (0.0, Outcome.NOT_RECORDED)
