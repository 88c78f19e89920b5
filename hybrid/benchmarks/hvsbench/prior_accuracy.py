"""How often MLLMs are right on HVSBench's question types: means of the columns of its Table 3.

The cells stand in `published.csv`, and a test holds the means here to them. Lin et al., 2024, arXiv:2412.09603.
"""

from __future__ import annotations

from typing import Final

from hybrid.answers.prior_accuracy import PriorAccuracy

PRIOR_ACCURACY: Final = PriorAccuracy(
    accuracy={
        "Q1": 0.2981,
        "Q2": 0.3813,
        **dict.fromkeys(("Q3", "Q4", "Q5", "Q6", "Q7"), 0.3154),
        **dict.fromkeys(("Q8", "Q10"), 0.3307),
        "Q9": 0.5324,
        **dict.fromkeys(("Q11", "Q13"), 0.3418),
        "Q12": 0.5120,
    },
    guessed={"Q9": 0.6079, "Q12": 0.5425},
)
"""Mean of the MLLMs in the column for a type: accuracy of its field, of scanpaths (Q9, Q12) M-Dir.

A guess at a scanpath is one of a person on another image: "Random guess" of the same table."""
