"""How the numbers are reckoned that are the same for every benchmark: further metrics of `hybrid score`, and `compare`.

    card_of("with_failed.accuracy_macro", (*benchmark.card.metrics, *FURTHER))
    QUANTITIES["agreement"]      # the lines of `hybrid compare --csv` with this section

The metrics of a benchmark are on its card; `hybrid benchmarks show NAME` prints those and `FURTHER`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hybrid.benchmarks.base import MetricCard
from hybrid.scoring.evidence import CLASSES, RATES
from hybrid.types import Outcome

FURTHER: Final = (
    MetricCard(
        "rotation.accuracy",
        "right answers / asks, over all rotations of the options",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate), after the circular protocol of MMBench (Liu et al. 2023) and MVP-Bench",
    ),
    MetricCard(
        "rotation.consistency",
        "questions whose chosen option, by its words, is the same in every rotation / questions",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate)",
    ),
    MetricCard(
        "rotation.all_correct",
        "questions right in every rotation / questions",
        "questions that were rotated, none of whose rotations failed",
        "ours (--rotate), as MVP-Bench's circular accuracy",
    ),
    MetricCard(
        "rotation.excluded",
        "number of questions without a rotation",
        "all questions",
        "ours (--rotate)",
        "Letters are drawn in the picture, or the text does not show the options in a known form.",
        "0 to n, in questions",
    ),
    MetricCard(
        "with_failed.<metric>",
        "the metric, every failed question counted as wrong",
        "as the metric's, and the failed questions",
        "ours: the second denominator; printed where a question failed",
        values="as the metric's",
    ),
    MetricCard(
        "judged.<metric>",
        "the metric, unreadable replies counted as the judge read them",
        "as the metric's",
        "ours (hybrid score --verdicts), in the place of the judges of BLINK's and MVP-Bench's code",
        values="as the metric's",
    ),
    MetricCard(
        "agreement",
        "predictions that our parser reads as the authors' extraction did / predictions",
        "predictions with a stored answer",
        "ours (hybrid score --field text)",
        "Where neither finds an answer they agree.",
    ),
    MetricCard(
        "undecided",
        "predictions in which our parser reads no answer / predictions",
        "predictions",
        "ours (hybrid score --field text)",
    ),
)
"""Metrics that any benchmark may have besides its own."""

BOTH = "questions that both have and neither failed"
ONE = "questions of the solver"
COUNT = "0 to n, in questions"
UNIT = "in the metric's own unit"
PAIRED = "docs/statistics.md; paired by question, resampled by cluster"
ALL_THREE = "questions that the hybrid solver, its MLLM alone and the specialist have and none failed"
USED = "docs/evidence.md"
JUDGED = "questions that the hybrid solver and the MLLM alone answered, and that are right or wrong"
TOLD = "docs/statistics.md, section Repeated runs"
VOTED = "questions that were voted on"


def _count(name: str, formula: str, counts: str, source: str, about: str = "") -> MetricCard:
    return MetricCard(name, formula, counts, source, about, COUNT)


def _rate(name: str, told: str) -> MetricCard:
    """Of words such as "alone wrong and finding right: hybrid right": the cases, and which of them count."""
    cases, _, counted = told.partition(": ")
    return MetricCard(
        f"{name} rate", f"questions with {counted} / questions with {cases}", f"questions with {cases}", USED
    )


QUANTITIES: Final[Mapping[str, tuple[MetricCard, ...]]] = {
    "metrics": (
        MetricCard(
            "value", "the metric of the column `metric`", "as the metric's", "the benchmark's card", values=UNIT
        ),
    ),
    "tasks": (
        MetricCard(
            "accuracy",
            "right answers / questions of the task (or of the group of --by)",
            "questions of the task that did not fail",
            "ours: the mean score, so that --abstain decides what no answer is worth",
        ),
        _count("none", "questions of the task without a readable answer", "questions of the task", "ours"),
    ),
    "differences": (
        MetricCard(
            "difference",
            "value b - value a",
            BOTH,
            PAIRED,
            "Its p value is of a true difference of 0.",
            "-1 to 1, or " + UNIT,
        ),
        MetricCard("value a", "the metric of the first solver over the shared questions", BOTH, PAIRED, values=UNIT),
        MetricCard("value b", "the metric of the second solver over the shared questions", BOTH, PAIRED, values=UNIT),
        _count("both answered", "questions with a readable answer from both", BOTH, "ours"),
        _count(
            "helped",
            "questions that both answered, a wrong, b right",
            BOTH,
            "one of the two cells of McNemar (Psychometrika 12 (1947) 153-157)",
            "His test is not used: it is of questions, and the row may show a mean over tasks (docs/statistics.md).",
        ),
        _count(
            "harmed",
            "questions that both answered, a right, b wrong",
            BOTH,
            "the other cell of McNemar (Psychometrika 12 (1947) 153-157)",
        ),
        _count("none a", "questions without a readable answer from a", BOTH, "ours"),
        _count("none b", "questions without a readable answer from b", BOTH, "ours"),
        _count("failed", "questions that one of the two failed", "questions that both have", "ours"),
    ),
    "questions": (
        _count("shared", "questions that both have", "not given", "ours"),
        _count("only a", "questions that only a has", "not given", "ours"),
        _count("only b", "questions that only b has", "not given", "ours"),
        _count("failed", "shared questions that one of the two failed", "not given", "ours"),
    ),
    "outcomes": (
        *(
            _count(
                outcome.value,
                f"questions that ended so{': a failure, which is no answer' if outcome.failed else ''}",
                ONE,
                "ours",
            )
            for outcome in Outcome
        ),
        MetricCard("model calls", "calls of the MLLM", ONE, "recorded", values="0 and above, in calls"),
        MetricCard("tool calls", "calls of tools", ONE, "recorded", values="0 and above, in calls"),
        MetricCard(
            "lost",
            "tool calls that ended in a timeout or an error of the tool",
            ONE,
            "recorded",
            values="0 and above, in calls",
        ),
        MetricCard(
            "tokens <in|out>",
            "tokens sent to the MLLM, and written by it",
            ONE,
            "as the provider reports them; empty where it reports none",
            values="0 and above, in tokens",
        ),
        MetricCard(
            "busy", "running time of model and tools, added up", ONE, "measured", values="0 and above, in seconds"
        ),
        MetricCard("wall", "time with at least one question open", ONE, "measured", values="0 and above, in seconds"),
        MetricCard(
            "cost", "tokens * price", ONE, "--model-arg price=IN/OUT; empty without", values="0 and above, in USD"
        ),
    ),
    "noninferior": (
        MetricCard(
            "difference",
            "value of the hybrid solver - value of the part, by the headline metric",
            BOTH,
            PAIRED,
            "Non-inferior where the lower end of the 95 % interval is above -margin.",
            "-1 to 1",
        ),
        MetricCard("margin", "--margin", BOTH, "the user's choice, 0.05 where none is made"),
        MetricCard(
            "one-sided p of a loss of the margin or more",
            "p of the same statistic at a true difference of -margin",
            BOTH,
            "Piaggio et al., JAMA 308 (2012) 2594-2604; close to Tango, Statistics in Medicine 17 (1998) 891-908",
        ),
    ),
    "gain": (
        MetricCard("gain", "hybrid - alone", BOTH, f"ours; {PAIRED}", "gain = presence + content.", "-1 to 1"),
        MetricCard(
            "presence",
            "hybrid with blank tools - alone",
            BOTH,
            f"ours; {PAIRED}",
            "What other prompts and more turns bring.",
            "-1 to 1",
        ),
        MetricCard(
            "content", "hybrid - hybrid with blank tools", BOTH, f"ours; {PAIRED}", "What the tools say.", "-1 to 1"
        ),
        MetricCard(
            "shuffled",
            "hybrid with shuffled tools - hybrid with blank tools",
            BOTH,
            f"ours; {PAIRED}",
            "What findings about other questions bring.",
            "-1 to 1",
        ),
    ),
    "ceiling": (
        _count(
            "right in either part",
            "questions that the MLLM alone or the specialist gets right",
            ALL_THREE,
            "ours: a solver that always knew whom to believe",
        ),
        _count("right in the better part", "the greater number of right answers of the two parts", ALL_THREE, "ours"),
        _count("right", "questions that the hybrid solver gets right", ALL_THREE, "ours"),
        _count("only hybrid", "questions that the hybrid solver gets right and neither part does", ALL_THREE, "ours"),
        _count("missed", "questions that one part gets right and the hybrid solver does not", ALL_THREE, "ours"),
        MetricCard(
            "reached",
            "(right - right in the better part) / (right in either part - right in the better part)",
            ALL_THREE,
            "ours; the interval of a ratio of means: Cochran, Sampling Techniques (1977), section 6.3, equation 6.9",
            "Below 0 it is behind its better part, above 1 it is right where neither part is.",
            "no bounds",
        ),
    ),
    "evidence": (
        *(_count(name, f"questions with: {what}", JUDGED, USED) for name, what in CLASSES.items()),
        *(_rate(name, share.words) for name, share in RATES.items()),
    ),
    "tool_use": (
        _count(
            "questions with a call", "answered questions about which the tool was called", "answered questions", USED
        ),
        MetricCard("calls", "calls of the tool", "answered questions", USED, values="0 and above, in calls"),
        MetricCard(
            "faults: <bad arguments|unknown tool|unknown image|tool error|timeout|absent>",
            "calls that ended so",
            "calls of the tool",
            USED,
            values="0 to n, in calls",
        ),
        MetricCard(
            "right when called",
            "right answers / questions, of those about which the tool was called",
            "such questions with a verdict",
            USED,
            "No claim about what the call did: a tool is called where a question seems to need it.",
        ),
        MetricCard(
            "right when not called",
            "right answers / questions, of those about which the tool was not called",
            "such questions with a verdict",
            USED,
        ),
        MetricCard(
            "seconds a call",
            "mean running time of a call; a finding that was known already takes none",
            "calls of the tool",
            USED,
            values="0 and above, in seconds",
        ),
    ),
    "agreement": (
        _count("wrong <a|b>", "questions that the solver does not answer rightly", BOTH, "ours"),
        _count("both wrong", "questions that neither answers rightly", BOTH, "ours"),
        _count("expected", "wrong a * wrong b / n", BOTH, "independence of errors over all questions"),
        _count(
            "expected within tasks",
            "sum over strata of wrong a * wrong b / questions",
            BOTH,
            "independence of errors within each task and number of choices",
        ),
        _count("same wrong answer", "questions to which both give the same wrong answer", BOTH, "ours"),
        MetricCard(
            "both wrong / expected within tasks",
            "both wrong / expected within tasks",
            BOTH,
            "p: exact and conditional, Gart, Biometrika 57 (1970) 471-475; over clusters Mantel and Haenszel, JNCI 22 "
            "(1959) 719-748, with Zhang and Boos, Biometrics 53 (1997) 1185-1198",
            "1 is independence.",
            "0 and above",
        ),
        MetricCard(
            "kappa",
            "(p_o - p_e) / (1 - p_e)",
            BOTH,
            "Cohen, Educational and Psychological Measurement 20 (1960) 37-46; interval after Fleiss, Cohen and "
            "Everitt (1969), over clusters Yang and Zhou (2014)",
            "p_o: share of questions that both have right or both have wrong; p_e: that share were they independent.",
            "-1 to 1",
        ),
    ),
    "floor": (
        MetricCard(
            "guess",
            "expected value of the metric for a uniform guess at these questions",
            "units of the metric",
            "ours: exact where the answers can be listed, else over seeded draws",
            values=UNIT,
        ),
        MetricCard(
            "most frequent answer",
            "greatest share of questions with the same right answer, task by task",
            "questions of the task",
            "ours: the best that one answer a task can do, chosen by the key",
        ),
        MetricCard(
            "above guess",
            "value of the solver - guess at the same questions",
            "units of the metric",
            "ours; the interval is the solver's own, the guess is taken as known",
            values=UNIT,
        ),
    ),
    "spread": (
        MetricCard(
            "value",
            "the metric of one repetition",
            "questions that every repetition has and none failed",
            TOLD,
            values=UNIT,
        ),
        MetricCard(
            "mean over repetitions",
            "mean of the K repetitions",
            "questions that every repetition has and none failed",
            f"{TOLD}; interval: Student, Biometrika 6 (1908) 1-25",
            values=UNIT,
        ),
        MetricCard(
            "standard deviation over repetitions",
            "root of (sum of (value - mean)^2 / (K - 1))",
            "questions that every repetition has and none failed",
            TOLD,
            values=UNIT,
        ),
        MetricCard(
            "share of changed verdicts",
            "questions whose verdict is not the same in all repetitions / questions with a verdict",
            "questions with a verdict in every repetition",
            TOLD,
        ),
    ),
    "sampling": (
        MetricCard("vote", "the metric of the answer with most votes", VOTED, "Wang et al., ICLR 2023"),
        MetricCard(
            "single sample",
            "mean of the metric over the samples, each as if it had been the reply",
            VOTED,
            "ours: what one run at the same temperature gives",
        ),
        MetricCard(
            "best of samples", "the metric, right where any sample is right", VOTED, "ours: a perfect choice among them"
        ),
        MetricCard(
            "share of refusals", "model calls that ended in a refusal / samples", "samples of all votes", "ours"
        ),
        MetricCard(
            "share of unreadable samples",
            "samples without a readable answer / samples, of the last votes",
            "samples of all votes",
            "ours",
        ),
        MetricCard(
            "mean share of the winner",
            "mean over questions of votes for the winner / readable samples",
            "samples of all votes",
            "ours",
        ),
        MetricCard(
            "accuracy by share of the winner",
            "right votes / questions whose winner has a share in this bin",
            "questions of the bin",
            "ours: whether the share says how far a vote can be believed",
        ),
    ),
}
"""By section the quantities of `hybrid compare --csv`, in the order of the sections."""


def card_of(name: str, cards: Iterable[MetricCard]) -> MetricCard | None:
    """The first card that describes a metric of this name; None where no card does."""
    return next((card for card in cards if card.describes(name)), None)
