"""Scores of replies with a single answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hybrid.answers.base import Parsed
from hybrid.answers.yes_no import YesNo
from hybrid.benchmarks.base import ScoreOptions, unanswered
from hybrid.core.types import Outcome, Question, Reply, Score


def score_of(
    question: Question,
    correct: float | None,
    outcome: Outcome,
    answer: str | None = None,
    *,
    rule: str = "none",
    values: Mapping[str, float] | None = None,
) -> Score:
    """Make a score with the question's id, task, groups and cluster."""
    return Score(
        question.id,
        question.task,
        correct=correct,
        outcome=outcome,
        answer=answer,
        rule=rule,
        values=values or {},
        groups=question.groups,
        cluster=question.cluster,
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
    """Score whether a reply gives the answer `right`; `options` select hybrid's parser or the authors' rule.

    A reply without a readable answer has the score that `unanswered` defines from `chance`. It counts as unparsed,
    except that an abstention or a fault without any text keeps its outcome.
    """
    credit = unanswered(reply.outcome, chance, options)
    if reply.outcome is not Outcome.ANSWERED and not reply.text.strip():
        return score_of(question, credit, reply.outcome)
    if options.parse == "official":
        answer, rule = official(reply.text), "official"
    else:
        parsed = strict(reply.text)
        answer, rule = parsed.value, parsed.rule
    if answer is None:
        return score_of(question, credit, Outcome.UNPARSED)
    return score_of(question, float(answer == right), reply.outcome, answer, rule=rule)


def score_kept(
    question: Question, answer: str | None, *, right: bool, chance: float, options: ScoreOptions, rule: str = "stored"
) -> Score:
    """Score an answer that the authors' extraction stored; None stands for a failed extraction."""
    if answer is None:
        return score_of(question, unanswered(Outcome.UNPARSED, chance, options), Outcome.UNPARSED)
    return score_of(question, float(right), Outcome.ANSWERED, answer, rule=rule)
