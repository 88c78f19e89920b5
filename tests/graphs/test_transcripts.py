"""One transcript for each kind of question, as the model reads it, kept as a golden file to be read by people.

    HYBRID_WRITE_GOLDEN=1 pytest tests/graphs/test_transcripts.py      rewrites tests/golden/transcripts/KIND.md

Generated questions, weight-free tools, the controller and the embedded stand-in: the words around the question are the
project's own, and what they are like is judged by reading these files.
"""

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.base import ScoreOptions
from hybrid.messages import AssistantMessage, Message, Role, parts_of
from hybrid.models._scripted import answer
from hybrid.models.base import CallKey
from hybrid.models.embedded import EmbeddedModel
from hybrid.models.render import arrange
from hybrid.prompts import Wording
from hybrid.registry import load, load_solver
from hybrid.running.config import RunConfig
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.serving.service import ServiceOptions
from hybrid.solving.session import Session
from hybrid.tool import Tool
from hybrid.types import Exchange, ImageRef, Json, Kind, Outcome, Prompt, Reply

GOLDEN = Path(__file__).parents[1] / "golden" / "transcripts"
WRITE = "HYBRID_WRITE_GOLDEN"
KEEP_IMAGES = 8
HEADINGS: Mapping[Role, str] = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}


@dataclass(frozen=True)
class Case:
    """Which generated question holds an ask of the kind."""

    benchmark: str
    task: str
    settings: Mapping[str, str] = field(default_factory=dict)


CASES: Mapping[Kind, Case] = {
    Kind.CHOICE: Case("blink", "Relative_Depth"),
    Kind.YES_NO: Case("mvp_bench", "yes_no"),
    Kind.INTEGER: Case("hvsbench", "Q2"),
    Kind.ORDER: Case("hvsbench", "Q3"),
    Kind.SCANPATH: Case("hvsbench", "Q9"),
    Kind.VIEWS: Case("actiview", "counting", {"mode": "zoom"}),
    Kind.CONTINUE: Case("actiview", "counting", {"mode": "shift", "start": "E"}),
    Kind.VIEW_PLAN: Case("actiview", "counting", {"mode": "mixed"}),
}


@dataclass
class Overheard:
    """The embedded model, and what it was told and said, call by call."""

    inner: EmbeddedModel = field(default_factory=EmbeddedModel)
    calls: list[tuple[CallKey, list[Message], AssistantMessage]] = field(default_factory=list)
    name: str = "embedded"
    provider: str = "embedded"

    def facts(self) -> Mapping[str, Json]:
        return self.inner.facts()

    def connection(self) -> Mapping[str, Json]:
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        reply = await self.inner.chat(messages, tools, call)
        # As a provider gets it: pictures lifted out of tool messages, each after its name.
        self.calls.append((call, arrange(messages, KEEP_IMAGES), reply))
        return reply

    async def close(self) -> None:
        """Nothing is held open."""


def _place(ref: ImageRef) -> str:
    return f"[image {ref.name} {ref.image.width}x{ref.image.height}]"


def said(message: Message) -> list[str]:
    """The parts of a message, one a line; images as the place where they stand."""
    lines = [part if isinstance(part, str) else _place(part.ref) for part in parts_of(message)]
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    lines += [f"-> {call.name}({', '.join(f'{k}={v!r}' for k, v in call.args.items())})" for call in calls]
    return [line for line in lines if line]


def written(kind: Kind, overheard: Overheard, ask: int) -> str:
    """The transcript of an ask: its last call holds everything that was said before."""
    _, messages, reply = [call for call in overheard.calls if call[0].ask == ask][-1]
    blocks = [f"# {kind.value}"]
    for message in [*messages, reply]:
        body = "\n".join(f"    {line}" if line else "" for part in said(message) for line in part.split("\n"))
        blocks.append(f"## {HEADINGS[message.role]}\n\n{body}")
    return "\n\n".join(blocks) + "\n"


def planned(kind: Kind, folder: Path) -> ResolvedRun:
    """A run of one generated question that holds an ask of the kind; nothing has been asked."""
    case = CASES[kind]
    load("hybrid.benchmarks", case.benchmark).generate(folder / "data", (case.task,), 1, 0)
    return prepare(
        RunConfig(
            case.benchmark,
            ("controller",),
            "embedded",
            data=str(folder / "data"),
            tasks=(case.task,),
            settings=case.settings,
            service=ServiceOptions("classical"),
            limit=1,
            out=folder / "run",
        )
    )


async def transcript(kind: Kind, folder: Path) -> tuple[str, Exchange]:
    """Put the first question that asks so to the controller."""
    plan, overheard = planned(kind, folder), Overheard()
    resources = replace(plan.resources, model=overheard)
    try:
        for question in plan.sound:
            overheard.calls.clear()
            session = Session(question, load_solver("controller"), resources)
            for number, exchange in enumerate(await plan.benchmark.dialogue(question.asked(), session.ask)):
                if exchange.prompt.kind is kind:
                    return written(kind, overheard, number), exchange
    finally:
        plan.service.close()
    raise AssertionError(f"no question of {CASES[kind]} asks for {kind}")


@pytest.mark.parametrize("kind", CASES)
async def test_what_the_model_reads_is_the_golden_transcript(kind: Kind, tmp_path: Path) -> None:
    text, exchange = await transcript(kind, tmp_path)
    path = GOLDEN / f"{kind.value}.md"
    if os.environ.get(WRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"the words have changed: read them, then rewrite with {WRITE}=1"
    assert exchange.reply.outcome is Outcome.ANSWERED
    assert parse(exchange.reply.text, kind, exchange.prompt.choices).value is not None


@pytest.mark.parametrize("kind", CASES)
async def test_what_a_perfect_tool_says_is_read_and_said_in_the_form_asked_for(kind: Kind, tmp_path: Path) -> None:
    """Every ask of the dialogue is answered by the stand-in from the benchmark's own sentence, and scored as right."""
    plan = planned(kind, tmp_path)
    question, *_ = plan.sound
    asked: list[Kind] = []

    async def ask(prompt: Prompt) -> Reply:
        asked.append(prompt.kind)
        text = "\n".join((prompt.text, *Wording().closing(prompt)))
        return Reply(answer(text, [plan.benchmark.oracle(question, prompt)], random.Random(0)))

    exchanges = await plan.benchmark.dialogue(question.asked(), ask)
    plan.service.close()
    score = plan.benchmark.score(question, exchanges, ScoreOptions())
    assert kind in asked
    assert score.outcome is Outcome.ANSWERED
    # A scanpath is compared with those of people and has no right or wrong.
    assert score.correct == (None if kind is Kind.SCANPATH else 1.0)
