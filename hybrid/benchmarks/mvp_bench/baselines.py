"""Results that the MVP-Bench paper reports, and the commands that repeat them (`hybrid benchmarks show mvp_bench`)."""

from __future__ import annotations

from hybrid.benchmarks.card import Baseline

RUN = "hybrid run mvp_bench --data DIR --model openai:gpt-4o --solver mllm --protocol official --image-labels off"

BASELINES = (
    Baseline("LVLMs, CircularEval", "Tables 2, 3 and 5", f"{RUN} --setting mcq=circular"),
    Baseline("LVLMs, VanillaEval", "Table 2", f"{RUN} --setting mcq=vanilla"),
    Baseline(
        "+ VC, visual commonsense",
        "Table 4",
        f"{RUN} --task yes_no --setting commonsense=on",
        "the sentence in our own words",
    ),
)
