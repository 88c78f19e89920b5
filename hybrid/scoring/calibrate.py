"""Measure the reliability of each tool and of the MLLM on each route, in folds: `hybrid calibrate RUN -o trust.json`.

Every specialist answer of a finished run is scored as if it were the reply to its prompt; scores of the MLLM alone are
counted too, if the run includes it. For each tool and route, the file stores the sum of the scores and the mean
log-odds that the tool states for its answers. It also stores a slope: how strongly a deviation from that mean predicts
whether the tool or the MLLM is right where they disagree. A graded answer that is neither right nor wrong (a scanpath)
counts by the benchmark's headline metric. Prompts of another kind than the question, such as ActiView's prompts about
parts of a picture, have no score.

Questions are assigned to folds by a hash of their cluster; fold k of the file holds counts from all other folds. A run
with blank, shuffled or oracle tool output is rejected, because its counts would be saved under the real tool's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.files import write_redacted, writing
from hybrid.core.option_rotation import ROTATED
from hybrid.core.types import LETTERS, Attempt, Exchange, Json, Kind, Prompt, Question, Reply, Score, base_id
from hybrid.log.codec import to_json
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.recorded_plugins import find_plugins
from hybrid.scoring.runs import refuse_hidden
from hybrid.scoring.tally import recorded_of, tally
from hybrid.solving.answer_confidence import CLAIM, AnswerConfidence, log_odds, probability
from hybrid.solving.rules import counted_route
from hybrid.solving.self_consistency import confidence_in
from hybrid.solving.trust import (
    MODEL,
    Key,
    Measured,
    Measurement,
    Trust,
    claimed_by,
    fold_of,
    measurement_as_json,
    picture_name,
    trust_content,
)
from hybrid.tool import Tool

# Standard deviation of the normal prior of a slope; slopes above 1, for networks that understate their confidence, are
# possible.
SPREAD = 1.0
ROUNDS, CLOSE = 300, 1e-8
MODEL_SOLVER = "mllm"
# The setting of `--tool-output` under which tools return their real output.
REAL = "real"
OPTIONS = ScoreOptions(unanswered="wrong")
# The rule for unanswered questions that `hybrid score` saves. The rule does not matter for the MLLM, because only its
# answers count.
AS_TABLES = ScoreOptions(unanswered="guess")


@dataclass(frozen=True)
class CountedAnswer:
    """One scored answer of a tool or of the MLLM."""

    id: str
    unit: str
    key: Key
    # The confidence as stated, 0..1; None if none was stated.
    confidence: float | None
    # 1 for right, 0 for wrong; a graded answer has its grade, 0..1.
    score: float
    # For a tool: its prior accuracy and its stated confidence, before any measurement. For the MLLM: the usual accuracy
    # and its share of the votes.
    claimed: AnswerConfidence


def cases(folder: RunFolder) -> tuple[CountedAnswer, ...]:
    """Return every specialist answer and MLLM answer of a run, each counted once per question and prompt."""
    manifest = folder.manifest
    find_plugins(folder)
    benchmark: Benchmark = load("hybrid.benchmarks", manifest["identity"]["benchmark"])
    refuse_hidden(benchmark, manifest["identity"]["split"])
    questions = folder.questions()
    by_key: dict[tuple[str, Key, bytes], CountedAnswer] = {}
    for solver in folder.solvers():
        alone = tally(folder, benchmark, solver, questions, AS_TABLES).scores if solver == MODEL_SOLVER else ()
        scores = {score.id: score for score in alone}
        for attempt in recorded_of(folder, solver, questions).by_id.values():
            question = questions.by_id[attempt.id]
            # Rotations of a question's options are not additional questions.
            if not isinstance(question, Question) or ROTATED.search(attempt.id):
                continue
            score = scores.get(attempt.id)
            value = None if score is None or score.answer is None else worth(benchmark, score)
            if value is not None:
                # Count only the MLLM's own readable answer.
                last_exchange = attempt.exchanges[-1]
                key = (*MODEL, counted_route(last_exchange.prompt))
                confidence = confidence_in(last_exchange.reply.steps)
                claimed = AnswerConfidence(benchmark.card.prior_accuracy.usual(last_exchange.prompt), confidence)
                case = CountedAnswer(
                    question.id, question.unit, key=key, confidence=confidence, score=value, claimed=claimed
                )
                by_key.setdefault((attempt.id, key, b""), case)
            for exchange in attempt.exchanges:
                prompt = to_json(Prompt, exchange.prompt)
                for case in _cases(benchmark, question, attempt, exchange):
                    by_key.setdefault((attempt.id, case.key, prompt), case)
    return tuple(by_key.values())


def worth(benchmark: Benchmark, score: Score) -> float | None:
    """Return an answer's score, 0..1: 1 or 0 by its verdict, else the first headline metric that the answer has.

    Returns None if the answer has neither a verdict nor such a metric.
    """
    if score.correct is not None:
        return float(score.correct == 1.0)
    leading = (name.split(".")[0] for name in benchmark.card.headline)
    value = next((score.values[name] for name in leading if name in score.values), None)
    return None if value is None else min(max(value, 0.0), 1.0)


def _cases(benchmark: Benchmark, question: Question, attempt: Attempt, exchange: Exchange) -> Iterator[CountedAnswer]:
    """Yield the specialist answers given in one exchange."""
    prompt = exchange.prompt
    for specialist_answer in (step.data.get("specialist_answer") for step in exchange.reply.steps):
        exchanges = (
            _as_reply(question, attempt, exchange, specialist_answer)
            if isinstance(specialist_answer, Mapping)
            else None
        )
        if not isinstance(specialist_answer, Mapping) or exchanges is None:
            continue
        value = worth(benchmark, benchmark.score(question, exchanges, OPTIONS))
        if value is not None and isinstance(specialist_answer["confidence"], int | float):
            tool, backend, confidence = (
                str(specialist_answer["tool"]),
                str(specialist_answer["backend"]),
                float(specialist_answer["confidence"]),
            )
            # Before any measurement, the arbiter uses the confidence that follows from these facts.
            stated, on_card = (
                None if prompt.kind is Kind.SCANPATH else confidence,
                specialist_answer.get("on_card") is True,
            )
            guess = benchmark.card.prior_accuracy.guess(prompt)
            claimed = claimed_by(_tool(tool), backend, stated, guess, on_card=on_card)
            key = (tool, backend, counted_route(prompt, tool))
            yield CountedAnswer(
                question.id, question.unit, key=key, confidence=confidence, score=value, claimed=claimed
            )


def _tool(name: str) -> Tool:
    """Return the tool that gave an answer. Raises `UsageError` with advice if it existed only in Python."""
    try:
        tool: Tool = load("tools", name)
    except UsageError as error:
        saved = f"save it as {name}.py and name its folder with --path"
        raise UsageError(f"{error}; if it was passed in from Python: {saved}") from error
    return tool


def _as_reply(
    question: Question, attempt: Attempt, exchange: Exchange, specialist_answer: Mapping[str, Json]
) -> tuple[Exchange, ...] | None:
    """Return the exchanges to score for a specialist answer; None if it answers another kind of prompt.

    The specialist answer replaces the reply, and other exchanges with the same choices are left out, so that a
    benchmark that counts the best of several replies (ActiView's any view) sees only this answer. If the prompt offers
    some of the choices under other letters (MM-SAP's second pass), the answer is translated to the question's letters.
    """
    prompt = exchange.prompt
    if not _same_ask(question, prompt):
        text = dict(zip(LETTERS, prompt.choices, strict=False)).get(str(specialist_answer.get("letter")))
        # A letter for a part of the picture, for example, is not one of the question's choices.
        if prompt.kind is not question.kind or text is None or question.choices.count(text) != 1:
            return None
        return (Exchange(prompt, Reply(f"Answer: ({LETTERS[question.choices.index(text)]})")),)
    replacement = Exchange(prompt, Reply(str(specialist_answer["answer"])))
    return tuple(
        replacement if other is exchange else other
        for other in attempt.exchanges
        if other is exchange or not _same_ask(question, other.prompt)
    )


def _same_ask(question: Question, prompt: Prompt) -> bool:
    return prompt.kind is question.kind and prompt.choices in (question.choices, ())


def write_trust(folder: RunFolder, out: Path, folds: int, asked_for: Collection[str] = ()) -> tuple[CountedAnswer, ...]:
    """Write the counts of a run to a trust file.

    Raises:
        UsageError: the run had control tool output or imported predictions, has no counted answer (or none of a tool in
            `asked_for`), or `folds` is too small; nothing is written.
    """
    if folds < 2:
        raise UsageError(f"--folds {folds}: out-of-fold needs at least 2")
    manifest = folder.manifest
    identity = manifest["identity"]
    if "tool_output" not in identity:
        raise UsageError(f"{folder.path} holds imported predictions: its manifest names no model and no tools")
    if identity["tool_output"] != REAL:
        raise UsageError(
            f"{folder.path} was run with --tool-output {identity['tool_output']}: what it counts is not what the tools "
            f"can do; calibrate a run with --tool-output {REAL}"
        )
    counted_answers = cases(folder)
    if not counted_answers:
        raise UsageError(f"{folder.path} contains no specialist answers: run the specialist or the arbiter in it first")
    tool_names = dict.fromkeys(case.key[0] for case in counted_answers)
    for name in asked_for:
        if name not in tool_names:
            hint = did_you_mean(name, tool_names)
            raise UsageError(
                f"--only {name}: it has no counted answer{hint}; available: {', '.join(sorted(tool_names))}"
            )

    def rows(without: int | None) -> list[Json]:
        training_cases = (case for case in counted_answers if fold_of(case.unit, folds) != without)
        return [measurement_as_json(key, measurement) for key, measurement in measurements(training_cases)]

    places: dict[str, int] = {}
    questions = folder.questions().by_id
    for case in counted_answers:
        pictures = getattr(questions[case.id], "images", ())
        for name in (base_id(case.id), case.unit, *map(picture_name, pictures)):
            places.setdefault(name, fold_of(case.unit, folds))
    content = trust_content(measured(manifest, counted_answers), [*map(rows, range(folds))], rows(None), places)
    with writing(out):
        write_redacted(out, content)
    return counted_answers


def measured(manifest: Mapping[str, Any], answers: Sequence[CountedAnswer]) -> Measured:
    """Return, from a run's manifest, the model, tools and data with which its answers were measured.

    Raises:
        UsageError: two solvers of the run got output of the same tool from different backends or code.
    """
    identity, solvers = manifest["identity"], manifest["solvers"].values()
    tool_backends = {case.key[:2] for case in answers}
    # Also include every tool whose output another included tool uses.
    relied, waiting = set[str](), {tool for tool, _ in tool_backends - {MODEL}}
    while waiting:
        relied |= waiting
        cards = [_tool(name).card for name in waiting]
        needs = (
            card_needs for card in cards for card_needs in (card.needs, *(backend.needs for backend in card.backends))
        )
        waiting = {need.tool for card_needs in needs for need in card_needs} - relied
    tools: dict[str, Json] = {}
    for name, facts in (entry for solver in solvers for entry in solver.get("tools", {}).items()):
        if name in relied and tools.setdefault(name, facts) != facts:
            raise UsageError(f"two solvers of this run called {name} in different versions: {tools[name]}, {facts}")
    return Measured(
        benchmark=identity["benchmark"],
        split=identity["split"],
        data=identity["data"],
        model=identity["model"] if MODEL in tool_backends else None,
        tools=dict(sorted(tools.items())),
        control=identity["tool_output"],
        samples=identity.get("samples", 1) if MODEL in tool_backends else 1,
        unchecked=tuple(sorted({name for solver in solvers for name in solver.get("unchecked_weights", ())} & relied)),
    )


def measurements(answers: Iterable[CountedAnswer]) -> tuple[tuple[Key, Measurement], ...]:
    """Return the measurement of each tool or MLLM on each route, sorted by name."""
    by_key: dict[Key, list[CountedAnswer]] = defaultdict(list)
    for case in answers:
        by_key[case.key].append(case)
    measurement_by_key: dict[Key, Measurement] = {}
    for key, route_cases in sorted(by_key.items()):
        stated = [log_odds(case.claimed.said) for case in route_cases if case.claimed.said is not None]
        measurement_by_key[key] = Measurement(
            sum(case.score for case in route_cases), len(route_cases), mean(stated) if stated else None
        )
    trust, contests = Trust(measurement_by_key), list[Contest]()
    own_answers = {(case.id, key[2]): case for key, cases in by_key.items() if key[:2] == MODEL for case in cases}
    for key, case in ((key, case) for key, cases in by_key.items() if key[:2] != MODEL for case in cases):
        other = own_answers.get((case.id, key[2]))
        if other is not None and case.score != other.score:
            tool = trust.tool(key, case.claimed)
            model = trust.model(key[2], other.claimed.rate, other.claimed.said)
            deviations = {key[:2]: tool.apart, MODEL: -model.apart}
            rate_gap, distance = log_odds(tool.rate) - log_odds(model.rate), case.score - other.score
            contests.append((rate_gap, deviations, distance > 0, abs(distance)))
    slopes = _slopes(contests)
    return tuple(
        (key, replace(measurement, slope=slopes.get(key[:2], CLAIM))) for key, measurement in measurement_by_key.items()
    )


# A question on which tool and MLLM are not equally right. The items are: the difference of their accuracies on the
# route in log-odds (positive if the tool is better); the stated log-odds minus their mean, by name and backend (negated
# for the MLLM); whether the tool won; and the difference of the scores, which is 1 if one was right and the other
# wrong.
Contest = tuple[float, Mapping[tuple[str, str], float], bool, float]


def _slopes(contests: Sequence[Contest]) -> dict[tuple[str, str], float]:
    """Return the most probable slopes, at least 0, with normal priors of mean `CLAIM`, by coordinate ascent.

    The objective is concave in all slopes, and no step lowers it (Boehning and Lindsay 1988).
    """
    slopes = dict.fromkeys((name for _, deviations, _, _ in contests for name in deviations), CLAIM)
    for _ in range(ROUNDS):
        previous = dict(slopes)
        for name in slopes:
            up, curved = (CLAIM - slopes[name]) / SPREAD**2, 1 / SPREAD**2
            for rates, deviations, won, weight in (contest for contest in contests if name in contest[1]):
                p = probability(rates + sum(slopes[other] * y for other, y in deviations.items()))
                up += weight * (won - p) * deviations[name]
                # Use the largest possible curvature (at p = 1/2), so that no step overshoots.
                curved += weight * deviations[name] * deviations[name] / 4
            slopes[name] = max(0.0, slopes[name] + up / curved)
        if all(abs(slopes[name] - was) < CLOSE for name, was in previous.items()):
            break
    return slopes
