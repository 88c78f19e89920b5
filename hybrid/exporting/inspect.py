"""A log of Inspect AI, for `inspect view` and other programs that read such logs.

    uv pip install -e '.[inspect]'
    hybrid export RUN --to inspect -o logs                               # a log for each solver
    hybrid export RUN/controller --to inspect -o logs/controller.eval    # one of them
    inspect view --log-dir logs

Each question is a sample: the conversation about every prompt in order (prompts with their images, each reply of the
model, each tool call with its output), the reply, the right answer, the score and the tokens. The log is built from
`inspect_ai.log.EvalLog` and its parts and written by `inspect_ai.log.write_eval_log`. The logs of a run share a
`run_id`, and each solver has its own `task_id`. These ids are the same in every export of the run.

Inspect's writer takes milliseconds per sample, and compares each sample of an .eval with all samples before it. For
many samples the expected time is printed first; it is estimated by writing a few of them to a temporary file.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any

from hybrid.core.errors import DataError, UsageError, install_extra
from hybrid.core.generated_mark import GENERATED
from hybrid.core.images import ImageStore, home
from hybrid.core.types import Attempt, ImageRef, Question, Score, Usage
from hybrid.display.notes import is_quiet, tell
from hybrid.display.progress_bar import with_progress
from hybrid.exporting._turns import Turn, turns
from hybrid.exporting.base import DELAY_S, ExportedRun, Exporter, ExportOptions, Written, gold, lost
from hybrid.scoring.score import Scored
from hybrid.version import __version__

SUFFIXES = (".eval", ".json")
ID_CHARS = 22  # Number of characters of an id, as in Inspect's own ids
# Required beginning of a .json file's name for `inspect view` to list it.
LISTED = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[:-]\d{2}[:-]\d{2}")
TRIAL_SAMPLES = 20  # Number of samples that are written to estimate the time of a log
MIN_SAMPLES_TO_ESTIMATE = 200  # Minimum number of samples for an estimate of the time
# Number of samples from which Inspect's comparisons at least double the time of an .eval; measured with 0.3.285.
DOUBLED_FROM = 6_000
ATTACHMENT = "attachment://"  # Prefix by which a message of an Inspect log refers to its sample's `attachments`


class Inspect(Exporter):
    """Writes one log, or a folder with a log for each solver."""

    form = "inspect"
    about = "a log of Inspect AI (.eval or .json) with every prompt, tool call and image; a folder has one per solver"

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`.

        Raises:
            UsageError: Inspect AI is not installed, the suffix is unsupported, or an image is not in the store.
        """
        if path.suffix.lower() not in ("", *SUFFIXES):
            raise UsageError(
                f"-o {path}: a log of {self.form} ends in {' or '.join(SUFFIXES)}, and the name of a folder must not "
                "contain a dot"
            )
        try:
            from inspect_ai.log import write_eval_log
        except ImportError as error:
            raise UsageError(
                f"inspect needs the package inspect-ai, which is not installed: {install_extra('inspect')}"
            ) from error
        if path.suffix:
            run.only(self.form)
        store = ImageStore(home() / "images") if options.images == "attached" else None
        paths: list[Path] = []
        notes: list[str] = []
        try:
            for scored in run.scored:
                builder = _Log(run, scored, store)
                _announce_time(builder, path.suffix.lower() or SUFFIXES[0])
                log = builder.build_log(builder.samples())
                # The name follows Inspect's own pattern of time, task and id, which its viewer lists.
                time, task = log.eval.created[:19].replace(":", "-"), log.eval.task.replace("_", "-")
                paths.append(path if path.suffix else path / f"{time}+00-00_{task}_{log.eval.task_id}.eval")
                paths[-1].parent.mkdir(parents=True, exist_ok=True)
                log.samples = _SamplesWithProgress(log.samples)
                write_eval_log(log, str(paths[-1]))
                notes += lost(scored)
                if store is None:
                    notes.append("images are left out; each is replaced by a line with its sha256")
        except BaseException:
            for output in paths:
                output.unlink(missing_ok=True)
            raise
        if path.suffix.lower() == ".json" and not LISTED.match(path.name):
            notes.append(
                "`inspect view` lists a .json only if its name begins with a time: "
                "give a folder, or a name that ends in .eval"
            )
        return Written(tuple(paths), tuple(dict.fromkeys(notes)))


def _announce_time(log: _Log, suffix: str) -> None:
    """Print how long a log will take, if that is long and the log has enough samples for an estimate."""
    attempts = log.run.folder.recorded(log.scored.recorded).without_steps
    number = sum(name in attempts and isinstance(it, Question) for name, it in log.scored.questions.items())
    if number < MIN_SAMPLES_TO_ESTIMATE or is_quiet():
        return
    # Ignore an `OSError`: the temporary folder may be full although the log's own folder has room.
    with suppress(OSError):
        expected = _estimate(log, number, suffix)
        if expected > DELAY_S:
            tell(f"writing {number:,} samples of {log.scored.recorded} takes about {_format_duration(expected)}")


def _estimate(log: _Log, number: int, suffix: str) -> float:
    """Return the expected seconds for a log of `number` samples, from writing some of them."""
    from inspect_ai.log import write_eval_log

    start = time.perf_counter()
    samples = log.samples(TRIAL_SAMPLES)
    build_s = (time.perf_counter() - start) / len(samples)
    with tempfile.TemporaryDirectory() as folder:
        path, seconds = str(Path(folder) / f"trial{suffix}"), []
        # The first write starts Inspect, and every write has a fixed cost in addition to that of its samples.
        for chosen in (samples[:1], samples[:1], samples):
            start = time.perf_counter()
            write_eval_log(log.build_log(chosen), path)
            seconds.append(time.perf_counter() - start)
    write_s = max(0.0, seconds[2] - seconds[1]) / max(1, len(samples) - 1)
    return (build_s + write_s) * number * (1 + number / DOUBLED_FROM * (suffix == SUFFIXES[0]))


def _format_duration(seconds: float) -> str:
    """Return a duration in whole seconds or minutes, in words."""
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{math.ceil(seconds / 60)} minutes"


class _SamplesWithProgress(list[Any]):
    """The samples of a log. Iterating over them shows progress, as Inspect's writer takes milliseconds per sample."""

    def __iter__(self) -> Iterator[Any]:
        return with_progress(super().__iter__(), "writing", len(self), delay_s=DELAY_S)


@dataclass(frozen=True)
class _Log:
    """The log of a solver; without a store, images are omitted."""

    run: ExportedRun
    scored: Scored
    store: ImageStore | None

    @property
    def model(self) -> str:
        """The model in Inspect's form: `provider/name`."""
        model = self.run.mllm_of(self.scored)
        return f"none/{self.scored.recorded}" if model is None else model.replace(":", "/", 1)

    def samples(self, limit: int | None = None) -> list[Any]:
        """Return the finished questions, or the first `limit` of them, as samples."""
        return [self.sample(*answer) for answer in islice(self.run.answers(self.scored), limit)]

    def build_log(self, samples: list[Any]) -> Any:
        """Return the log of these samples, with the benchmark's metrics and the token totals."""
        from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, EvalStats

        run, scored = self.run, self.scored
        card, identity = run.benchmark.card, run.shown_identity
        attempts = run.folder.recorded(scored.recorded).without_steps.values()
        end = max(((attempt.started or 0.0) + attempt.seconds for attempt in attempts), default=0.0)
        task_id = hashlib.sha256(f"{run.sha256} {scored.recorded}".encode()).hexdigest()[:ID_CHARS]
        spec = EvalSpec(
            eval_id=task_id,
            run_id=run.sha256[:ID_CHARS],
            task_id=task_id,
            created=_time(run.began(scored)),
            task=run.data.name,
            task_display_name=f"{card.short_title} ({GENERATED} questions)" if run.generated else card.short_title,
            task_version=str(identity.get("hybrid", __version__)),
            task_args=dict(identity.get("settings", {})),
            solver=scored.recorded,
            dataset=EvalDataset(
                name=f"{run.data.name} {run.data.named_split}",
                location=None if run.generated else card.hub_id,
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
                shuffled=False,
            ),
            model=self.model,
            config=EvalConfig(),
            packages={"hybrid-perception": __version__},
            tags=list(scored.labels),
            metadata={**run.facts, "identity": dict(identity), **_count_reused(scored.usage)},
        )
        usage = {} if scored.usage is None else self.usage_by_model(scored.usage)
        stats = EvalStats(started_at=_time(run.began(scored)), completed_at=_time(end), model_usage=usage)
        return EvalLog(status="success", eval=spec, results=self.results(len(samples)), stats=stats, samples=samples)

    def usage_by_model(self, usage: Usage) -> dict[str, Any]:
        """Return the usage of the model; empty if the usage leaves out reused replies."""
        return {self.model: _usage(usage)} if usage.is_complete else {}

    def results(self, samples: int) -> Any:
        """Return the benchmark's metrics."""
        from inspect_ai.log import EvalMetric, EvalResults, EvalScore

        metrics = {
            metric.name: EvalMetric(name=metric.name, value=metric.value, metadata={"n": metric.n})
            for metric in self.scored.metrics
            if metric.value is not None
        }
        score = EvalScore(name="hybrid", scorer="hybrid", scored_samples=samples, unscored_samples=0, metrics=metrics)
        return EvalResults(total_samples=len(self.scored.scores), completed_samples=samples, scores=[score])

    def sample(self, question: Question, attempt: Attempt, score: Score) -> Any:
        """Return one question with the conversation about every prompt; each image is stored in `attachments` once."""
        from inspect_ai.log import EvalSample
        from inspect_ai.scorer import Score as InspectScore

        attachments: dict[str, str] = {}
        messages = list(self.messages(question, attempt, attachments))
        events = self.events(messages, attempt)
        usage = sum((exchange.reply.usage for exchange in attempt.exchanges), Usage())
        usage_by_model = self.usage_by_model(usage)
        verdict = InspectScore(
            value=score.correct if score.correct is not None else dict(score.values) or "N",
            answer=score.answer,
            explanation=f"{score.outcome.value}, rule {score.rule}",
            metadata={"values": dict(score.values)},
        )
        start = attempt.started
        return EvalSample(
            id=question.id,
            epoch=1,
            input=messages[:1],
            choices=list(question.choices) or None,
            target=gold(self.run.benchmark, question, attempt.exchanges[-1].prompt),
            messages=messages,
            events=events,
            output=events[-1].output.model_copy(
                update={"usage": usage_by_model.get(self.model), "time": usage.seconds if usage.is_complete else None}
            ),
            scores={"hybrid": verdict},
            metadata=dict(question.groups)
            | {"task": question.task, "outcome": score.outcome.value, "asks": len(attempt.exchanges)}
            | {"cluster": question.unit}
            | _count_reused(usage),
            model_usage=usage_by_model,
            started_at=None if start is None else _time(start),
            completed_at=None if start is None else _time(start + attempt.seconds),
            total_time=attempt.seconds if usage.is_complete else None,
            working_time=usage.seconds if usage.is_complete else None,
            attachments=attachments,
            turn_count=usage.model_calls,
        )

    def events(self, messages: Sequence[Any], attempt: Attempt) -> list[Any]:
        """Return a model call for each reply.

        Each call contains the preceding messages about its prompt, as Inspect's message frames need.
        """
        from inspect_ai.event import ModelEvent
        from inspect_ai.model import ChatCompletionChoice, GenerateConfig, ModelOutput

        shared = {
            "model": self.model,
            "tools": [],
            "tool_choice": "auto",
            "config": GenerateConfig(),
            "timestamp": datetime.fromtimestamp(attempt.started or 0.0, UTC),
            "working_start": 0.0,
        }
        events: list[Any] = []
        parts: list[Any] = []
        for message in messages:
            if message.role == "user":
                parts = []
            elif message.role == "assistant":
                choice = ChatCompletionChoice(message=message, stop_reason="stop")
                output = ModelOutput(model=self.model, choices=[choice])
                events.append(ModelEvent(uuid=f"{message.id}/call", input=list(parts), output=output, **shared))
            parts.append(message)
        return events

    def messages(self, question: Question, attempt: Attempt, attachments: dict[str, str]) -> Iterator[Any]:
        """Yield every turn as a message, with an id that is the same in every export."""
        from inspect_ai.model import ChatMessageTool, ChatMessageUser, ContentImage, ContentText
        from inspect_ai.tool import ToolCallError

        name = f"{self.scored.recorded}/{question.id}"

        def content(part: str | ImageRef) -> Any:
            if isinstance(part, str):
                return ContentText(text=part)
            image = part.image
            if self.store is None:
                return ContentText(text=f"[{part.name}: {image.width} x {image.height} px, sha256 {image.sha256}]")
            if image.sha256 not in attachments:
                try:
                    data = base64.b64encode(self.store.read(image)).decode()
                except DataError as error:
                    raise UsageError(f"{name}: {error}; or leave images out with --images none") from error
                attachments[image.sha256] = f"data:{image.media_type};base64,{data}"
            return ContentImage(image=f"{ATTACHMENT}{image.sha256}")

        for number, turn in zip(count(1), turns(attempt), strict=False):
            id_ = f"{name}/{number}"
            if turn.role == "user":
                yield ChatMessageUser(content=list(map(content, turn.parts)), id=id_)
            elif turn.role == "assistant":
                yield self.model_message(turn, id_)
            elif turn.answers is not None and (step := turn.step) is not None:
                error = None if step.fault is None else ToolCallError("unknown", step.text or str(step.fault))
                # Use the name by which the model called the tool, even if another tool ran in its place.
                answer_fields = {"tool_call_id": turn.answers.id, "function": turn.answers.tool}
                yield ChatMessageTool(content=list(map(content, turn.parts)), error=error, id=id_, **answer_fields)

    def model_message(self, turn: Turn, id_: str) -> Any:
        """Return a reply of the model with its tool calls and its thoughts, as far as the trace has them."""
        from inspect_ai.model import ChatMessageAssistant, ContentReasoning, ContentText
        from inspect_ai.tool import ToolCall

        calls = [ToolCall(id=call.id, function=call.tool, arguments=dict(call.args)) for call in turn.calls]
        thought = "" if turn.step is None else str(turn.step.data.get("reasoning", ""))
        content = [ContentReasoning(reasoning=thought), ContentText(text=turn.text)] if thought else turn.text
        return ChatMessageAssistant(content=content, tool_calls=calls or None, model=self.model, id=id_)


def _count_reused(usage: Usage | None) -> dict[str, int]:
    """Return the number of reused replies, whose tokens, cost and seconds are missing."""
    return {} if usage is None or usage.is_complete else {"reused_calls": usage.reused_calls}


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
