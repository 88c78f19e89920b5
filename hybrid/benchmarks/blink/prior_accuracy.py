"""How often MLLMs are right on BLINK's tasks: means of rows of its Table 1, by task.

Relative_Reflectance has none: its labels were corrected since (`corrected.toml`).
The rows are of the test split, none of whose items is in the validation split. They stand in `published.csv`, and a
test holds the means here to them.
"""

from __future__ import annotations

from typing import Final

from hybrid.answers.prior_accuracy import PriorAccuracy

MODELS: Final = ("GPT-4V", "GPT-4 Turbo", "GPT-4o", "Gemini Pro", "Claude 3 OPUS")
"""The models of the table that are asked through an API; the others take one image or are of 2023."""
PRIOR_ACCURACY: Final = PriorAccuracy(
    {
        "Art_Style": 0.7060,
        "Counting": 0.5750,
        "Forensic_Detection": 0.4735,
        "Functional_Correspondence": 0.3139,
        "IQ_Test": 0.2680,
        "Jigsaw": 0.5467,
        "Multi-view_Reasoning": 0.5376,
        "Object_Localization": 0.4960,
        "Relative_Depth": 0.5952,
        "Semantic_Correspondence": 0.2428,
        "Spatial_Relation": 0.6835,
        "Visual_Correspondence": 0.3527,
        "Visual_Similarity": 0.7162,
    }
)
"""Mean test accuracy of `MODELS`, those cells that are printed. Fu et al., ECCV 2024, arXiv:2404.12390, Table 1."""
