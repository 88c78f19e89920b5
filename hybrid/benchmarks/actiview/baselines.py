"""Results that the ActiView paper reports, and the commands that repeat them (`hybrid benchmarks show actiview`)."""

from __future__ import annotations

from hybrid.benchmarks.card import Baseline

RUN = "hybrid run actiview --data DIR --model openai:gpt-4o --solver mllm --protocol official"

BASELINES = (
    Baseline("Random Choice", "Table 2", "hybrid run actiview --data DIR --solver chance"),
    Baseline("Full image", "Table 2", f"{RUN} --setting mode=full"),
    Baseline("Single View", "Table 2", f"{RUN} --setting mode=single"),
    Baseline("Zooming", "Table 2", f"{RUN} --setting mode=zoom"),
    Baseline("Shifting-R", "Table 2", f"{RUN} --setting mode=shift --setting start=R"),
    Baseline("Model AVG", "Table 2", f"{RUN} --setting mode=average"),
    Baseline("Mixed", "Table 3", f"{RUN} --setting mode=mixed"),
    Baseline(
        "Text-only, ACC",
        "appendix C, Table 5",
        "hybrid run actiview --data DIR --model openai:gpt-4o --solver text_only --setting mode=commonsense",
        "our own words for the paper's template; None counts as an abstention, which --abstain wrong makes wrong",
    ),
    Baseline(
        "Text-only, ACC(guess)",
        "appendix C, Table 5",
        "hybrid run actiview --data DIR --model openai:gpt-4o --solver text_only --setting mode=guess",
        "our own words for the paper's template",
    ),
    Baseline("ACC_GT", "Table 13", f"{RUN} --setting mode=zoom --setting views=oracle"),
    Baseline("Splits of 9", "Table 14", f"{RUN} --setting mode=zoom --setting splits=9"),
    Baseline("Captions for earlier views", "Table 15", f"{RUN} --setting mode=zoom --setting images=description"),
)
