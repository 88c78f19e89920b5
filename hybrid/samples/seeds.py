"""Random generators by purpose, so that nothing is measured on a scene to which something was fitted.

`generator("evaluate", 1000, 7)` is scene 7 of seed 1000 of a bench; `generator("fit", 1000, 7)` is another scene.

`np.random.default_rng([seed, index])` is unsuitable: it pads its key with zeros, so `default_rng(1000)`,
`default_rng([1000, 0])` and `default_rng([1000, 0, 0])` are one stream, and a script that fits constants on seed 1000
uses the first scene of a bench that measures with seed 1000. The scheme:

- "sample" is for the data of `--data sample`. Its key contains the task's name and ends with the part being drawn; the
  stream is that of `default_rng(key)`, so that generated data stay unchanged.
- "fit" is for constants and weights set by a script, "train" for networks and their training questions, "evaluate" for
  the scenes that a bench draws itself. Their streams are seeded with a SHA-256 over the purpose, the length of the key
  and the key: two streams are equal only if purpose and key are equal, and no stream equals that of a sample.

A bench that measures on generated questions uses samples, with any seed: no fit has seen them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Purpose = Literal["sample", "evaluate", "fit", "train"]


def generator(purpose: Purpose, *key: int) -> np.random.Generator:
    """Return the generator for a purpose and a key of non-negative integers.

    Raises:
        ValueError: the key is empty or contains a negative number, or a sample's key has fewer than three numbers.
            (NumPy pads short keys with zeros, so different keys could give one generator.)
    """
    import numpy as np

    if not key or min(key) < 0:
        raise ValueError(f"a seed's key needs numbers of at least 0, not {key}")
    if purpose == "sample":
        if len(key) < 3:
            raise ValueError(f"a sample's key must contain seed, task and number, not only {key}")
        return np.random.default_rng(list(key))
    text = "/".join(["hybrid", purpose, str(len(key)), *map(str, key)])
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))
