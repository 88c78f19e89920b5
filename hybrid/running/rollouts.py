"""Asks and scores single questions of a run, each with a model that a training or evaluation program supplies.

    rollouts = Rollouts(run)
    rollouts.ids                                                    # of the questions that have a reward
    await rollouts.messages("val_Jigsaw_1")                         # what the solver sends first, as the API takes it
    await rollouts.answer("val_Jigsaw_1", Endpoint("m", "http://127.0.0.1:8000/v1", "key"))

Prompts, pictures, tools, budgets and the scorer are those of `hybrid run`. Nothing is written into a run folder.
`hybrid rollouts` serves this over stdin and stdout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import ModelSettings
from hybrid.core.errors import DataError, UsageError
from hybrid.core.messages import AssistantMessage
from hybrid.core.types import Json, Kind, Question, Usage
from hybrid.models import open_model
from hybrid.models.base import ChatModel
from hybrid.models.caller import Caller, ChatRequest, Keep
from hybrid.models.chat_completions.client import ChatCompletionsClient, RequestBody
from hybrid.running.engine import attempt_question
from hybrid.running.resolve import ResolvedRun
from hybrid.solving.budgets import RunMeter
from hybrid.solving.session import AskSetup
from hybrid.solving.styles import style_of

KEY: Final = "OPENAI_API_KEY"
# Placeholder options: `answer` is given the real model, and no request is sent before that.
UNKNOWN: Final = ("--model", "openai:unknown", "--base-url", "http://127.0.0.1:9/v1")
# Kinds of questions whose score is several measures instead of one number.
UNREWARDED: Final = frozenset({Kind.SCANPATH})


@dataclass(frozen=True)
class Endpoint:
    """A model on an OpenAI-compatible server. The key is not shown or saved."""

    model: str
    base_url: str
    key: str = field(repr=False)


@dataclass
class Rollouts:
    """The questions of a run with one solver.

    Raises on construction:
        UsageError: there are several solvers, the solver asks no model, or the split's answers are hidden.
    """

    run: ResolvedRun

    def __post_init__(self) -> None:
        benchmark, split = self.run.benchmark.card, self.run.mounted.source.split
        if len(self.run.solvers) != 1:
            raise UsageError(f"rollouts have one solver, not {', '.join(self.run.solvers)}: choose one with --solver")
        ((self.name, self.solver),) = self.run.solvers.items()
        if not self.solver.needs_model:
            raise UsageError(f"--solver {self.name}: it asks no model, so there is nothing to train or evaluate")
        if split in benchmark.hidden_splits:
            raise UsageError(
                f"--split {split}: the answers of this split of {benchmark.name} are hidden, so it has no reward"
            )

    @property
    def ids(self) -> tuple[str, ...]:
        """The questions that have a reward, in the order of the data."""
        return tuple(question.id for question in self.run.sound if question.kind not in UNREWARDED)

    @property
    def left_out(self) -> tuple[str, ...]:
        """One sentence for each question that is not in `ids`."""
        several = [question.id for question in self.run.sound if question.kind in UNREWARDED]
        broken = [f"left out: {question.id}: {question.error}" for question in self.run.questions.broken]
        return (
            *broken,
            *(f"left out: {name}: its score has several measures instead of one number" for name in several),
        )

    async def messages(self, question: str) -> Sequence[Json]:
        """Return the first messages that the solver sends about a question, in the form of chat completions.

        Raises:
            UsageError: an unknown question.
            DataError: the solver sends no message.
        """
        settings = self.run.config.model_settings
        client = _FirstRequest("openai:unknown", settings, self.run.service.store)
        await self._attempt(question, Caller(client, settings), self.run.resources)
        if not client.bodies:
            raise DataError(f"{question}: {self.name} sends nothing to the model")
        messages: Sequence[Json] = json.loads(client.bodies[0])["messages"]
        return messages

    async def answer(self, question: str, endpoint: Endpoint) -> dict[str, Json]:
        """Ask one question and score the reply: reward (0 to 1), outcome, answer, values, and the calls that were made.

        Raises:
            Outage: the model could not be reached.
            UsageError: an unknown question, or an option that the server rejects.
            DataError: the question has no score.
        """
        name = f"openai:{endpoint.model}"
        resources, config = self.run.resources, replace(self.run.config, model=name)
        style = style_of(config.tool_style, name)
        settings = replace(config.model_settings, base_url=endpoint.base_url)
        config = replace(config, model_settings=settings)
        model = _open(name, settings, endpoint.key, self.run)
        setup = replace(resources, config=config, style=style, frame=style.coordinates(config))
        try:
            exchanges = await self._attempt(question, model, setup)
        finally:
            await model.close()
        options = ScoreOptions(parse=config.protocol)
        score = self.run.benchmark.score(self._question(question), exchanges, options)
        if score.outcome.failed or score.correct is None:
            raise DataError(f"{question}: no score: {score.outcome.value}")
        usage = sum((exchange.reply.usage for exchange in exchanges), Usage())
        calls: dict[str, Json] = {"model_calls": usage.model_calls, "tool_calls": usage.tool_calls}
        verdict: dict[str, Json] = {"reward": score.correct, "outcome": score.outcome.value, "answer": score.answer}
        return {**verdict, "values": dict(score.values), **calls, "tool_faults": usage.tool_faults}

    def _question(self, name: str) -> Question:
        question = self.run.questions.by_id.get(name)
        if not isinstance(question, Question):
            raise UsageError(f"{name}: not a question of this run")
        return question

    async def _attempt(self, question: str, model: ChatModel, resources: AskSetup) -> tuple[Any, ...]:
        # Each rollout has the budget of a separate run.
        setup = replace(resources, model=model, run_meter=RunMeter(self.run.config.run_limits))
        attempt = await attempt_question(self.run.benchmark, setup, self.solver, self._question(question), self.name)
        return attempt.exchanges


class _FirstRequest(ChatCompletionsClient):
    """A client that records the request instead of sending it, and returns an empty reply."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.bodies: list[bytes] = []

    async def send(self, request: ChatRequest[RequestBody], keep: Keep) -> AssistantMessage:
        self.bodies.append(request.body.body)
        return AssistantMessage()


def _open(name: str, settings: ModelSettings, key: str, run: ResolvedRun) -> ChatModel:
    """Open the model with this key, which the client reads from the environment."""
    previous_key: Mapping[str, str] = {KEY: os.environ[KEY]} if KEY in os.environ else {}
    os.environ[KEY] = key
    try:
        return open_model(name, settings, run.service.store)
    finally:
        del os.environ[KEY]
        os.environ.update(previous_key)
