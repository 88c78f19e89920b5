"""Definitions of MVP-Bench's metrics (`hybrid benchmarks show mvp_bench`)."""

from __future__ import annotations

from hybrid.benchmarks.card import MetricCard

EVALUATE = "the authors' evaluate.py"
EVALUATE_MCQ = "the authors' evaluate_mcq.py"

METRICS = (
    MetricCard(
        "qAcc.<low|high|multi>",
        "questions answered right on both pictures of their pair / questions",
        "yes/no questions, each asked of the natural and of the manipulated picture",
        f"paper, section 3.2 and Table 2, after Liu et al. 2023a; {EVALUATE}",
        "low and high are the levels of perception, multi is both together (L_m of the paper).",
    ),
    MetricCard(
        "aAcc.<low|high|natural|manipulated|all>",
        "right answers / answers",
        "yes/no questions, one for each picture",
        f"paper, section 3.1, Tables 2 and 3; {EVALUATE}",
    ),
    MetricCard(
        "iAcc.<natural|manipulated|all>",
        "pictures with every yes/no question right / pictures with more than one",
        "pictures with at least two yes/no questions: 169 natural and 169 manipulated ones of the published data",
        f"paper, section 3.2 and Table 3; {EVALUATE} for leaving out pictures with a single question",
    ),
    MetricCard(
        "mAcc",
        "pairs with every yes/no answer right on both pictures / pairs with more than three such answers",
        "pairs of pictures with at least four yes/no rows: 169 of 187 of the published data",
        f"paper, section 3.2 and Table 2; {EVALUATE} for leaving out pairs with fewer rows",
    ),
    MetricCard(
        "circular.<cross_low|cross_high|single>",
        "questions right under every rotation of their options / questions",
        "multiple-choice questions of which every rotation was answered",
        f"paper, section 3.1 (Circular Strategy), Tables 2 and 3; {EVALUATE_MCQ}",
        "cross shows the two pictures of a pair side by side, single the manipulated one.",
    ),
    MetricCard(
        "vanilla.<cross_low|cross_high|single>",
        "right answers / questions, each asked once with its options in their own order",
        "multiple-choice questions",
        f"paper, Tables 2 and 3 (VanillaEval); {EVALUATE_MCQ}",
        "Of the single run; where only rotations were asked (--setting mcq=circular), of rotation 1.",
    ),
    MetricCard(
        "first_rotation.<cross_low|cross_high|single>",
        "right answers to rotation 1 / questions",
        "multiple-choice questions",
        "ours: where a single run and rotations are both there (--setting mcq=both), as their wording differs",
    ),
    MetricCard(
        "pAcc.<category>",
        "questions answered right on both pictures of their pair / questions, of the pairs of one category",
        "yes/no questions of the category",
        "paper, appendix B, Table 5; the categories B1 to S2 follow from the number of the pair",
    ),
)
