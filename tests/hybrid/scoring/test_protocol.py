"""With `--protocol official`, questions have the papers' wording and replies their parser, or the run is refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.benchmarks.questions.recipe import RecipeBenchmark
from hybrid.config import ModelSettings, RunConfig
from hybrid.core.errors import UsageError
from hybrid.core.format_lines import bare
from hybrid.core.messages import AssistantMessage, Message
from hybrid.core.types import Exchange, Kind, Outcome, Prompt, Question, Reply
from hybrid.models.base import CallKey
from hybrid.plugins.registry import load, names
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.scoring.judge import judge_run
from hybrid.scoring.runs import score_run
from hybrid.tool import Tool
from tests.fakes import Scripted

OFFICIAL = ScoreOptions(parse="official")
IN_OUR_LINE = {
    Kind.CHOICE: "Answer: (A)",
    Kind.YES_NO: "Answer: yes",
    Kind.INTEGER: "Answer: 3",
    Kind.ORDER: "Answer: BADC",
    Kind.SCANPATH: "X = [0.5]\nY = [0.5]\nT = [200]",
}


Sample = Callable[..., RunConfig]
SERVER = ModelSettings(base_url="http://127.0.0.1:9/v1")


@dataclass
class Obedient(Scripted):
    """Answers each question in the form of its kind: on hybrid's answer line, or alone if the prompt does not request
    that line.
    """

    # Kinds of the questions by their ids.
    kinds: Mapping[str, Kind]
    lined: bool
    name: str = "openai:mock"
    provider: str = "openai"

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        answer = IN_OUR_LINE[self.kinds[call.question]]
        return AssistantMessage(answer if self.lined else bare(answer))


@pytest.fixture
def sample(folders: Callable[[str], Path], tmp_path: Path) -> Sample:
    """Generated questions, asked of the MLLM alone."""

    def config(benchmark: str, **changes: Any) -> RunConfig:
        data, out = str(folders(benchmark)), tmp_path / "run"
        settings: dict[str, Any] = {"model_settings": SERVER, "data": data, "out": out, "allow": ("partial",)}
        request = RunConfig(benchmark, ("mllm",), model="openai:mock", **settings)
        return replace(request, **changes)

    return config


async def ran(config: RunConfig) -> ResolvedRun:
    plan = prepare(config)
    lined = config.format_line and config.protocol == "strict"
    model = Obedient({question.id: question.kind for question in plan.sound}, lined)
    plan = replace(plan, resources=replace(plan.resources, model=model))
    assert await ask_run(plan, lambda *_: None) == ()
    return plan


GENERATED = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_tasks]
# Benchmarks that share a class; the default selection tests only the first.
RECIPES = [name for name in GENERATED if isinstance(load("hybrid.benchmarks", name), RecipeBenchmark)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.system if name in RECIPES[1:] else ()) for name in GENERATED]
)
def test_what_the_card_says_of_our_line_is_what_the_official_parse_does(name: str, sample: Sample) -> None:
    benchmark: Benchmark = load("hybrid.benchmarks", name)
    plan = prepare(sample(name))
    first: dict[Kind, Question] = {}
    for question in plan.sound:
        first.setdefault(question.kind, question)
    for kind, question in first.items():
        prompt = Prompt((question.text,), kind, question.choices)
        assert parse(IN_OUR_LINE[kind], kind, question.choices).value is not None
        score = benchmark.score(question, (Exchange(prompt, Reply(IN_OUR_LINE[kind])),), OFFICIAL)
        assert (score.outcome is Outcome.ANSWERED) == (kind in benchmark.card.official_reads), kind
        plain = benchmark.score(question, (Exchange(prompt, Reply(bare(IN_OUR_LINE[kind]))),), OFFICIAL)
        assert plain.outcome is Outcome.ANSWERED


@pytest.mark.parametrize("name", ["actiview", "mm_sap", "mvp_bench"])
async def test_a_run_with_our_line_is_not_read_by_the_official_parse(name: str, sample: Sample) -> None:
    plan = await ran(sample(name))
    with pytest.raises(UsageError, match=r"was asked with hybrid's format line.* Run with --protocol official"):
        score_run(plan.folder, OFFICIAL)
    with pytest.raises(UsageError, match="was asked with hybrid's format line"):
        await judge_run(plan.folder, plan.resources.model, (), OFFICIAL, 1)  # type: ignore[arg-type]
    (scored,) = score_run(plan.folder, ScoreOptions())
    assert {score.outcome for score in scored.scores} == {Outcome.ANSWERED}


@pytest.mark.parametrize("name", ["blink", "hvsbench"])
async def test_where_the_official_parse_reads_our_line_it_may(name: str, sample: Sample) -> None:
    plan = await ran(sample(name))
    (scored,) = score_run(plan.folder, OFFICIAL)
    assert {score.outcome for score in scored.scores} == {Outcome.ANSWERED}


@pytest.mark.parametrize("name", ["actiview", "blink", "mm_sap", "mvp_bench"])
async def test_an_official_run_is_asked_without_our_line_and_read(name: str, sample: Sample) -> None:
    config = sample(name, protocol="official", solvers=("mllm", "chance"))
    plan = await ran(config)
    identity = plan.folder.manifest["identity"]
    assert (identity["protocol"], identity["prompts"]["format_line"]) == ("official", False)
    assert plan.resources.wording.closing(Prompt(("?",), Kind.CHOICE)) == ()
    for scored in score_run(plan.folder, OFFICIAL):
        assert {score.outcome for score in scored.scores} == {Outcome.ANSWERED}, scored.solver


def test_steering_replies_are_read_as_they_are_asked_for(sample: Sample) -> None:
    def decisions(**changes: Any) -> object:
        return prepare(sample("actiview", **changes)).mounted.source.settings["decisions"]

    assert decisions() == "strict"
    assert decisions(protocol="official") == "official"
    assert decisions(protocol="official", settings={"decisions": "strict"}) == "strict"
    assert decisions(format_line=False, settings={"decisions": "official"}) == "official"
    with pytest.raises(UsageError, match="decisions=official reads replies as the released code does"):
        decisions(settings={"decisions": "official"})


def test_a_likelihood_is_refused_where_its_form_is_not_read(sample: Sample) -> None:
    with pytest.raises(UsageError, match="answer=likelihood writes its choice as hybrid's format line does"):
        prepare(sample("mm_sap", protocol="official", answer="likelihood"))


def test_a_likelihood_is_refused_of_a_model_that_gives_none(sample: Sample) -> None:
    with pytest.raises(UsageError, match="--setting answer=likelihood: openai:mock returns no likelihoods"):
        prepare(sample("blink", answer="likelihood"))
