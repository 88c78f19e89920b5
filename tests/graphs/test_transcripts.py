"""One transcript for each kind of question, as the model reads it, kept as a golden file for human readers.

    HYBRID_WRITE_GOLDEN=1 pytest tests/graphs/test_transcripts.py      rewrites tests/golden/transcripts/KIND.md

It uses generated questions, weight-free tools, the controller, and a model with queued replies. The words around the
question are the project's own; read these files to judge them.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.answers import parse
from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.core.messages import AssistantMessage, Message, Role, ToolCall, parts_of
from hybrid.core.types import Exchange, ImageRef, Kind, Outcome, Prompt, Reply
from hybrid.models.images import arrange
from hybrid.plugins.registry import load, load_solver
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.solving.session import Session

GOLDEN = Path(__file__).parents[1] / "golden" / "transcripts"
WRITE = "HYBRID_WRITE_GOLDEN"
KEEP_IMAGES = 8
HEADINGS: Mapping[Role, str] = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}


@dataclass(frozen=True)
class Case:
    """A generated question with a prompt of one kind, and the model's action on each prompt of the question's
    dialogue."""

    benchmark: str
    task: str
    # The answers, one per prompt.
    replies: tuple[str, ...]
    # The tool that is called before each answer.
    tool: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def queue(self) -> list[AssistantMessage]:
        """Return the model's replies, call by call."""
        call = ToolCall("call_0_0", self.tool or "", {"images": ["img:1"]})
        calls = (AssistantMessage("", (call,)),) if self.tool else ()
        return [message for reply in self.replies for message in (*calls, AssistantMessage(reply))]


PATH = """X = [0.50, 0.39, 0.32, 0.32, 0.39, 0.29]
Y = [0.50, 0.42, 0.45, 0.32, 0.33, 0.40]
T = [285, 269, 479, 340, 212, 151]"""
PLANS = ('{"part": "1, 3", "reason": "a guess"}', '{"keep": "3", "shift": "4"}', "Answer: (E)")
CASES: Mapping[Kind, Case] = {
    Kind.CHOICE: Case("blink", "Relative_Depth", ("The finding speaks for (A).\nAnswer: (A)",), "depth"),
    Kind.YES_NO: Case("mvp_bench", "yes_no", ("Answer: no",)),
    Kind.INTEGER: Case("hvsbench", "Q2", ("Answer: 6",), "saliency"),
    Kind.ORDER: Case("hvsbench", "Q3", ("Answer: BCDA",), "saliency"),
    Kind.SCANPATH: Case("hvsbench", "Q9", (PATH,), "scanpath"),
    Kind.VIEWS: Case("actiview", "counting", ("Answer: 3", "Answer: (B)"), "saliency", {"mode": "zoom"}),
    Kind.CONTINUE: Case(
        "actiview", "counting", ("yes", "no", "Answer: (C)"), "saliency", {"mode": "shift", "start": "E"}
    ),
    Kind.VIEW_PLAN: Case("actiview", "counting", PLANS, "saliency", {"mode": "mixed"}),
}


def _place(ref: ImageRef) -> str:
    return f"[image {ref.name} {ref.image.width}x{ref.image.height}]"


def message_lines(message: Message) -> list[str]:
    """Return the parts of a message, one per line, with a placeholder for each image."""
    lines = [part if isinstance(part, str) else _place(part.ref) for part in parts_of(message)]
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    lines += [f"-> {call.name}({', '.join(f'{k}={v!r}' for k, v in call.args.items())})" for call in calls]
    return [line for line in lines if line]


def render_transcript(kind: Kind, model: Any, ask: int) -> str:
    """Return the transcript of a prompt: the last call for it contains all earlier messages."""
    said_by_call = zip(model.calls, CASES[kind].queue(), strict=True)
    messages, reply = [(messages, reply) for (messages, _, call), reply in said_by_call if call.ask == ask][-1]
    blocks = [f"# {kind.value}"]
    # As sent to a provider: pictures are moved out of tool messages, each after its name.
    for message in [*arrange(messages, KEEP_IMAGES), reply]:
        body = "\n".join(f"    {line}" if line else "" for part in message_lines(message) for line in part.split("\n"))
        blocks.append(f"## {HEADINGS[message.role]}\n\n{body}")
    return "\n\n".join(blocks) + "\n"


def planned(kind: Kind, folder: Path) -> ResolvedRun:
    """Return a run of one generated question with a prompt of this kind, before anything is asked."""
    case = CASES[kind]
    load("hybrid.benchmarks", case.benchmark).generate(folder / "data", (case.task,), 1, 0)
    return prepare(
        RunConfig(
            case.benchmark,
            ("controller",),
            model="openai:mock",
            # This model is opened but never called, because another one replaces it.
            model_settings=ModelSettings(base_url="http://127.0.0.1:9/v1"),
            data=str(folder / "data"),
            tasks=(case.task,),
            settings=case.settings,
            service=ServiceOptions("classical"),
            limit=1,
            out=folder / "run",
        )
    )


async def transcript(kind: Kind, folder: Path, fakes: Any) -> tuple[str, Exchange]:
    """Give the question to the controller; return the transcript and the exchange of its first prompt of this kind."""
    plan, model = planned(kind, folder), fakes.QueueModel(CASES[kind].queue())
    question, *_ = plan.sound
    session = Session(question, load_solver("controller"), replace(plan.resources, model=model))
    try:
        exchanges = await plan.benchmark.dialogue(question.without_target(), session.ask)
    finally:
        plan.service.close()
    number, exchange = next((n, item) for n, item in enumerate(exchanges) if item.prompt.kind is kind)
    return render_transcript(kind, model, number), exchange


@pytest.mark.parametrize("kind", CASES)
async def test_what_the_model_reads_is_the_golden_transcript(kind: Kind, tmp_path: Path, fakes: Any) -> None:
    text, exchange = await transcript(kind, tmp_path, fakes)
    path = GOLDEN / f"{kind.value}.md"
    if os.environ.get(WRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"the words have changed: read them, then rewrite with {WRITE}=1"
    assert exchange.reply.outcome is Outcome.ANSWERED
    assert parse(exchange.reply.text, kind, exchange.prompt.choices).value is not None


# The sentence of a perfect tool for each kind of prompt.
SENTENCES: Mapping[Kind, str] = {
    Kind.CHOICE: r"The evidence favours \((?P<answer>[A-H])\) .+\.",
    Kind.YES_NO: r"The evidence says that the answer is (?P<answer>yes|no)\.",
    Kind.INTEGER: r"People see (?P<answer>\d+) salient objects\.",
    Kind.ORDER: r"From the most to the least salient the order is (?P<answer>[A-H]+)\.",
    Kind.SCANPATH: r"A person looked at (?P<answer>X = \[.+\] Y = \[.+\] T = \[.+\])",
    Kind.VIEWS: r"What the question needs is in the parts (?P<answer>[\d, ]+)\.",
    Kind.CONTINUE: r"(?P<answer>Yes|No), .+ has to be seen\.",
    Kind.VIEW_PLAN: r"What the question needs is in the parts (?P<answer>[\d, ]+)\.",
}
# Form of the reply for kinds of prompts that do not require "Answer: " followed by the items of the sentence.
FORMS: Mapping[Kind, str] = {
    Kind.CHOICE: "Answer: ({})",
    Kind.SCANPATH: "{}",
    Kind.CONTINUE: "{}",
    Kind.VIEW_PLAN: '{{"part": "{0}", "keep": "{0}", "shift": "{0}"}}',
}


def reply_to(kind: Kind, sentence: str) -> str:
    """Return the items that the sentence names, in the required form."""
    match = re.fullmatch(SENTENCES[kind], sentence)
    assert match is not None, sentence
    return FORMS.get(kind, "Answer: {}").format(match["answer"])


@pytest.mark.parametrize("kind", CASES)
async def test_what_a_perfect_tool_says_is_read_and_said_in_the_form_asked_for(kind: Kind, tmp_path: Path) -> None:
    """Every prompt of the dialogue is answered with the items of the benchmark's own sentence, and scored as right."""
    plan = planned(kind, tmp_path)
    question, *_ = plan.sound
    kinds: list[Kind] = []

    async def ask(prompt: Prompt) -> Reply:
        kinds.append(prompt.kind)
        return Reply(reply_to(prompt.kind, plan.benchmark.oracle(question, prompt)))

    exchanges = await plan.benchmark.dialogue(question.without_target(), ask)
    plan.service.close()
    score = plan.benchmark.score(question, exchanges, ScoreOptions())
    assert kind in kinds
    assert score.outcome is Outcome.ANSWERED
    # A scanpath is compared with human ones and is neither right nor wrong.
    assert score.correct == (None if kind is Kind.SCANPATH else 1.0)
