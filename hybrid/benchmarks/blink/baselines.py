"""Results that the BLINK paper reports, and the commands that repeat them (`hybrid benchmarks show blink`)."""

from __future__ import annotations

from hybrid.benchmarks.card import Baseline

RUN = "hybrid run blink --data DIR --model openai:gpt-4o"
PURE = f"{RUN} --solver mllm --protocol official --image-labels off"
STUDIED = "--task Relative_Depth --task Relative_Reflectance --task Visual_Correspondence"

BASELINES = (
    Baseline("Random Choice", "Table 1", "hybrid run blink --data DIR --solver chance"),
    Baseline(
        "Multimodal LLMs",
        "Tables 1 and 4",
        f"{PURE} --image-detail low --max-tokens 1024",
        "replies that no rule reads are not put to GPT-3.5; `hybrid judge` puts them to a model",
    ),
    Baseline(
        "Caption + LLM",
        "section 4.3, Figure 6",
        f"{RUN} --solver caption --image-labels off --setting caption-model=openai:gpt-4o",
        "the paper's captions are GPT-4V's and its blind model is GPT-4-0125-preview; the words it asked for captions "
        "with are not printed, so ours are our own",
    ),
    Baseline(
        "Different visual prompts",
        "section 4.3, Figure 7",
        f"{PURE} {STUDIED} --setting marks=radius:10,color:red,height:1024",
        "the paper drew on pictures without marks, 100 of each task; here the released marks are taken off, filled in "
        "and drawn again: what an old mark hid is lost, and letters keep their size relative to the picture",
    ),
    Baseline("Specialist models", "Table 2", "hybrid run blink --data DIR --solver specialist", "our specialists"),
    Baseline("Concatenated images", "appendix, Table 5", f"{PURE} --images concat"),
    Baseline(
        "Self-consistency",
        "appendix C.4",
        f"{PURE} --setting samples=5 --model-arg temperature=1.0",
    ),
)
