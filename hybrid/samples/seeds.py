"""Random generators by purpose, so that nothing is measured on a scene that something was fitted to.

`generator("evaluate", 1000, 7)` is scene 7 of seed 1000 of a bench; `generator("fit", 1000, 7)` is another one.

Why not `np.random.default_rng([seed, index])`: it pads its key with zeros, so that `default_rng(1000)`,
`default_rng([1000, 0])` and `default_rng([1000, 0, 0])` are one stream, and a script that fits constants on seed 1000
meets the first scene of a bench that measures with seed 1000. The scheme:

- "sample" is what `--data sample` shows. Its key holds the name of the task and, in the end, what is drawn; the stream
  is that of `default_rng(key)`, so that generated data stay what they were.
- "fit" is for constants and weights that are set by a script, "train" for networks and the questions that they learn
  from, "evaluate" for what a bench draws itself. Their streams are seeded with a SHA-256 over the purpose, the length
  of the key and the key: two of them are equal only when purpose and key are, and none is one of a sample.

A bench that measures on generated questions takes samples, with any seed: no fit has seen one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Purpose = Literal["sample", "evaluate", "fit", "train"]


def generator(purpose: Purpose, *key: int) -> np.random.Generator:
    """The generator of a purpose and a key of whole numbers, of which none is negative.

    Raises:
        ValueError: no key, a negative number in it, or a sample whose key ends where zeros would go on.
    """
    import numpy as np

    if not key or min(key) < 0:
        raise ValueError(f"a seed's key needs numbers from 0 on, not {key}")
    if purpose == "sample":
        if len(key) < 3:
            raise ValueError(f"a sample's key names seed, task and number, not {key} alone")
        return np.random.default_rng(list(key))
    text = "/".join(["hybrid", purpose, str(len(key)), *map(str, key)])
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))
