"""Results that the MM-SAP paper reports, and the commands that repeat them (`hybrid benchmarks show mm_sap`)."""

from __future__ import annotations

from hybrid.benchmarks.card import Baseline

RUN = "hybrid run mm_sap --data DIR --model openai:gpt-4o --solver mllm --protocol official"

BASELINES = (
    Baseline("MLLMs, five orders of the options", "Tables 1, 2 and 4", f"{RUN} --setting shuffles=5"),
    Baseline(
        "With the refusal prompt",
        "Table 3",
        f"{RUN} --setting shuffles=5 --setting refusal_prompt=on",
        "the instruction in our own words",
    ),
)
