"""Results that the HVSBench paper reports, and the commands that repeat them (`hybrid benchmarks show hvsbench`)."""

from __future__ import annotations

from hybrid.benchmarks.card import Baseline

RUN = "hybrid run hvsbench --data DIR --model openai:gpt-4o --solver mllm"
BESIDE = (
    "the paper prints neither the words around the text nor its place; here it stands after the image behind one fixed "
    "line, and FILE is the user's own, as the data set does not carry these texts"
)

BASELINES = (
    Baseline("Random guess", "Table 3", "hybrid run hvsbench --data DIR --solver chance", "drawn uniformly"),
    Baseline("MLLMs", "Tables 3 and 4", f"{RUN} --protocol official"),
    Baseline("Detail.: detailed descriptions", "Table 5", f"{RUN} --setting context=FILE.jsonl", BESIDE),
    Baseline(
        "Cap.: human captions",
        "Table 5",
        f"{RUN} --setting context=FILE.jsonl --setting context-missing=without",
        BESIDE,
    ),
    Baseline("Field-specific hints", "Table 6", f"{RUN} --setting hints=on", "the hints in our own words"),
)
