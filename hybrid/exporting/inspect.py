"""A log of Inspect AI, for `inspect view` and everything else that reads such logs.

    uv pip install -e '.[inspect]'
    hybrid export RUN --to inspect -o logs                               # a log for each solver
    hybrid export RUN/controller --to inspect -o logs/controller.eval    # one of them
    inspect view --log-dir logs

A question is a sample: the conversation of every ask one after the other (prompts with their images, each reply of
the model, each tool call with what the tool said), the reply, the right answer, the score and the tokens. The log is
made of `inspect_ai.log.EvalLog` and its parts and written by `inspect_ai.log.write_eval_log`. The logs of a run share
`run_id`, each solver has a `task_id` of its own, and both are the same whenever the run is exported.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from hybrid.errors import DataError, UsageError, install_extra
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written, gold
from hybrid.images import ImageStore, home
from hybrid.scoring.predictions.base import first
from hybrid.scoring.score import Scored
from hybrid.scoring.traces import calls_of
from hybrid.solving.styles import AS_TRAINED
from hybrid.types import Attempt, Exchange, ImageRef, Question, Score, Step, StoredImage, Usage
from hybrid.version import __version__

SUFFIXES = (".eval", ".json")
ID_CHARS = 22
"""Characters of an id, as Inspect's own have."""
LISTED = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[:-]\d{2}[:-]\d{2}")
"""How the name of a .json must begin for `inspect view` to list it."""
ATTACHMENT = "attachment://"
"""How a message of an Inspect log refers to what stands in its sample's `attachments`."""


class Inspect(Exporter):
    """One log, or a folder with one for each solver."""

    form = "inspect"
    about = "a log of Inspect AI (.eval or .json) with every ask, tool call and image; a folder has one for each solver"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`.

        Raises:
            UsageError: Inspect AI is not installed, the suffix is another one, or an image is not in the store.
        """
        if path.suffix.lower() not in ("", *SUFFIXES):
            raise UsageError(
                f"-o {path}: a log of {self.form} ends in {' or '.join(SUFFIXES)}, and the name of a folder has no dot"
            )
        try:
            from inspect_ai.log import write_eval_log
        except ImportError as error:
            raise UsageError(
                f"inspect needs the package inspect-ai, which is not installed: {install_extra('inspect')}"
            ) from error
        if path.suffix:
            run.only(self.form)
        paths: list[Path] = []
        notes: list[str] = []
        try:
            for scored in run.scored:
                store = ImageStore(home() / "images") if options.images == "attached" else None
                making = _Making(run, scored.recorded, store)
                log = making.log(scored)
                paths.append(path if path.suffix else path / _name(log))
                paths[-1].parent.mkdir(parents=True, exist_ok=True)
                write_eval_log(log, str(paths[-1]))
                notes += making.notes(scored)
        except BaseException:
            for written in paths:
                written.unlink(missing_ok=True)
            raise
        if path.suffix.lower() == ".json" and not LISTED.match(path.name):
            notes.append(
                "`inspect view` lists a .json only where its name begins with a time: "
                "give a folder, or a name that ends in .eval"
            )
        return Written(tuple(paths), tuple(dict.fromkeys(notes)))


def _name(log: Any) -> str:
    """The name of a log in Inspect's pattern (time, task and id), so that its viewer lists it."""
    return f"{log.eval.created[:19].replace(':', '-')}+00-00_{log.eval.task.replace('_', '-')}_{log.eval.task_id}.eval"


@dataclass
class _Making:
    """One log while it is made."""

    run: ExportedRun
    solver: str
    store: ImageStore | None
    """Where images are read from; None leaves them out."""

    @property
    def model(self) -> str:
        """The model as Inspect writes it: `provider/name`."""
        model = self.run.mllm_of(self.solver)
        return f"none/{self.solver}" if model is None else model.replace(":", "/", 1)

    def log(self, scored: Scored) -> Any:
        """All finished questions, the benchmark's metrics and the sums of tokens."""
        from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, EvalStats

        attempts = self.run.folder.recorded(self.solver).by_id
        scores = {score.id: score for score in scored.scores}
        asked = [question for question in self.run.folder.questions().sound if question.id in attempts]
        samples = [self.sample(question, attempts[question.id], scores[question.id]) for question in asked]
        started = [attempt.started for attempt in attempts.values() if attempt.started is not None]
        ended = [(one.started or 0.0) + one.seconds for one in attempts.values()]
        card, identity = self.run.benchmark.card, self.run.identity
        task_id = hashlib.sha256(f"{self.run.sha256} {self.solver}".encode()).hexdigest()[:ID_CHARS]
        spec = EvalSpec(
            eval_id=task_id,
            run_id=self.run.sha256[:ID_CHARS],
            task_id=task_id,
            created=_time(min(started, default=0.0)),
            task=card.name,
            task_display_name=card.short_title,
            task_version=str(identity.get("hybrid", __version__)),
            task_args=dict(identity.get("settings", {})),
            solver=self.solver,
            dataset=EvalDataset(
                name=f"{card.name} {self.run.split}",
                location=None if self.run.generated else card.hub_id,
                samples=len(samples),
                sample_ids=[question.id for question in asked],
                shuffled=False,
            ),
            model=self.model,
            config=EvalConfig(),
            packages={"hybrid-perception": __version__},
            tags=list(scored.labels),
            metadata={
                "run_sha256": self.run.sha256,
                "identity": dict(identity),
                "no_answer": self.run.options.abstain,
                "conclusion": [sentence.text for sentence in self.run.conclusion],
            },
        )
        stats = EvalStats(
            started_at=_time(min(started, default=0.0)),
            completed_at=_time(max(ended, default=0.0)),
            model_usage={self.model: _usage(scored.usage)} if scored.usage is not None else {},
        )
        return EvalLog(
            status="success", eval=spec, results=_results(scored, len(samples)), stats=stats, samples=samples
        )

    def sample(self, question: Question, attempt: Attempt, score: Score) -> Any:
        """One question."""
        from inspect_ai.log import EvalSample
        from inspect_ai.model import ChatCompletionChoice, ModelOutput
        from inspect_ai.scorer import Score as InspectScore

        conversation = _Conversation(self.model, self.store, f"{self.solver}/{question.id}")
        messages = [message for exchange in attempt.exchanges for message in conversation.of(exchange)]
        usage = sum((exchange.reply.usage for exchange in attempt.exchanges), Usage())
        last = attempt.exchanges[-1]
        verdict = InspectScore(
            value=score.correct if score.correct is not None else dict(score.values) or "N",
            answer=score.answer,
            explanation=f"{score.outcome.value}, rule {score.rule}",
            metadata={"values": dict(score.values)},
        )
        return EvalSample(
            id=question.id,
            epoch=1,
            input=messages[:1],
            choices=list(question.choices) or None,
            target=gold(self.run.benchmark, question, last.prompt),
            messages=messages,
            output=ModelOutput(
                model=self.model,
                choices=[ChatCompletionChoice(message=messages[-1], stop_reason="stop")],
                usage=_usage(usage),
                time=usage.seconds,
            ),
            scores={"hybrid": verdict},
            metadata={"task": question.task, "outcome": score.outcome.value, "asks": len(attempt.exchanges)}
            | dict(question.groups),
            model_usage={self.model: _usage(usage)},
            started_at=_time(attempt.started) if attempt.started is not None else None,
            completed_at=_time(attempt.started + attempt.seconds) if attempt.started is not None else None,
            total_time=attempt.seconds,
            working_time=usage.seconds,
            attachments=conversation.attachments,
            turn_count=usage.model_calls,
        )

    def notes(self, scored: Scored) -> Iterator[str]:
        """Sentences on what the log leaves out."""
        lost = [score.id for score in scored.scores if score.outcome.failed]
        if lost:
            yield f"left out: {len(lost)} questions without an answer: {first(lost)}"
        if self.store is None:
            yield "images are left out: a line with their sha256 stands in their place"


@dataclass
class _Conversation:
    """The messages of a question; images are put into `attachments` once each."""

    model: str
    store: ImageStore | None
    name: str
    attachments: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def of(self, exchange: Exchange) -> Iterator[Any]:
        """One ask: the prompt, every call of the model and of tools, the reply."""
        from inspect_ai.model import ChatMessageUser

        parts = [part for part in exchange.prompt.parts if part != ""]
        yield ChatMessageUser(content=[*map(self.content, parts)], id=self.id())
        open_calls: list[Any] = []
        text, dressed = None, dict[str, str]()
        traced = iter(calls_of(exchange))
        for step in exchange.reply.steps:
            if step.kind == "model":
                open_calls = [self.call(str(c.get("tool", "")), _mapping(c.get("args"))) for c in _called(step)]
                text = step.text
                yield self.assistant(step.text, open_calls, str(step.data.get("reasoning", "")))
            elif step.name == AS_TRAINED:
                ran, wrote = _mapping(step.data.get("ran")), _mapping(step.data.get("wrote"))
                dressed[str(ran.get("tool"))] = str(wrote.get("tool"))
            elif step.kind == "tool":
                args, words = next(traced).args, (step.name, dressed.get(step.name))
                fitting = next((call for call in open_calls if call.function in words), None)
                if fitting is None:
                    # A rule called the tool, or the model's call stands in no trace.
                    fitting = self.call(step.name, args)
                    yield self.assistant("", [fitting])
                else:
                    open_calls.remove(fitting)
                yield self.tool(step, fitting.id)
                text = None
        if text != exchange.reply.text or open_calls:
            yield self.assistant(exchange.reply.text, [])

    def assistant(self, text: str, calls: Sequence[Any], reasoning: str = "") -> Any:
        """The reply of the model with its thoughts, as far as the trace has them, and its tool calls."""
        from inspect_ai.model import ChatMessageAssistant, ContentReasoning, ContentText

        thought = [ContentReasoning(reasoning=reasoning), ContentText(text=text)]
        content = thought if reasoning else text
        return ChatMessageAssistant(content=content, tool_calls=list(calls) or None, model=self.model, id=self.id())

    def call(self, tool: str, args: Mapping[str, Any]) -> Any:
        """One call of a tool, before it is answered."""
        from inspect_ai.tool import ToolCall

        return ToolCall(id=f"call-{next(self.numbers)}", function=tool, arguments=dict(args))

    def tool(self, step: Step, call: str) -> Any:
        """The finding of a tool as text."""
        from inspect_ai.model import ChatMessageTool
        from inspect_ai.tool import ToolCallError

        error = None if step.fault is None else ToolCallError("unknown", step.text or str(step.fault))
        parts: list[str | ImageRef] = [*filter(None, (step.text,)), *step.images]
        return ChatMessageTool(
            content=[self.content(part) for part in parts],
            tool_call_id=call,
            function=step.name,
            error=error,
            id=self.id(),
        )

    def content(self, part: str | ImageRef) -> Any:
        """A text, an attached image, or the line in an image's place."""
        from inspect_ai.model import ContentImage, ContentText

        if isinstance(part, str):
            return ContentText(text=part)
        if self.store is None:
            image = part.image
            return ContentText(text=f"[{part.name}: {image.width} x {image.height} px, sha256 {image.sha256}]")
        return ContentImage(image=self.attached(part.image))

    def attached(self, image: StoredImage) -> str:
        """The reference of an image, whose bytes are attached to the sample."""
        assert self.store is not None  # noqa: S101 - asked only where images are attached
        if image.sha256 not in self.attachments:
            try:
                data = self.store.read(image)
            except DataError as error:
                raise UsageError(f"{self.name}: {error}; or leave images out with --images none") from error
            self.attachments[image.sha256] = f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"
        return f"{ATTACHMENT}{image.sha256}"

    def id(self) -> str:
        """A name for a message, the same whenever the run is exported."""
        return f"{self.name}/{next(self.numbers)}"


def _called(step: Step) -> Sequence[Mapping[str, Any]]:
    """The tool calls that the model wrote in a step."""
    calls = step.data.get("tool_calls")
    return [one for one in calls if isinstance(one, Mapping)] if isinstance(calls, list | tuple) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _results(scored: Scored, samples: int) -> Any:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    metrics = {
        metric.name: EvalMetric(name=metric.name, value=metric.value, metadata={"n": metric.n})
        for metric in scored.metrics
        if metric.value is not None
    }
    score = EvalScore(name="hybrid", scorer="hybrid", scored_samples=samples, unscored_samples=0, metrics=metrics)
    return EvalResults(total_samples=len(scored.scores), completed_samples=samples, scores=[score])


def _usage(usage: Usage) -> Any:
    from inspect_ai.model import ModelUsage

    return ModelUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens_cache_read=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_cost=usage.cost_usd,
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


EXPORTER = Inspect()
