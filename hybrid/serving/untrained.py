"""Was a network ever trained? What its initialiser left behind gives it away, whatever the seed and the initialiser.

`untrained(module)` says what was never trained, or None. Two signs are looked for, in the whole and in its parts:

- *Matrices.* Every initialiser in use draws the entries of a weight matrix independently, or makes its rows orthogonal.
  So all rows have the same mean square as far as chance goes, all columns too, and no singular value stands out of the
  bulk of Marchenko and Pastur (1967). Training breaks all three within the first steps (Martin and Mahoney 2021,
  "Implicit self-regularization in deep neural networks", section 3; Thamm, Staats and Rosenow 2022): one matrix may
  look random still, hence only a part is refused of whose matrices nine in ten do.
- *Normalisation.* Layers of normalisation begin as weight 1 and bias 0, exactly, and optimisers move both. It counts
  for a network as a whole only: single layers that nothing reads stay as they were in published checkpoints.

Nothing is concluded from what is not there: networks without normalisation, without its affine part or with few
matrices large enough are judged by the rest. Biases of zero are no sign: converted checkpoints carry them where the
original had no bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

LEAST_SIDE = 8
LEAST_ENTRIES = 512
"""Of a matrix that is looked at: below it chance covers what training did."""
LEAST_MATRICES = 4
"""In what is judged, the whole or a part: trained heads of two or three small matrices may look drawn by chance."""
MOSTLY = 0.9
"""Of its matrices, how many must look drawn; in published weights of four matchers it is at most 0.2."""
LEAST_NORMS = 4
DEPTH = 2
"""Of parts: `encoder`, `vision_model.encoder`; a layer of an encoder is no part."""
LARGEST_SIDE = 256
"""Rows and columns of a larger matrix that are looked at, evenly spread."""
DEVIATIONS = 5.0
"""How many standard deviations chance is given: with a thousand matrices it is beyond three once."""


def untrained(module: Any) -> str | None:
    """What was never trained of a torch module: the whole or the names of its parts; None where nothing tells.

    Args:
        module: a network whose weights were loaded from a file.
    """
    drawn = {name: _looks_drawn(matrix) for name, matrix in _matrices(module)}
    if _mostly(list(drawn.values())):
        return f"never trained: {sum(drawn.values())} of {len(drawn)} weight matrices are as an initialiser draws them"
    norms = list(_norms(module))
    if len(norms) >= LEAST_NORMS and all(norms):
        return f"never trained: all {len(norms)} layers of normalisation have weight 1 and bias 0"
    parts = [part for part in _parts(drawn) if _mostly(_of(part, drawn))]
    outer = [part for part in parts if not any(part.startswith(f"{other}.") for other in parts)]
    if not outer:
        return None
    return f"never trained: the weight matrices of {', '.join(outer[:3])} are as an initialiser draws them"


def _mostly(drawn: Sequence[bool]) -> bool:
    return len(drawn) >= LEAST_MATRICES and sum(drawn) >= MOSTLY * len(drawn)


def _matrices(module: Any) -> Iterator[tuple[str, Matrix]]:
    """Weights (out, in) of linear layers and convolutions by name; tables that are looked up in are none."""
    for name, one in module.named_modules():
        if type(one).__name__.endswith("Embedding"):
            continue
        for own, values in one.named_parameters(recurse=False):
            if own.endswith("weight") and values.ndim >= 2:
                matrix = values.detach().reshape(values.shape[0], -1)
                steps = [max(1, -(-side // LARGEST_SIDE)) for side in matrix.shape]
                reduced = np.asarray(matrix[:: steps[0], :: steps[1]].float().cpu().numpy(), np.float64)
                if min(reduced.shape) >= LEAST_SIDE and reduced.size >= LEAST_ENTRIES and reduced.std() > 0:
                    yield f"{name}.{own}", reduced


def _looks_drawn(matrix: Matrix) -> bool:
    """Whether nothing tells a matrix from independent draws, or from rows that were made orthogonal."""
    spread = matrix.std()
    values = matrix / spread
    tail = float((values**4).mean())
    for axis in (0, 1):
        means = (values**2).mean(axis=axis)
        # Of a mean of squares over n draws: (kurtosis - 1) / n; its own relative error over m means: sqrt(2 / m).
        expected = max(tail - 1, 1e-3) / matrix.shape[axis]
        if means.var() / expected > 1 + DEVIATIONS * np.sqrt(2 / len(means)):
            return False
    rows, columns = matrix.shape
    edge = np.sqrt(rows) + np.sqrt(columns)
    # The largest singular value of draws leaves the edge by about min(m, n) ** (-2/3) of it (Johnstone 2001).
    return float(np.linalg.norm(values, 2)) <= edge * (1 + DEVIATIONS / 2 * min(rows, columns) ** (-2 / 3))


def _norms(module: Any) -> Iterator[bool]:
    """For each layer of normalisation with an affine part whether it is as it began."""
    for one in module.modules():
        weight = getattr(one, "weight", None)
        if "Norm" not in type(one).__name__ or weight is None or getattr(weight, "ndim", 0) != 1:
            continue
        bias = getattr(one, "bias", None)
        yield bool((weight == 1).all()) and (bias is None or bool((bias == 0).all()))


def _parts(drawn: Mapping[str, bool]) -> list[str]:
    """The names of the parts that hold matrices, outer ones first."""
    found = {".".join(name.split(".")[:depth]) for name in drawn for depth in range(1, DEPTH + 1)}
    return sorted(found - drawn.keys(), key=lambda part: (part.count("."), part))


def _of(part: str, drawn: Mapping[str, bool]) -> list[bool]:
    return [one for name, one in drawn.items() if name.startswith(f"{part}.")]
