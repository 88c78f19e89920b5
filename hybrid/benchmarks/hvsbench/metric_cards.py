"""Definitions of HVSBench's metrics (`hybrid benchmarks show hvsbench`)."""

from __future__ import annotations

from hybrid.benchmarks.card import MetricCard

PATHS = "scanpaths asked for"
HAT = "the code of the scanpath model HAT (common/metrics.py), which the paper follows"

METRICS = (
    MetricCard(
        "overall_accuracy",
        "right answers / questions, of Q1 to Q8, Q10, Q11 and Q13",
        "questions with a right answer: all but the scanpaths Q9 and Q12",
        "paper, section 3.3 and Table 3 (Overall Acc)",
        "The paper does not print how fields are weighted: over questions, Table 11's columns give the printed value "
        "to 1e-4 for 10 of 13 MLLMs, and no mean over fields or types does.",
    ),
    MetricCard(
        "accuracy.<prominence|subitizing|prioritizing|free_viewing|searching>",
        "right answers / questions of the field",
        "questions of the field with a right answer",
        "paper, section 3.3; the columns Acc of Table 3",
        "A count (Q2) and an order (Q3) must be exact.",
    ),
    MetricCard(
        "mae",
        "sum of |said - true| / questions",
        "questions of Q2",
        "paper, section 3.3; Table 3",
        "A reply without a number counts as 3.2116, the mean true count.",
        "0 and above, in objects",
    ),
    MetricCard(
        "rmse",
        "root of (sum of (said - true)^2 / questions)",
        "questions of Q2",
        "paper, section 3.3; Table 3",
        "A reply without a number counts as 3.2116, the mean true count.",
        "0 and above, in objects",
    ),
    MetricCard(
        "m_shape.<q9|q12>",
        "mean over questions of the mean over human paths of 1 - median |u - v| / (2 d)",
        PATHS,
        f"MultiMatch: Jarodzka et al., ETRA 2010, section 3; paper, section 3.3; {HAT}",
        "u, v: aligned saccades as vectors, d: the diagonal of the screen (--setting screen), median over the aligned "
        "pairs. The first six fixations count; a path below three is filled up with points (1, 1) px. A reply without "
        "the three lists counts as one fixation in the middle.",
        "1 is alike",
    ),
    MetricCard(
        "m_dir.<q9|q12>",
        "mean over questions of the mean over human paths of 1 - median angle between u and v / pi",
        PATHS,
        f"MultiMatch, as m_shape; paper, section 3.3 and Table 3 (M-Dir); {HAT}",
        "As m_shape. It depends on the shape of the screen.",
        "1 is alike",
    ),
    MetricCard(
        "m_len.<q9|q12>",
        "mean over questions of the mean over human paths of 1 - median | |u| - |v| | / d",
        PATHS,
        f"MultiMatch, as m_shape; paper, section 3.3; {HAT}",
        "As m_shape.",
        "1 is alike",
    ),
    MetricCard(
        "m_pos.<q9|q12>",
        "mean over questions of the mean over human paths of 1 - median distance of the fixations that u and v start "
        "from / d",
        PATHS,
        f"MultiMatch, as m_shape; paper, section 3.3 and Table 3 (M-Pos); {HAT}",
        "As m_shape.",
        "1 is alike",
    ),
    MetricCard(
        "<m_shape|m_dir|m_len|m_pos>_human.<q9|q12>",
        "each person's path against those of the others, mean over persons, mean over questions",
        "questions with the paths of at least two persons",
        "paper, section 4.1 (human evaluation: the oracle of its reference 54)",
        values="1 is alike",
    ),
    MetricCard(
        "<m_shape|m_dir|m_len|m_pos>_random.<q9|q12>",
        "a person's path of another picture against the paths of this one, mean over questions",
        "questions for which there is another picture",
        "paper, section 4.1 (random guess)",
        values="1 is alike",
    ),
    MetricCard(
        "<m_dir|m_pos>_rescaled_published.<q9|q12>",
        "mean over questions of (value - random) / (human - random), both ends as printed",
        PATHS,
        "ours, with the rows Random Guess and Human of the paper's Table 3 as ends",
        values="0 is a random guess, 1 a person",
    ),
    MetricCard(
        "<m_dir|m_pos>_rescaled_measured.<q9|q12>",
        "mean over questions of (value - the question's own random) / (mean human - mean random)",
        PATHS,
        "ours, with both ends measured on these questions; the span counts as known when it is resampled",
        values="0 is a random guess, 1 a person",
    ),
)
