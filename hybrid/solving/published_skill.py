"""How often MLLMs are right where this one was not measured: means of published rows, by route, and by form of answer.

    usual_skill(prompt)     # 0.595 for a question of BLINK's Relative_Depth
    chance(prompt)          # 0.5 for one of two choices

The rows are of BLINK's test split, none of whose items is in the validation split, and of HVSBench's Table 3. They
stand in `published.csv` of each benchmark, and a test holds the means here to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from hybrid.types import Kind, Prompt

BLINK_MODELS: Final = ("GPT-4V", "GPT-4 Turbo", "GPT-4o", "Gemini Pro", "Claude 3 OPUS")
"""The models of BLINK's Table 1 that are asked through an API; the others take one image or are of 2023."""
BLINK: Final[Mapping[str, float]] = {
    "Art_Style": 0.7060,
    "Counting": 0.5750,
    "Forensic_Detection": 0.4735,
    "Functional_Correspondence": 0.3139,
    "IQ_Test": 0.2680,
    "Jigsaw": 0.5467,
    "Multi-view_Reasoning": 0.5376,
    "Object_Localization": 0.4960,
    "Relative_Depth": 0.5952,
    "Relative_Reflectance": 0.3676,
    "Semantic_Correspondence": 0.2428,
    "Spatial_Relation": 0.6835,
    "Visual_Correspondence": 0.3527,
    "Visual_Similarity": 0.7162,
}
"""Mean test accuracy of `BLINK_MODELS`, those cells that are printed. Fu et al., ECCV 2024, arXiv:2404.12390, Table
1."""
HVSBENCH_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "accuracy.prominence": ("Q1",),
    "accuracy.subitizing": ("Q2",),
    "accuracy.prioritizing": ("Q3", "Q4", "Q5", "Q6", "Q7"),
    "accuracy.free_viewing": ("Q8", "Q10"),
    "m_dir.q9": ("Q9",),
    "accuracy.searching": ("Q11", "Q13"),
    "m_dir.q12": ("Q12",),
}
"""The column of Table 3 that speaks of each question type."""
HVSBENCH: Final[Mapping[str, float]] = {
    "accuracy.prominence": 0.2981,
    "accuracy.subitizing": 0.3813,
    "accuracy.prioritizing": 0.3154,
    "accuracy.free_viewing": 0.3307,
    "m_dir.q9": 0.5324,
    "accuracy.searching": 0.3418,
    "m_dir.q12": 0.5120,
}
"""Mean of the MLLMs of Table 3 by column; scanpaths by M-Dir. Lin et al., 2024, arXiv:2412.09603."""
SKILL: Final[Mapping[str, float]] = {
    **BLINK,
    **{route: HVSBENCH[column] for column, routes in HVSBENCH_FIELDS.items() for route in routes},
}
"""By route."""
ABOVE_CHANCE: Final = 0.184
"""How far between chance and certainty an MLLM stands where no row speaks of the route: (accuracy - chance) / (1 -
chance), mean over the fourteen tasks of `BLINK` with the chance of Table 1."""

GUESSED_PATH: Final[Mapping[str, float]] = {"Q9": 0.6079, "Q12": 0.5425}
"""M-Dir of a blind scanpath, one of a person on another image: "Random Guess" of HVSBench's Table 3."""
OPEN: Final = 0.1
"""Chance of an answer whose options are not told (a number, parts of an image): near zero, and no smaller than what a
guess at a small number comes to."""


def chance(prompt: Prompt) -> float:
    """What a guess is worth: probability 0..1 that it is right, of a scanpath its expected score."""
    number = len(prompt.choices)
    match prompt.kind:
        case Kind.CHOICE:
            return 1 / number if number else OPEN
        case Kind.YES_NO | Kind.CONTINUE:
            return 0.5
        case Kind.ORDER:
            return 1 / math.factorial(number) if number else OPEN
        case Kind.SCANPATH:
            return GUESSED_PATH.get(prompt.route, OPEN)
        case _:
            return OPEN


def usual_skill(prompt: Prompt) -> float:
    """Accuracy, 0..1, that an MLLM is credited with on this prompt without a measurement: of a scanpath its score.

    The published mean of the route, but for an answer that is right or wrong no less than a guess; without a row
    `ABOVE_CHANCE` between chance and certainty.
    """
    guess = chance(prompt)
    published = SKILL.get(prompt.route)
    if published is None:
        return guess + ABOVE_CHANCE * (1 - guess)
    return published if prompt.kind is Kind.SCANPATH else max(guess, published)
