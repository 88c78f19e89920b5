"""The estimate of a dry run equals a count by hand if every number is known, else it is within a factor of two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from graphs.controller import SOLVER as CONTROLLER
from hybrid.config import Limits, ModelSettings, Price, RunConfig, ServiceOptions
from hybrid.core.messages import AssistantMessage, Message, TokenUsage, ToolCall, images_of, parts_of
from hybrid.core.types import Kind, Prompt, Reply
from hybrid.models.base import CallKey
from hybrid.models.images import arrange
from hybrid.models.providers import image_tokens
from hybrid.models.text_protocol import describe
from hybrid.models.tokens import text_tokens, tools_json
from hybrid.plugins.registry import load
from hybrid.running.cost_estimate import SolverEstimate, Spent
from hybrid.running.estimate import estimate
from hybrid.running.replies import REPLIES, RunReplies
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.captions import RunCaptions, captioner_sha256
from hybrid.solving.solver import Solver, SolverContext
from hybrid.tool import Tool
from tests.fakes import Scripted
from tests.tables import stored

SERVER = ModelSettings(base_url="http://127.0.0.1:9/v1")

# Numbers of tokens. "Is the cat 1 on the mat?\nSelect from the following choices.\n(A) yes\n(B) no" has 76 characters,
# its format line has 88, and a name such as "img:1:" has 6. GPT-4o takes 85 + 170 tokens for a picture of one tile.
TEXT, LINE, NAME, PICTURE = 19, 22, 2, 255
MLLM = TEXT + LINE + NAME + PICTURE


@pytest.fixture
def config(tmp_path: Path, fakes: Any) -> RunConfig:
    """Configuration of a run on one question with one picture of 24 x 20 pixels."""
    folder = fakes.blink_folder(tmp_path / "blink", 0, 1)
    return RunConfig(
        "blink", ("mllm",), model="openai:gpt-4o", model_settings=SERVER, data=str(folder), out=tmp_path / "run"
    )


@dataclass(frozen=True)
class Talker(Solver):
    """A solver with a given estimate that asks nothing."""

    view: CallEstimate
    needs_model: bool = True

    def call_estimate(self, prompt: Prompt, limits: Limits) -> CallEstimate:
        return self.view

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        return Reply("")


async def estimate_run(config: RunConfig, solver: Solver | None = None) -> SolverEstimate:
    run = prepare(config)
    if solver is not None:
        run = replace(run, solvers={"talker": solver})
    (value,) = (await estimate(run)).solvers.values()
    return value


async def spent(config: RunConfig, call_path: CallPath) -> Spent:
    """Return the estimate for a solver that always takes this path of calls."""
    result = await estimate_run(config, Talker(certain(call_path)))
    assert result.low == result.expected == result.high
    return result.expected


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"format_line": False}, TEXT + NAME + PICTURE),
        ({"image_labels": False}, TEXT + LINE + PICTURE),
        ({"protocol": "official", "image_labels": False}, TEXT + PICTURE),
        ({"images": "none"}, TEXT + LINE),
        # A single picture is not put on a sheet.
        ({"images": "concat"}, MLLM),
        ({"model_settings": replace(SERVER, image_detail="low")}, TEXT + LINE + NAME + 85),
    ],
)
async def test_what_changes_the_prompt_changes_the_estimate(config: RunConfig, changes: Any, read: int) -> None:
    assert (await estimate_run(replace(config, **changes))).expected == Spent(1, read, 125)


async def test_captions_are_counted_once_and_on_their_own(config: RunConfig, tmp_path: Path, fakes: Any) -> None:
    captioned = replace(config, images="caption")
    # A caption replaces the picture and follows the picture's name.
    assert (await estimate_run(captioned)).expected == Spent(1, TEXT + LINE + NAME + 125, 125)
    # The request for a caption has 205 characters, and no name.
    result = (await estimate(prepare(captioned))).captions
    assert result is not None
    assert (result.questions, result.low, result.expected, result.high) == (1, *[Spent(1, 52 + PICTURE, 125)] * 3)
    assert (await estimate(prepare(config))).captions is None
    # Each image is described once, for all solvers, and not again by a resumed run.
    sampled = replace(SERVER, temperature=1.0)
    run = prepare(replace(captioned, solvers=("mllm", "caption"), model_settings=sampled, samples=3))
    report = await estimate(run)
    assert report.captions is not None
    assert report.captions.expected.calls == 1
    assert report.as_json()["captions"]["images"] == 1  # type: ignore[call-overload,index]
    assert "(captions)" in report.as_text()
    replies = RunReplies(run.folder.path / REPLIES, lambda _: ())
    captions = RunCaptions(captioner_sha256(run.captioner), keep=replies.keep_caption)  # type: ignore[arg-type]
    await captions.take(run.sound[0].images[0])
    await captions.keep(run.sound[0].images[0], "a cat")
    replies.close()
    report = await estimate(run)
    assert report.captions is not None
    assert report.captions.expected.calls == 0


async def test_a_second_model_has_a_price_and_a_rule_for_images_of_its_own(config: RunConfig) -> None:
    second = replace(
        config,
        images="caption",
        captioner="anthropic:claude-sonnet-4-5",
        captioner_settings=replace(SERVER, price=Price(3, 15)),
        model_settings=replace(SERVER, max_tokens=10),
    )
    report = await estimate(prepare(second))
    captions = report.captions
    assert captions is not None
    tokens = image_tokens("anthropic", "claude-sonnet-4-5", 24, 20)
    assert tokens is not None
    # --max-tokens applies to the model that answers.
    assert captions.expected == Spent(1, 52 + tokens, 125)
    assert captions.cost_usd == dict.fromkeys(("low", "expected", "high"), ((52 + tokens) * 3 + 125 * 15) / 1e6)
    assert captions.assumes == ("anthropic:claude-sonnet-4-5 describes images; this row counts images, not questions",)
    assert report.solvers["mllm"].expected == Spent(1, TEXT + LINE + NAME + 125, 10)


async def test_several_pictures_are_counted_each_or_as_one_sheet(config: RunConfig, tmp_path: Path, fakes: Any) -> None:
    # The puzzle is 96 pixels wide and each of its pieces 48: each picture is one tile, and so is the sheet.
    puzzle = replace(config, data=str(fakes.blink_folder(tmp_path / "puzzle", 1, 0)))
    item, three = [
        (await estimate_run(replace(puzzle, images=form))).expected.input_tokens for form in ("concat", "separate")
    ]
    assert three is not None
    assert item is not None
    assert three - item == 3 * (PICTURE + NAME) - (PICTURE + NAME)


async def test_a_menu_in_text_is_counted_as_it_is_written(config: RunConfig) -> None:
    config = replace(config, solvers=("controller",), tools=("crop",))
    text = replace(config, model_settings=replace(SERVER, tool_calling="text"))
    tools_offered = text_tokens(describe([load("tools", "crop")]))
    assert (await spent(text, CallPath(1, offered=1))).input_tokens == MLLM + tools_offered


async def test_a_large_picture_counts_as_it_is_sent(config: RunConfig, tmp_path: Path, fakes: Any) -> None:
    row = {**fakes.spatial_row(1), "image_1": fakes.encoded(fakes.pixels(1, (1024, 1024)))}
    fakes.write_task(tmp_path / "large", "Spatial_Relation", [row])
    large = replace(config, data=str(tmp_path / "large"))
    # OpenAI's own example: 765 tokens for 1024 x 1024.
    assert (await estimate_run(large)).expected.input_tokens == MLLM - PICTURE + 765
    small = replace(large, model_settings=replace(SERVER, max_pixels=512 * 512))
    assert (await estimate_run(small)).expected.input_tokens == MLLM


async def test_who_needs_no_model_takes_nothing(config: RunConfig) -> None:
    assert (await estimate_run(replace(config, solvers=("specialist",)))).high == Spent()


def test_the_controllers_outlook_keeps_to_its_limits() -> None:
    prompt = Prompt(("?",), Kind.CHOICE)
    result = CONTROLLER.call_estimate(prompt, Limits(tool_calls=5, turns=6))
    call_paths = (result.low, result.usual, result.high)
    assert [(path.calls, path.offered, path.findings) for path in call_paths] == [(1, 1, 0), (2, 2, 1), (6, 5, 5)]
    assert result.share == 0.75
    assert "for 3 of 4 prompts, one tool call" in result.assumes
    assert all("You may call tools" in item.says for item in call_paths)
    two = CONTROLLER.call_estimate(prompt, Limits(turns=2)).usual
    assert (two.calls, two.offered) == (2, 1)
    for limits in (Limits(turns=1), Limits(tool_calls=0)):
        alone = CONTROLLER.call_estimate(prompt, limits)
        assert (alone.low, alone.usual) == (alone.high, alone.high)
        assert (alone.high.calls, alone.high.offered) == (1, 0)


Folders = Callable[[str], Path]


def on(folder: Path, benchmark: str, **changes: Any) -> RunConfig:
    request = RunConfig(
        benchmark, ("mllm",), model="openai:gpt-4o", model_settings=SERVER, data=str(folder), out=folder / "run"
    )
    return replace(request, **changes)


async def test_every_ask_of_a_dialogue_is_counted(folders: Folders) -> None:
    # The question is asked again if the reply is the only refusal among its five options.
    refusals = await estimate_run(on(folders("mm_sap"), "mm_sap"))
    assert [spent.calls / refusals.questions for _, spent in refusals.levels] == [1, pytest.approx(1.2), 2]
    # Either one part is shown and the question follows, or all four parts are shown, with three prompts whether to
    # continue.
    shifts = await estimate_run(on(folders("actiview"), "actiview", settings={"mode": "shift"}))
    assert [spent.calls / shifts.questions for _, spent in shifts.levels] == [2, 3, 4]
    low, expected, high = (spent.input_tokens or 0 for _, spent in shifts.levels)
    assert low < expected < high
    # The model replies with one word to each prompt whether to continue, and with several words to the question.
    assert [spent.output_tokens / shifts.questions for _, spent in shifts.levels] == [126, 127, 128]


# By task, the tool that the model of the next test calls; only BLINK's generated tasks that have a tool are included.
TOOLS: Mapping[str, str] = stored(__file__, "TOOLS")
# A reply of the same length as GPT-4o's published replies.
REPLY = f"{'Let me look at it once more. ' * 16}\nAnswer: (A)"


@dataclass
class Counting(Scripted):
    """Calls the tool for a question's task, answers with a reply of GPT-4o's length, and counts its requests as
    sent."""

    # Tasks by the ids of their questions.
    tasks: Mapping[str, str]
    # Ids of the questions for which the model called a tool.
    calling: set[str] = field(default_factory=set)
    name: str = "openai:gpt-4o"
    provider: str = "openai"

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        read = sum(_size(message) for message in arrange(messages, 8))
        read += text_tokens(tools_json(tools)) if tools else 0
        value = TOOLS.get(self.tasks[call.question])
        tool = next((tool for tool in tools if tool.card.name == value), None)
        if tool is None or any(message.role == "tool" for message in messages):
            return AssistantMessage(REPLY, usage=TokenUsage(read, text_tokens(REPLY)))
        self.calling.add(call.question)
        images = [ref.name for ref in images_of(messages)][: tool.card.images[1]]
        tool_call = ToolCall(f"call_{call.ask}_{call.call}", tool.card.name, {"images": images})
        return AssistantMessage("", (tool_call,), usage=TokenUsage(read, text_tokens(repr(tool_call))))


def _size(message: Message) -> int:
    total = 0
    for part in parts_of(message):
        if isinstance(part, str):
            total += text_tokens(part)
        else:
            image = part.ref.image
            total += image_tokens("openai", "gpt-4o", image.width, image.height) or 0
    return total


@pytest.mark.system
@pytest.mark.parametrize("benchmark", ["blink", "hvsbench"])
async def test_a_run_uses_at_most_twice_and_at_least_half_of_it(benchmark: str, folders: Folders) -> None:
    solvers = ("controller", "verify", "arbiter", "mllm")
    run = prepare(on(folders(benchmark), benchmark, solvers=solvers, service=ServiceOptions("classical")))
    expected = (await estimate(run)).solvers
    model = Counting({question.id: question.task for question in run.sound})
    run = replace(run, resources=replace(run.resources, model=model))
    assert await ask_run(run, lambda *_: None) == ()
    assert len(model.calling) >= len(run.sound) / 2
    for solver in solvers:
        usages = [exchange.reply.usage for attempt in run.folder.attempts(solver) for exchange in attempt.exchanges]
        result = expected[solver].expected
        assert result.input_tokens is not None
        used = {
            "calls": (sum(usage.model_calls for usage in usages), result.calls),
            "input": (sum(usage.input_tokens for usage in usages), result.input_tokens),
            "output": (sum(usage.output_tokens for usage in usages), result.output_tokens),
        }
        for what, (real, estimated) in used.items():
            assert 0.5 <= estimated / real <= 2, (solver, what, real, estimated)
