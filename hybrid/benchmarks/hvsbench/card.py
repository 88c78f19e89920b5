"""The card of HVSBench: sources, settings, expected counts, what tables show."""

from __future__ import annotations

from hybrid.benchmarks.card import NO_CORRECTIONS_FOUND, BenchmarkCard, ImageSource, Setting
from hybrid.benchmarks.hvsbench.baselines import BASELINES
from hybrid.benchmarks.hvsbench.metric_cards import METRICS
from hybrid.benchmarks.hvsbench.prior_accuracy import PRIOR_ACCURACY
from hybrid.benchmarks.hvsbench.question_text import BOX_FORMS

CARD = BenchmarkCard(
    name="hvsbench",
    title="HVSBench: Do Multimodal Large Language Models See Like Humans?",
    citation="Lin et al., 2024, arXiv:2412.09603",
    licence="other (see the hub page; the images keep the licences of their sources)",
    image_sources=(
        ImageSource("SIFR", "appendix A, Prominence, Subitizing, Prioritizing", tuple(f"Q{n}" for n in range(1, 8))),
        ImageSource("SIS10K", "appendix A, Subitizing", ("Q2",)),
        ImageSource("COCO-FreeView", "appendix A, Free-Viewing", ("Q8", "Q9", "Q10")),
        ImageSource("COCO-Search18", "appendix A, Searching", ("Q11", "Q12", "Q13")),
    ),
    hub_id="garrying/HVSBench",
    splits=("test",),
    # Q9 and Q12 are 1,083 rows together; no source gives their shares, so the card expects no number.
    tasks={
        "Q1": 819,
        "Q2": 1886,
        "Q3": 866,
        "Q4": 800,
        "Q5": 124,
        "Q6": 818,
        "Q7": 182,
        "Q8": 808,
        "Q9": 0,
        "Q10": 870,
        "Q11": 185,
        "Q12": 0,
        "Q13": 216,
    },
    settings=(
        Setting(
            "hints",
            "off",
            ("off", "on"),
            "a paragraph of background before the question, by field (Table 6), in our own words",
        ),
        Setting(
            "screen",
            "512x320",
            ("WIDTHxHEIGHT",),
            "the pixels on which scanpaths are compared; direction depends on their shape",
            r"[1-9]\d{0,4}x[1-9]\d{0,4}",
        ),
        Setting(
            "crop_truth",
            "off",
            ("off", "on"),
            "cut human scanpaths to six fixations too; the paper cuts predictions only",
        ),
        Setting(
            "boxes", "xyxy", BOX_FORMS, "what the four numbers of a box in a question mean; tools read it, no MLLM does"
        ),
    ),
    # In the other types boxes or scanpaths of `Given` follow the order of the options, which a rotation would change.
    rotatable=("Q5", "Q6", "Q7"),
    routes_are_tasks=True,
    # Where people look and what stands out; searching and comparing boxes need the things themselves.
    tools_offered=(
        "crop",
        "detection",
        "saliency",
        "scanpath",
        "segmentation",
    ),
    headline=("overall_accuracy", "m_dir.q9", "m_dir.q12"),
    reported=("overall_accuracy", "accuracy.", "mae", "rmse", "m_dir.", "m_pos."),
    sample_tasks=tuple(f"Q{number}" for number in range(1, 14)),
    prior_accuracy=PRIOR_ACCURACY,
    baselines=BASELINES,
    metrics=METRICS,
    unchecked=NO_CORRECTIONS_FOUND,
)
