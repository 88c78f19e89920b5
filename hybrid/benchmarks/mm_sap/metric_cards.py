"""Definitions of MM-SAP's metrics (`hybrid benchmarks show mm_sap`)."""

from __future__ import annotations

from hybrid.benchmarks.card import MetricCard

QUESTIONS = "questions; each order of the options (--setting shuffles) is one more"
KK = "sum of [p = c] / |q|"
KU = "sum of [p = r] * [unknown] / |q|"
TERMS = (
    "p: the option chosen, c: the correct one, r: the refusal, |q|: all questions asked. unknown: never on BasicVisQA, "
    "always on BeyondVisQA, on KnowVisQA where the second pass, without the refusal, does not choose c (equation 3). "
)
OF_A_PART = "the same over a part"

METRICS = (
    MetricCard(
        "score_kk.total",
        KK,
        QUESTIONS,
        "paper, section 4.1, equation 1; Table 1",
        f"{TERMS}The paper prints 100 times it.",
    ),
    MetricCard(
        "score_ku.total",
        KU,
        QUESTIONS,
        "paper, section 4.1, equations 2 and 3; Table 1",
        "Terms as of score_kk.total. The paper prints 100 times it.",
    ),
    MetricCard(
        "score_sa.total",
        "score_kk + score_ku",
        QUESTIONS,
        "paper, section 4.1, equation 4; Table 1",
        "The paper prints 100 times it.",
    ),
    MetricCard(
        "score_kk.<BasicVisQA|KnowVisQA>",
        f"{KK}, over the questions of the set",
        "questions of the set",
        "paper, equation 1; the columns of Table 1",
        "There is none for BeyondVisQA, whose questions have no correct option.",
    ),
    MetricCard(
        "score_ku.<KnowVisQA|BeyondVisQA>",
        f"{KU}, over the questions of the set",
        "questions of the set",
        "paper, equations 2 and 3; the columns of Table 1",
        "There is none for BasicVisQA, whose questions are never unknown.",
    ),
    MetricCard(
        "score_sa.KnowVisQA", "score_kk + score_ku of the set", "questions of the set", "paper, equation 4; Table 1"
    ),
    MetricCard(
        "score_<sa|kk|ku>_by_type.<type>",
        f"score_sa, score_kk, score_ku: {OF_A_PART}",
        "questions of the type",
        "paper, equations 1 to 4; the types are those that the data names",
    ),
    MetricCard(
        "score_<sa|kk|ku>_by_shuffle.<shuffle>",
        f"score_sa, score_kk, score_ku: {OF_A_PART}",
        "questions in this order of their options",
        "paper, section 4.2: five runs with the options in another order",
    ),
    MetricCard(
        "spread_over_shuffles.<sa|kk|ku>",
        "standard deviation (n - 1) of the totals of the shuffles",
        "shuffles",
        "paper, section 4.2 and Table 1, which print mean and spread of five runs; their mean is the total itself",
    ),
    MetricCard(
        "answer_rate.<BasicVisQA|KnowVisQA|BeyondVisQA>",
        "sum of [p is not r] / |q|",
        "questions of the set",
        "paper, section 4.4, equation 6; Table 2",
        "An unreadable reply counts as answered, and wrong.",
    ),
    MetricCard(
        "refusal_rate.<BasicVisQA|KnowVisQA|BeyondVisQA>",
        "sum of [p = r] / |q|",
        "questions of the set",
        "ours: on KnowVisQA the Refusal Num of equation 7, as a share",
    ),
    MetricCard(
        "answer_accuracy.<BasicVisQA|KnowVisQA>",
        "sum of [p = c] / sum of [p is not r]",
        "questions of the set",
        "paper, section 4.4, equation 5; Table 2",
    ),
    MetricCard(
        "false_refusals",
        "refusals on BasicVisQA / its questions",
        "questions of BasicVisQA",
        "ours: 1 - answer_rate.BasicVisQA, what caution costs where the answer is in the picture",
    ),
    MetricCard(
        "missed_refusals",
        "answers on BeyondVisQA / its questions",
        "questions of BeyondVisQA",
        "paper, Table 2: the answer rate of BeyondVisQA, where lower is better",
    ),
    MetricCard(
        "unknown_knowns_rate",
        "sum of [p = r] * [p' = c] / sum of [p = r]",
        "questions of KnowVisQA",
        "paper, section 4.4, Table 4; with the refusals as denominator, which is what the table fits",
        "p': the option chosen in the second pass, without the refusal.",
    ),
    MetricCard(
        "unknown_knowns_rate_eq8",
        "sum of [p = r] * [p' = c] / |q|",
        "questions of KnowVisQA",
        "paper, section 4.4, equation 8 as it is printed, which does not give Table 4",
    ),
)
