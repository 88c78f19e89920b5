"""Scores of replies with a single answer, and metrics that are ratios of sums over scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from hybrid.answers.base import Parsed
from hybrid.answers.yes_no import YesNo
from hybrid.benchmarks.base import ScoreOptions, unanswered
from hybrid.benchmarks.card import metric_of
from hybrid.types import Cell, Metric, Outcome, Question, Reply, Score


def score_of(
    question: Question,
    correct: float | None,
    outcome: Outcome,
    answer: str | None = None,
    rule: str = "none",
    values: Mapping[str, float] | None = None,
) -> Score:
    """A score with the question's id, task, groups and cluster."""
    return Score(
        question.id, question.task, correct, outcome, answer, rule, values or {}, question.groups, question.cluster
    )


def score_reply(
    question: Question,
    reply: Reply,
    options: ScoreOptions,
    *,
    right: str,
    chance: float,
    strict: Callable[[str], Parsed[str] | Parsed[YesNo]],
    official: Callable[[str], str | None],
) -> Score:
    """Whether a reply gives the answer `right`, read by our parser or by the authors' rule, as the options say.

    An abstention scores as `unanswered` defines it from `chance`; only a reply without text keeps its outcome then.
    """
    worth = unanswered(reply.outcome, chance, options)
    if reply.outcome is not Outcome.ANSWERED and not reply.text.strip():
        return score_of(question, worth, reply.outcome)
    if options.parse == "official":
        answer, rule = official(reply.text), "official"
    else:
        parsed = strict(reply.text)
        answer, rule = parsed.value, parsed.rule
    if answer is None:
        return score_of(question, worth, Outcome.UNPARSED)
    return score_of(question, float(answer == right), reply.outcome, answer, rule)


def score_kept(
    question: Question, answer: str | None, *, right: bool, chance: float, options: ScoreOptions, rule: str = "stored"
) -> Score:
    """The score of an answer stored by the extraction of others; None if it stored none."""
    if answer is None:
        return score_of(question, unanswered(Outcome.UNPARSED, chance, options), Outcome.UNPARSED)
    return score_of(question, float(right), Outcome.ANSWERED, answer, rule)


def ratio(
    name: str, scores: Sequence[Score], numerator: str, denominator: str | None = None, *, share: bool = True
) -> Metric:
    """Sum of one value over the sum of another (over the number of scores without one)."""
    return metric_of(
        name,
        (
            Cell("", score.unit, score.values[numerator], score.values[denominator] if denominator else 1.0)
            for score in scores
        ),
        share=share,
    )


def grouped(scores: Iterable[Score], key: Callable[[Score], str | None]) -> dict[str, list[Score]]:
    """The scores by a name, in the order of the first of each; those without a name belong nowhere."""
    groups: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        if name := key(score):
            groups[name].append(score)
    return dict(groups)
