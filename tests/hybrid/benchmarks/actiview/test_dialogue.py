"""ActiView's dialogues, driven by a queue of replies: what is asked, and that nothing is seen before it is revealed."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.actiview import BENCHMARK, ActiView
from hybrid.benchmarks.actiview.dialogue import dialogue_of, retrace
from hybrid.benchmarks.actiview.sample import write
from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import Limits, RunConfig, ServiceOptions
from hybrid.errors import ToolError
from hybrid.images import ImageStore
from hybrid.running.data import mount, questions
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import ToolService
from hybrid.solving.controls import Control
from hybrid.solving.session import AskSetup, Session
from hybrid.solving.solver import SolverContext
from hybrid.types import Exchange, Fault, Kind, Outcome, Prompt, Question, Reply


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shrunk: Callable[[Path], Path]) -> Path:
    made = tmp_path_factory.mktemp("actiview")
    write(made, ("object_attr",), 1, 5)
    return shrunk(made)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(tmp_path_factory.mktemp("store"))


@cache
def question_of(folder: Path, store: ImageStore, **given_settings: str) -> Question:
    mounted = mount(BENCHMARK, str(folder), split=None, tasks=(), settings=given_settings, store=store)
    question = questions(BENCHMARK, mounted.source, 1)[0]
    assert isinstance(question, Question)
    return question


def run(question: Question, replies: Sequence[str]) -> tuple[Exchange, ...]:
    """The dialogue with these replies in order; the last one is repeated."""
    waiting = list(replies)

    async def ask(prompt: Prompt) -> Reply:
        return Reply(waiting.pop(0) if len(waiting) > 1 else waiting[0])

    return asyncio.run(BENCHMARK.dialogue(question.asked(), ask))


def shown(question: Question, prompt: Prompt) -> list[str]:
    """The pictures of a prompt: `full`, `lines` or the number of a part, in order."""
    names = {image.sha256: ("full", "lines", "1", "2", "3", "4")[place] for place, image in enumerate(question.images)}
    assert [ref.name for ref in prompt.images] == [f"img:{number}" for number in range(1, len(prompt.images) + 1)]
    return [names[ref.image.sha256] for ref in prompt.images]


def asks(question: Question, replies: Sequence[str]) -> list[tuple[Kind, list[str]]]:
    return [(each.prompt.kind, shown(question, each.prompt)) for each in run(question, replies)]


def test_full(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="full")
    (exchange,) = run(question, ["A"])
    assert shown(question, exchange.prompt) == ["full"]
    assert exchange.prompt.choices == question.choices
    assert question.text in exchange.prompt.text
    assert f"Options: A. {question.choices[0]}; B. {question.choices[1]}" in exchange.prompt.text


@pytest.mark.parametrize("mode", ["commonsense", "guess"])
def test_without_the_picture(folder: Path, store: ImageStore, mode: str) -> None:
    question = question_of(folder, store, mode=mode)
    (exchange,) = run(question, ["A"])
    prompt = exchange.prompt
    assert (prompt.images, prompt.derived, prompt.kind, prompt.choices) == ((), (), Kind.CHOICE, question.choices)
    assert question.text in prompt.text
    assert f"Options: A. {question.choices[0]}; B. {question.choices[1]}" in prompt.text
    assert ("write None" in prompt.text) == (mode == "commonsense")
    assert ("most probable" in prompt.text) == (mode == "guess")
    assert question.groups["mode"] == mode


@pytest.mark.parametrize(
    ("mode", "text", "outcome", "declined"),
    [
        ("commonsense", "Answer: (None)", Outcome.ABSTAINED, 1.0),
        ("commonsense", "None", Outcome.ABSTAINED, 1.0),
        ("commonsense", "It cannot be known. **none**.", Outcome.ABSTAINED, 1.0),
        ("commonsense", "None of this helps me", Outcome.UNPARSED, 0.0),
        ("commonsense", "Answer: (A)", Outcome.ANSWERED, 0.0),
        ("guess", "None", Outcome.UNPARSED, None),
    ],
)
@pytest.mark.parametrize("parse", ["strict", "official"])
def test_declining_is_no_answer_and_counted_where_it_is_allowed(
    folder: Path, store: ImageStore, mode: str, text: str, outcome: Outcome, declined: float | None, parse: Any
) -> None:
    question = question_of(folder, store, mode=mode)
    said = text.replace("(A)", "A") if parse == "official" else text
    score = BENCHMARK.score(question, run(question, [said]), ScoreOptions(parse))
    assert (score.outcome, score.values.get("declined")) == (outcome, declined)
    if outcome is not Outcome.ANSWERED:
        assert score.correct == 0.0
        guessed = BENCHMARK.score(question, run(question, [said]), ScoreOptions(parse, "chance"))
        assert guessed.correct == pytest.approx(1 / len(question.choices))
    metrics = {metric.name: metric.value for metric in BENCHMARK.summarise([score])}
    assert metrics.get("declined.mean") == declined
    assert f"accuracy.{mode}" in metrics
    assert not [name for name in metrics if name.startswith(("views", "recall"))]


def test_single(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="single", start="H")
    assert asks(question, ["A"]) == [(Kind.CHOICE, [str(question.protocol["start"])])]


def test_zoom(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store)
    assert asks(question, ["Answer: 3, 1", "A"]) == [(Kind.VIEWS, ["lines"]), (Kind.CHOICE, ["full", "1", "3"])]
    assert asks(question, ["none", "A"]) == [(Kind.VIEWS, ["lines"]), (Kind.CHOICE, ["full"])]
    select = run(question, ["1"])[0].prompt
    assert select.choices == ("upper left", "lower left", "upper right", "lower right")
    assert not any(choice in select.text for choice in question.choices)


def test_zoom_as_released_reads_the_first_of_two_numbers(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, decisions="official")
    assert asks(question, ["1, 2", "A"])[1][1] == ["full", "1"]
    assert asks(question, ["1,2", "A"])[1][1] == ["full", "1", "2"]
    assert asks(question, ["7", "A"])[1][1] == ["full"]
    assert asks(question, ["1 and 3", "A"])[1][1] == ["full"]


def test_shift_goes_round_until_no(folder: Path, store: ImageStore) -> None:
    question = replace_start(question_of(folder, store, mode="shift"), 3)
    order = ["3", "4", "1", "2"]
    assert asks(question, ["Yes", "No.", "A"]) == [
        (Kind.CONTINUE, order[:1]),
        (Kind.CONTINUE, order[:2]),
        (Kind.CHOICE, order[:2]),
    ]
    assert asks(question, ["yes", "yes", "yes", "A"])[-1] == (Kind.CHOICE, order)
    assert len(asks(question, ["yes"])) == 4


def test_shift_as_released_stops_at_a_bare_no_alone(folder: Path, store: ImageStore) -> None:
    question = replace_start(question_of(folder, store, mode="shift", decisions="official"), 3)
    kinds = [kind for kind, _ in asks(question, ["No."])]
    assert kinds == [Kind.CONTINUE] * 4 + [Kind.CHOICE]
    assert asks(question, ["NO", "A"])[-1] == (Kind.CHOICE, ["3"])


def test_shift_by_choice(folder: Path, store: ImageStore) -> None:
    question = replace_start(question_of(folder, store, mode="shift", shift="choose"), 3)
    assert asks(question, ["Answer: 1", "No", "A"]) == [
        (Kind.VIEWS, ["3"]),
        (Kind.VIEWS, ["1", "3"]),
        (Kind.CHOICE, ["1", "3"]),
    ]
    assert asks(question, ["Answer: 1, 2, 4", "A"])[-1] == (Kind.CHOICE, ["1", "2", "3", "4"])
    assert asks(question, ["No, parts 1 and 2 are not of interest.", "A"])[-1] == (Kind.CHOICE, ["3"])
    first = run(question, ["3", "A"])
    assert "1 (upper left); 2 (lower left); 4 (lower right)" in first[0].prompt.text
    assert len(first) == 2


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


def test_any_view_asks_each_part_and_counts_any_right_answer(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, images="any_view")
    gold = json.loads(json.dumps(question.target))["answer"]
    wrong = next(letter for letter in "ABCD" if letter != gold)
    exchanges = run(question, ["1, 4", wrong, gold])
    assert [shown(question, each.prompt) for each in exchanges] == [["lines"], ["1"], ["4"]]
    score = BENCHMARK.score(question, exchanges, ScoreOptions())
    assert (score.correct, score.answer, score.values["any_view"]) == (1.0, gold, 1.0)
    assert BENCHMARK.score(question, run(question, ["1, 4", wrong]), ScoreOptions()).correct == 0.0
    assert BENCHMARK.summarise([score])[0].name == "accuracy_any_view_uses_gold.all"


def test_concatenated_parts(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, images="concat")
    choice = run(question, ["1, 3, 4", "A"])[1].prompt
    (picture,) = choice.images
    part = question.images[2]
    assert (picture.image.width, picture.image.height) == (3 * part.width, part.height)
    pixels, upper_right = store.pixels(picture.image), store.pixels(question.images[4])
    assert (pixels[:, part.width : 2 * part.width] == upper_right).all()
    assert shown(question, run(question, ["2", "A"])[1].prompt) == ["2"]
    assert shown(question, run(question, ["none", "A"])[1].prompt) == ["full"]


def test_any_view_on_average_is_for_zoom_and_shifting_concatenates(folder: Path, store: ImageStore) -> None:
    mounted = mount(
        BENCHMARK,
        str(folder),
        split=None,
        tasks=(),
        settings={"mode": "average", "images": "any_view"},
        store=store,
    )
    found = [question for question in questions(BENCHMARK, mounted.source, 1) if isinstance(question, Question)]
    assert [question.protocol["images"] for question in found] == ["any_view", *["concat"] * 4]
    scores = [BENCHMARK.score(question, run(question, ["1, 2", "no", "A"]), ScoreOptions()) for question in found]
    names = [metric.name for metric in BENCHMARK.summarise(scores)]
    assert "model_avg_any_view_uses_gold" in names
    assert not any(name.startswith("accuracy.") for name in names)


@pytest.mark.parametrize("choose", ["fixed", "choose"])
@pytest.mark.parametrize("start", ["R", "H", *(pytest.param(one, marks=pytest.mark.system) for one in "EM")])
def test_every_row_of_parts_is_there_when_shifting(folder: Path, store: ImageStore, choose: str, start: str) -> None:
    question = question_of(folder, store, mode="shift", images="concat", shift=choose, start=start)
    for replies in (["yes"], ["1", "2", "3", "4", "no"], ["4", "no"], ["2, 3", "no"], ["yes", "no"]):
        assert all(len(each.prompt.images) == 1 for each in run(question, replies))


def test_described_parts(folder: Path, store: ImageStore) -> None:
    question = replace_start(question_of(folder, store, mode="shift", images="description"), 1)
    exchanges = run(question, ["yes", "a grey wall", "yes", "a door", "no", "A"])
    assert [each.prompt.kind for each in exchanges] == [
        Kind.CONTINUE,
        Kind.FREE,
        Kind.CONTINUE,
        Kind.FREE,
        Kind.CONTINUE,
        Kind.CHOICE,
    ]
    assert [shown(question, each.prompt) for each in exchanges] == [["1"], ["1"], ["2"], ["2"], ["3"], ["3"]]
    assert "A description of part 1 (upper left): a grey wall" in exchanges[-1].prompt.text
    assert "part 2 (lower left): a door" in exchanges[-1].prompt.text
    assert question.text not in exchanges[1].prompt.text


class Prying:
    """A solver that answers from a queue and, before it does, tries for every picture it was not shown."""

    needs_model = False
    needs_live = False
    samples_itself = False
    runs_own_tools = False
    texts: Mapping[str, str] = {}

    def __init__(self, replies: Sequence[str]) -> None:
        self.waiting = list(replies)
        self.seen: list[frozenset[str]] = []
        self.refused = 0

    def calls(self, limits: Limits) -> tuple[int, int]:
        return 0, 0

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        assert ctx.image_registry.names == tuple(ref.name for ref in prompt.images)
        self.seen.append(frozenset(ref.image.sha256 for ref in prompt.images))
        for number in range(len(prompt.images) + 1, 9):
            with pytest.raises(ToolError) as caught:
                await ctx.tool("crop", (f"img:{number}",), {})
            assert caught.value.fault is Fault.UNKNOWN_IMAGE
            self.refused += 1
        return Reply(self.waiting.pop(0) if len(self.waiting) > 1 else self.waiting[0])


@pytest.mark.parametrize(
    ("chosen", "replies", "revealed"),
    [
        ({"mode": "zoom"}, ["2, 3", "A"], [{"lines"}, {"full", "2", "3"}]),
        ({"mode": "shift"}, ["yes", "no", "A"], [{"1"}, {"1", "2"}, {"1", "2"}]),
        ({"mode": "shift", "shift": "choose"}, ["4", "no", "A"], [{"1"}, {"1", "4"}, {"1", "4"}]),
        (
            {"mode": "mixed"},
            ['{"part": "2"}', '{"keep": "none", "shift": "3"}', "A"],
            [{"lines"}, {"full", "2"}, {"lines", "3"}],
        ),
        ({"mode": "single"}, ["A"], [{"1"}]),
        ({"mode": "full"}, ["A"], [{"full"}]),
    ],
)
def test_no_tool_and_no_solver_reaches_a_view_before_it_is_revealed(
    folder: Path, store: ImageStore, chosen: dict[str, str], replies: list[str], revealed: list[set[str]]
) -> None:
    question = question_of(folder, store, **chosen)
    if question.protocol["start"] is not None:
        question = replace_start(question, 1)
    solver = Prying(replies)
    service = ToolService(store, FindingCache(None, store), ServiceOptions())
    resources = AskSetup(RunConfig("", limits=Limits(tool_calls=100)), None, Control(service, "real"))
    session = Session(question, solver, resources)
    exchanges = asyncio.run(BENCHMARK.dialogue(question.asked(), session.ask))
    service.close()
    hashes = dict(zip(("full", "lines", "1", "2", "3", "4"), (i.sha256 for i in question.images), strict=True))
    assert len(set(hashes.values())) == 6
    assert solver.seen == [{hashes[name] for name in names} for names in revealed]
    assert solver.refused == sum(8 - len(names) for names in revealed)
    assert len(exchanges) == len(revealed)


def test_prompts_depend_on_nothing_but_the_protocol(folder: Path, store: ImageStore) -> None:
    scripts = {
        "zoom": ["1,2", "A"],
        "shift": ["yes", "no", "A"],
        "mixed": ['{"part": "1"}', '{"keep": "1", "shift": "2"}', "A"],
        "single": ["A"],
        "full": ["A"],
    }
    for mode, replies in scripts.items():
        question = question_of(folder, store, mode=mode)
        before = [each.prompt for each in run(question, replies)]
        for changed in (
            replace(question, task="event_multi"),
            replace(question, target={"answer": "Z", "views": [4]}),
            replace(question, groups={"type": "III", "mode": "x", "distraction": "0"}),
            replace(question, cluster="other", id="other#x"),
        ):
            assert [each.prompt for each in run(changed, replies)] == before
        for prompt in before:
            assert prompt.route == prompt.kind.value
            assert not any(word in prompt.text for word in ("jpg", "object_attr", "object-attr"))


def test_another_set_of_words(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store, mode="full")
    own = ActiView({**BENCHMARK.texts, "question": "<images> {question} | {options}"})

    async def ask(prompt: Prompt) -> Reply:
        return Reply("A")

    (exchange,) = asyncio.run(own.dialogue(question, ask))
    options = "; ".join(f"{letter}. {choice}" for letter, choice in zip("ABCD", question.choices, strict=True))
    assert exchange.prompt.parts[-1] == f"{question.text} | {options}"


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
    trail = retrace(dialogue_of(question, BENCHMARK.texts), [each.reply for each in exchanges])
    assert trail is not None
    seen = {name for name in shown(question, exchanges[-1].prompt) if name.isdigit()}
    assert seen == {str(number) for number in trail.shown}
    score = BENCHMARK.score(question, exchanges, ScoreOptions())
    assert score.values["views"] == len(trail.shown)
    if not exchanges[-1].reply.text.strip():
        assert score.correct == 0.0
    assert retrace(dialogue_of(question, BENCHMARK.texts), [each.reply for each in exchanges[:-1]]) is None


def test_an_ask_that_failed_fails_the_question(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store)
    exchanges = list(run(question, ["1", str(json.loads(json.dumps(question.target))["answer"])]))
    assert BENCHMARK.score(question, exchanges, ScoreOptions()).correct == 1.0
    exchanges[0] = replace(exchanges[0], reply=Reply("1", Outcome.NOT_RECORDED))
    score = BENCHMARK.score(question, exchanges, ScoreOptions())
    assert (score.correct, score.outcome) == (0.0, Outcome.NOT_RECORDED)


def test_the_oracle_speaks_to_each_kind_of_ask(folder: Path, store: ImageStore) -> None:
    question = question_of(folder, store)
    select, choice = (each.prompt for each in run(question, ["1", "A"]))
    clues = json.loads((folder / "asset" / "groundtruth_views.json").read_text())[0]
    assert BENCHMARK.oracle(question, select).endswith(f"in the parts {', '.join(map(str, clues))}.")
    gold = json.loads(json.dumps(question.target))["answer"]
    assert f"favours ({gold}) {question.choices['ABCD'.index(gold)]}" in BENCHMARK.oracle(question, choice)
    shift = replace_start(question_of(folder, store, mode="shift"), 1)
    asked = [each.prompt for each in run(shift, ["yes"])][:-1]
    assert [BENCHMARK.oracle(shift, prompt)[:3] for prompt in asked] == [
        "No," if set(clues) <= set(range(1, count + 1)) else "Yes" for count in (1, 2, 3)
    ]


def replace_start(question: Question, start: int) -> Question:
    return replace(question, protocol={**question.protocol, "start": start})
