"""The exchange format Every Eval Ever 0.3.0: an aggregate with intervals and one row per question.

    hybrid export RUN --to every_eval_ever -o shared

The authors' check of the format is `every_eval_ever validate`; docs/exchange.md shows how to run it on Python 3.11 and
3.12.

Question texts are replaced by their hash unless `--questions shown` is given. Pictures are never included. Replies of
the model and tool output are included.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hybrid.core.files import write_atomic
from hybrid.core.machine_paths import hide_paths
from hybrid.core.types import Attempt, Metric, Question, Score, Usage, base_id
from hybrid.display.progress_bar import with_progress
from hybrid.display.terminal import how_many
from hybrid.exporting._turns import turns
from hybrid.exporting.base import DELAY_S, ExportedRun, Exporter, ExportOptions, Written, folder_part, gold
from hybrid.scoring.attempt_facts import calls_of
from hybrid.scoring.groups import role
from hybrid.scoring.model_settings import settings_of
from hybrid.scoring.score import Scored
from hybrid.stats.intervals import interval
from hybrid.version import __version__

SCHEMA: Final = "0.3.0"
LEVEL: Final = 0.95


class EveryEvalEver(Exporter):
    """Two files per solver, as in the authors' store: `data/BENCHMARK/DEVELOPER/MODEL/UUID.json`."""

    form = "every_eval_ever"
    about = "Every Eval Ever 0.3.0: aggregates with intervals, and a row per question; texts of questions as hashes"
    takes = ("questions", "allow")

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        run.refuse_generated(self.form, options)
        paths: list[Path] = []
        failures = 0
        for scored in run.scored:
            evaluation = _Evaluation(run, scored, show_texts=options.questions == "shown")
            rows = list(evaluation.rows())
            failures += sum(row["error"] is not None for row in rows)
            # The name is a digest in the form of a random UUID, which the store requires, so that repeated exports have
            # the same name.
            digest = hashlib.sha256(f"{run.sha256} {scored.solver}".encode()).digest()
            place = Path("data", *map(folder_part, (run.data.name, *evaluation.model["id"].split("/"))))
            name = str(uuid.UUID(bytes=digest[:16], version=4))
            lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
            document = evaluation.aggregate() | {
                "detailed_evaluation_results": {
                    "format": "jsonl",
                    "file_path": (place / f"{name}_samples.jsonl").as_posix(),
                    "hash_algorithm": "sha256",
                    "checksum": _sha256(lines),
                    "total_rows": len(rows),
                }
            }
            texts = {f"{name}.json": json.dumps(document, ensure_ascii=False, indent=1), f"{name}_samples.jsonl": lines}
            for file, text in texts.items():
                paths.append(path / place / file)
                write_atomic(paths[-1], text.encode())
        notes = (
            [f"{how_many(failures, 'row', ('has', 'have'))} an error instead of an answer, and no value counts them"]
            if failures
            else []
        )
        return Written(tuple(paths), tuple(notes))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _words(facts: Mapping[str, object]) -> dict[str, str]:
    """Return details as the schema requires: only strings, without unknown values."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in facts.items()
        if value not in (None, "", (), [], {})
    }


@dataclass(frozen=True)
class _Evaluation:
    """One solver of a run in the terms of the schema; `show_texts` includes question texts instead of hashes."""

    run: ExportedRun
    scored: Scored
    show_texts: bool

    @property
    def model(self) -> dict[str, Any]:
        """The model as `DEVELOPER/NAME`; a solver without a model counts as a model of the developer `hybrid`."""
        mllm = self.run.mllm_of(self.scored)
        provider, _, name = mllm.partition(":") if mllm else ("hybrid", "", self.scored.solver)
        *developer, last = (name or provider).split("/")
        local = provider in ("hf", "embedded", "hybrid")
        details = {
            "deployment_type": "self_deployed" if local else "unknown",
            "model_availability": "open_weights" if local else "unknown",
            "provider": provider,
        }
        identity = "/".join((developer[-1] if developer else provider, last)).replace(":", "-")
        return {"name": mllm or self.scored.solver, "id": identity, "additional_details": _words(details)}

    @property
    def head(self) -> dict[str, str]:
        """The first two fields of every record."""
        name = f"{self.run.data.name}/{self.scored.solver}/{self.run.sha256[:16]}"
        return {"schema_version": SCHEMA, "evaluation_id": name}

    def aggregate(self) -> dict[str, Any]:
        """Return the overall record: data, settings, and a result for each metric with a value."""
        run, card, identity = self.run, self.run.benchmark.card, self.run.shown_identity
        source: dict[str, Any] = {"dataset_name": f"{run.data.name} {run.data.named_split}", "source_type": "other"}
        if card.hub_id is not None and not run.generated:
            source |= {"source_type": "hf_dataset", "hf_repo": card.hub_id, "hf_split": run.split}
            source["samples_number"] = len(self.scored.scores)
        settings, limits = settings_of(identity), identity.get("limits") or {}
        tools = identity.get("tools_offered", ()) if role(self.scored) in ("hybrid", "specialist") else ()
        parameters = {name: settings[name] for name in ("temperature", "max_tokens") if settings.get(name) is not None}
        if tools:
            parameters["agentic_eval_config"] = {"available_tools": [{"name": name} for name in tools]}
            names = {"time_limit": "seconds", "message_limit": "turns", "token_limit": "tokens"}
            budget = {name: limits.get(limit) for name, limit in names.items()}
            parameters["eval_limits"] = {name: int(value) for name, value in budget.items() if value is not None}
        details = {"settings": identity.get("settings"), "limits": limits, "show": identity.get("show")}
        moment = f"{run.began(self.scored):.0f}"
        shared = {
            "source_data": source,
            "generation_config": {"generation_args": parameters, "additional_details": _words(details)},
        }
        return {
            **self.head,
            "retrieved_timestamp": moment,
            "evaluation_timestamp": moment,
            "source_metadata": {
                "source_name": f"hybrid run {run.sha256[:16]}",
                "source_type": "evaluation_run",
                "source_organization_name": "not stated",
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "hybrid", "version": str(identity.get("hybrid", __version__))},
            "model_info": self.model,
            "evaluation_results": [
                self.result(metric) | shared for metric in self.scored.metrics if metric.value is not None
            ],
        }

    def result(self, metric: Metric) -> dict[str, Any]:
        """Return a metric with its interval."""
        card, name, scored = self.run.benchmark.card, metric.name, self.scored
        uncertainty: dict[str, Any] = {"num_samples": metric.n}
        if (limits := interval(metric, LEVEL)) is not None:
            uncertainty["confidence_interval"] = {
                "lower": limits.low,
                "upper": limits.high,
                "confidence_level": LEVEL,
                "method": "over clusters of questions, linearised",
            }
        about = next((metric.formula for metric in card.metrics if metric.name == name), "")
        return {
            "evaluation_result_id": name,
            "evaluation_name": f"{self.run.data.name}/{name}",
            "metric_config": {
                "metric_id": name if name == "accuracy" else f"{card.name}.{name}",
                "metric_name": name,
                "lower_is_better": not metric.share,
                "score_type": "continuous",
                "min_score": 0.0,
                "max_score": 1.0 if metric.share else "Infinity",
                "additional_details": _words({"formula": about, "unanswered": self.run.options.unanswered}),
            },
            "score_details": {
                "score": metric.value,
                "uncertainty": uncertainty,
                "details": _words({"solver": scored.solver, "role": role(scored), "tool_output": scored.tool_output}),
            },
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a record for each question."""
        attempts = self.run.folder.recorded(self.scored.recorded).by_id
        first = next((metric.name for metric in self.scored.metrics if metric.value is not None), "")
        head = self.head | {
            "model_id": self.model["id"],
            "evaluation_name": f"{self.run.data.name}/{first}",
            "evaluation_result_id": first,
        }
        scores = self.scored.scores
        for score in with_progress(scores, self.scored.recorded, len(scores), delay_s=DELAY_S):
            question = self.scored.questions[score.id]
            sound = question if isinstance(question, Question) else None
            failed = score.outcome.failed
            row: dict[str, object] = {"task": score.task, "outcome": score.outcome.value, "base": base_id(score.id)}
            # Without the cluster, a reader of the file would resample questions of one picture as if they were
            # independent
            row["cluster"] = score.unit
            attempt = attempts.get(score.id)
            exchanges = () if attempt is None else attempt.exchanges
            row["reused_calls"] = sum(exchange.reply.usage.reused_calls for exchange in exchanges) or None
            yield {
                **head,
                "sample_id": score.id,
                **self.question_fields(sound, attempt),
                **self.answer_fields(score, attempt),
                # A failed question is not a wrong answer: no value above counts a row that has an error.
                "error": hide_paths(self.scored.reasons.get(score.id, score.outcome.value)) if failed else None,
                "metadata": _words(dict(score.groups)) | _words(row),
            }

    def text(self, text: str) -> str:
        """Return a text of a question, or its hash."""
        return text if self.show_texts else f"sha256:{_sha256(text)}"

    def question_fields(self, question: Question | None, attempt: Attempt | None) -> dict[str, Any]:
        """Return the question, with the right answer if the question was asked."""
        prompt_text, reference, choices = "", list[str](), None
        if question is not None:
            prompt_text = "\n".join((question.text, *question.choices, *(image.sha256 for image in question.images)))
            choices = list(map(self.text, question.choices)) or None
            if attempt is not None and attempt.exchanges:
                reference = [gold(self.run.benchmark, question, attempt.exchanges[-1].prompt)]
        sample_input = {"raw": self.text(prompt_text), "reference": reference, "choices": choices}
        return {"sample_hash": _sha256(prompt_text), "input": sample_input}

    def answer_fields(self, score: Score, attempt: Attempt | None) -> dict[str, Any]:
        """Return the reply (all messages if there were tool calls or several prompts), the score and the usage."""
        exchanges = () if attempt is None else attempt.exchanges
        call_count = sum(len(calls_of(exchange)) for exchange in exchanges)
        row: dict[str, Any] = {
            "interaction_type": "single_turn",
            "output": {"raw": [exchange.reply.text for exchange in exchanges]},
        }
        last, source = 0, "output.raw"
        if attempt is not None and (call_count or len(exchanges) > 1):
            messages = [{"turn_idx": turn, **message} for turn, message in enumerate(self.messages(attempt))]
            row = {"interaction_type": "agentic" if call_count else "multi_turn", "messages": messages}
            last, source = len(messages) - 1, "messages[turn_idx].content"
        attribution = {
            "turn_idx": last,
            "source": source,
            "extracted_value": score.answer,
            "extraction_method": f"rule {score.rule}",
            "is_terminal": True,
        }
        row["answer_attribution"] = [attribution] if score.answer is not None and exchanges else []
        row["evaluation"] = {
            "score": 0.0 if score.outcome.failed or score.correct is None else score.correct,
            "is_correct": not score.outcome.failed and score.correct == 1.0,
        }
        usage = sum((exchange.reply.usage for exchange in exchanges), Usage())
        if exchanges:
            row["evaluation"] |= {"num_turns": max(1, usage.model_calls), "tool_calls_count": call_count}
        # Leave out token counts and times if replies of earlier runs were used, because they would be too small.
        if attempt is not None and usage.is_complete:
            row["token_usage"] = {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
                "input_tokens_cache_read": usage.cached_tokens,
                "reasoning_tokens": usage.reasoning_tokens,
            }
            row["performance"] = {"latency_ms": attempt.seconds * 1000}
        return row

    def messages(self, attempt: Attempt) -> Iterator[dict[str, Any]]:
        """Yield the turns, with prompts as question texts; calls made by a rule have no content."""
        for turn in turns(attempt):
            calls = [{"id": call.id, "name": call.tool, "arguments": _words(call.args)} for call in turn.calls]
            match turn.role:
                case "user":
                    yield {"role": "user", "content": self.text(turn.text)}
                case "assistant" if turn.step is not None:
                    yield {"role": "assistant", "content": turn.text, "tool_calls": calls or None}
                case "tool" if turn.answers is not None:
                    yield {"role": "tool", "content": turn.text, "tool_call_id": [turn.answers.id]}
                case _:
                    by_rule = {"content": None, "tool_calls": calls}
                    yield {"role": "assistant", **(by_rule if calls else {"content": turn.text})}


EXPORTER = EveryEvalEver()
