"""The interchange format of evaluations, Every Eval Ever 0.3.0: an aggregate with intervals and a row a question.

    hybrid export RUN --to every_eval_ever -o shared
    every_eval_ever validate shared/data/*/*/*/*          # the check of its authors, `pip install every-eval-ever`

Texts of questions stay out unless `--questions shown` asks for them: their hash stands in their place. Pictures stay
out always. What the model and the tools said is in.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written, gold
from hybrid.scoring.groups import role
from hybrid.scoring.score import Scored
from hybrid.scoring.traces import calls_of
from hybrid.stats.intervals import interval
from hybrid.types import Attempt, Exchange, Metric, Question, Score, Step, Usage, base_id
from hybrid.version import __version__

SCHEMA: Final = "0.3.0"
LEVEL: Final = 0.95


class EveryEvalEver(Exporter):
    """Two files a solver, where the authors' store has them: `data/BENCHMARK/DEVELOPER/MODEL/UUID.json`."""

    form = "every_eval_ever"
    about = "Every Eval Ever 0.3.0: aggregates with intervals and a row a question; texts of questions as hashes"
    takes = ("questions",)

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        paths: list[Path] = []
        lost = 0
        for scored in run.scored:
            rows = list(_rows(run, scored, shown=options.questions == "shown"))
            lost += sum(row["error"] is not None for row in rows)
            model = _model(run, scored)
            # The same whenever the run is exported, in the form of a random one, which the store asks for.
            digest = hashlib.sha256(f"{run.sha256} {scored.solver}".encode()).digest()
            name = str(uuid.UUID(bytes=digest[:16], version=4))
            place = Path("data", run.benchmark.card.name, *model["id"].split("/")) / name
            lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
            whole = _aggregate(run, scored, model) | {
                "detailed_evaluation_results": {
                    "format": "jsonl",
                    "file_path": f"{place.as_posix()}_samples.jsonl",
                    "hash_algorithm": "sha256",
                    "checksum": hashlib.sha256(lines.encode()).hexdigest(),
                    "total_rows": len(rows),
                }
            }
            files = {f"{name}.json": json.dumps(whole, ensure_ascii=False, indent=1), f"{name}_samples.jsonl": lines}
            (path / place).parent.mkdir(parents=True, exist_ok=True)
            for file, text in files.items():
                paths.append((path / place).with_name(file))
                paths[-1].write_text(text)
        notes = [f"{lost} rows have an error and no answer: they are in no value"] if lost else []
        return Written(tuple(paths), tuple(notes))


def _words(facts: Mapping[str, object]) -> dict[str, str]:
    """Details as the schema has them: texts alone, and none that is not known."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in facts.items()
        if value not in (None, "", (), [], {})
    }


def _model(run: ExportedRun, scored: Scored) -> dict[str, Any]:
    """The model as `DEVELOPER/NAME`; what answered without one is ours."""
    named = run.mllm_of(scored.recorded)
    provider, _, name = named.partition(":") if named else ("hybrid", "", scored.solver)
    *developer, last = (name or provider).split("/")
    local = provider in ("hf", "embedded", "hybrid")
    details = {
        "deployment_type": "self_deployed" if local else "unknown",
        "model_availability": "open_weights" if local else "unknown",
        "provider": provider,
    }
    identity = "/".join((developer[-1] if developer else provider, last)).replace(":", "-")
    return {"name": named or scored.solver, "id": identity, "additional_details": _words(details)}


def _evaluation_id(run: ExportedRun, scored: Scored) -> str:
    return f"{run.benchmark.card.name}/{scored.solver}/{run.sha256[:16]}"


def _aggregate(run: ExportedRun, scored: Scored, model: Mapping[str, Any]) -> dict[str, Any]:
    card, identity = run.benchmark.card, run.identity
    began = [one.started for one in run.folder.recorded(scored.recorded).without_steps.values() if one.started]
    source: dict[str, Any] = {"dataset_name": f"{card.name} {run.split}", "source_type": "other"}
    if card.hub_id is not None and not run.generated:
        source |= {"source_type": "hf_dataset", "hf_repo": card.hub_id, "hf_split": run.split}
        source["samples_number"] = len(scored.scores)
    settings, limits = identity.get("model") or {}, identity.get("limits") or {}
    tools = identity.get("tools_offered", ()) if role(scored) in ("hybrid", "specialist") else ()
    given = {name: settings[name] for name in ("temperature", "max_tokens") if settings.get(name) is not None}
    if tools:
        given["agentic_eval_config"] = {"available_tools": [{"name": name} for name in tools]}
        budget = {"time_limit": limits.get("seconds"), "message_limit": limits.get("turns")}
        budget["token_limit"] = limits.get("tokens")
        given["eval_limits"] = {name: int(value) for name, value in budget.items() if value is not None}
    details = {"settings": identity.get("settings"), "limits": limits, "show": identity.get("show")}
    generation: dict[str, Any] = {"generation_args": given, "additional_details": _words(details)}
    moment = f"{min(began, default=0.0):.0f}"
    return {
        "schema_version": SCHEMA,
        "evaluation_id": _evaluation_id(run, scored),
        "retrieved_timestamp": moment,
        "evaluation_timestamp": moment,
        "source_metadata": {
            "source_name": f"hybrid run {run.sha256[:16]}",
            "source_type": "evaluation_run",
            "source_organization_name": "not stated",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "hybrid", "version": str(identity.get("hybrid", __version__))},
        "model_info": dict(model),
        "evaluation_results": [
            _result(metric, scored, source, generation, run) for metric in scored.metrics if metric.value is not None
        ],
    }


def _result(
    metric: Metric, scored: Scored, source: Mapping[str, Any], generation: Mapping[str, Any], run: ExportedRun
) -> dict[str, Any]:
    name = metric.name
    limits = interval(metric, LEVEL)
    uncertainty: dict[str, Any] = {"num_samples": metric.n}
    if limits is not None:
        method = "over clusters of questions, linearised"
        uncertainty["confidence_interval"] = {"lower": limits.low, "upper": limits.high, "confidence_level": LEVEL}
        uncertainty["confidence_interval"]["method"] = method
    about = next((one.formula for one in run.benchmark.card.metrics if one.name == name), "")
    return {
        "evaluation_result_id": name,
        "evaluation_name": f"{run.benchmark.card.name}/{name}",
        "source_data": dict(source),
        "metric_config": {
            "metric_id": name if name == "accuracy" else f"{run.benchmark.card.name}.{name}",
            "metric_name": name,
            "lower_is_better": not metric.share,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0 if metric.share else "Infinity",
            "additional_details": _words({"formula": about, "no answer counts": run.options.abstain}),
        },
        "score_details": {
            "score": metric.value,
            "uncertainty": uncertainty,
            "details": _words({"solver": scored.solver, "role": role(scored), "tool_output": scored.tool_output}),
        },
        "generation_config": dict(generation),
    }


def _rows(run: ExportedRun, scored: Scored, *, shown: bool) -> Iterator[dict[str, Any]]:
    attempts = run.folder.recorded(scored.recorded).by_id
    first = next((one.name for one in scored.metrics if one.value is not None), "")
    model = _model(run, scored)["id"]
    for score in scored.scores:
        question, attempt = scored.questions[score.id], attempts.get(score.id)
        sound = question if isinstance(question, Question) else None
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": _evaluation_id(run, scored),
            "model_id": model,
            "evaluation_name": f"{run.benchmark.card.name}/{first}",
            "evaluation_result_id": first,
            "sample_id": score.id,
            "sample_hash": hashlib.sha256(_asked(sound).encode()).hexdigest(),
            **_interaction(sound, attempt, shown=shown),
            "input": {
                "raw": _shown(_asked(sound), shown=shown),
                "reference": _gold(run, sound, attempt),
                "choices": [_shown(one, shown=shown) for one in sound.choices] if sound and sound.choices else None,
            },
            "answer_attribution": _attribution(score, attempt),
            "evaluation": {
                "score": 0.0 if score.outcome.failed or score.correct is None else score.correct,
                "is_correct": not score.outcome.failed and score.correct == 1.0,
                **_counts(attempt),
            },
            **_costs(attempt),
            # What failed is apart from what is wrong: a row with an error is in no value above.
            "error": scored.reasons.get(score.id, score.outcome.value) if score.outcome.failed else None,
            "metadata": _words({"task": score.task, "outcome": score.outcome.value, "base": base_id(score.id)})
            | _words(dict(score.groups)),
        }


def _asked(question: Question | None) -> str:
    return (
        "" if question is None else "\n".join((question.text, *question.choices, *(i.sha256 for i in question.images)))
    )


def _shown(text: str, *, shown: bool) -> str:
    return text if shown else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _gold(run: ExportedRun, question: Question | None, attempt: Attempt | None) -> list[str]:
    if question is None or attempt is None or not attempt.exchanges:
        return []
    return [gold(run.benchmark, question, attempt.exchanges[-1].prompt)]


def _interaction(question: Question | None, attempt: Attempt | None, *, shown: bool) -> dict[str, Any]:
    """The dialogue: one reply, or every message where tools were called or several things asked."""
    exchanges = () if attempt is None else attempt.exchanges
    if len(exchanges) < 2 and not any(calls_of(one) for one in exchanges):
        return {"interaction_type": "single_turn", "output": {"raw": [one.reply.text for one in exchanges]}}
    messages = [message for exchange in exchanges for message in _messages(exchange, shown=shown)]
    kind = "agentic" if any(calls_of(one) for one in exchanges) else "multi_turn"
    return {"interaction_type": kind, "messages": [{"turn_idx": n, **one} for n, one in enumerate(messages)]}


def _messages(exchange: Exchange, *, shown: bool) -> Iterator[dict[str, Any]]:
    yield {"role": "user", "content": _shown(exchange.prompt.text, shown=shown)}
    waiting: list[str] = []
    traced, said = iter(calls_of(exchange)), None
    for number, step in enumerate(exchange.reply.steps):
        if step.kind == "model":
            called = _called(step, number)
            waiting, said = [one["id"] for one in called], step.text
            yield {"role": "assistant", "content": step.text, "tool_calls": called or None}
        elif step.kind == "tool":
            args = next(traced).args
            if not waiting:
                # A rule called the tool: no model wrote the call.
                waiting = [f"call-{number}"]
                call = {"id": waiting[0], "name": step.name, "arguments": _words(args)}
                yield {"role": "assistant", "content": None, "tool_calls": [call]}
            yield {"role": "tool", "content": step.text, "tool_call_id": [waiting.pop(0)]}
            said = None
    if said != exchange.reply.text:
        yield {"role": "assistant", "content": exchange.reply.text}


def _called(step: Step, number: int) -> list[dict[str, Any]]:
    calls = step.data.get("tool_calls")
    written = [one for one in calls if isinstance(one, Mapping)] if isinstance(calls, Sequence) else []
    return [
        {
            "id": f"call-{number}-{place}",
            "name": str(one.get("tool", "")),
            "arguments": _words(args) if isinstance(args := one.get("args"), Mapping) else {},
        }
        for place, one in enumerate(written)
    ]


def _attribution(score: Score, attempt: Attempt | None) -> list[dict[str, Any]]:
    if score.answer is None or attempt is None or not attempt.exchanges:
        return []
    several = len(attempt.exchanges) > 1 or any(calls_of(one) for one in attempt.exchanges)
    last = sum(1 for one in attempt.exchanges for _ in _messages(one, shown=False)) - 1 if several else 0
    return [
        {
            "turn_idx": last,
            "source": "messages[turn_idx].content" if several else "output.raw",
            "extracted_value": score.answer,
            "extraction_method": f"rule {score.rule}",
            "is_terminal": True,
        }
    ]


def _counts(attempt: Attempt | None) -> dict[str, int]:
    if attempt is None or not attempt.exchanges:
        return {}
    calls = sum(len(calls_of(one)) for one in attempt.exchanges)
    return {
        "num_turns": max(1, sum(one.reply.usage.model_calls for one in attempt.exchanges)),
        "tool_calls_count": calls,
    }


def _costs(attempt: Attempt | None) -> dict[str, Any]:
    if attempt is None:
        return {}
    usage = sum((one.reply.usage for one in attempt.exchanges), Usage())
    return {
        "token_usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "input_tokens_cache_read": usage.cached_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "performance": {"latency_ms": attempt.seconds * 1000},
    }


EXPORTER = EveryEvalEver()
