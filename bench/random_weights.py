"""Test whether known answers reject an untrained network: a DINOv2-S with random weights, seed by seed.

    python -m bench.random_weights                                   ten seeds, the four tools that read DINO
    python -m bench.random_weights --seeds 2 --tools similarity --json random.json

Normalisation, layer scale and biases are shifted away from their initial values, so that only the matrices are random.
The row of each tool shows how many questions of its series it still gets right, from the images alone. Takes minutes
per seed on a CPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._frame import options, write_json
from bench._networks import NETWORKS
from hybrid.display.tables import Column, Table, as_text
from hybrid.plugins.registry import load
from hybrid.serving.known_answers import run_checks
from hybrid.tool import Tool

TOOLS = ("semantic_correspondence", "similarity", "jigsaw", "saliency")
# Standard deviation of the logarithm of scales, and three times the standard deviation of biases.
MOVED = 0.3


@dataclass(frozen=True)
class Outcome:
    """The outcome of a tool's checks on one random network."""

    tool: str
    seed: int
    right: int
    questions: int
    # Number of right answers that the tool's series requires; `right` and `questions` count the same series.
    least: int


def random_network(seed: int, folder: Path) -> None:
    """Write a DINOv2-S with random weights and shifted normalisation and biases, with DINOv2's own processor."""
    import torch
    import transformers

    torch.manual_seed(seed)
    NETWORKS["dinov2_small_attention"].build(folder, real=True)
    model = transformers.Dinov2Model.from_pretrained(folder)
    for name, values in model.named_parameters():
        if name.endswith("bias"):
            values.data.add_(MOVED / 3 * torch.randn(values.shape))
        elif values.ndim == 1:
            values.data.mul_(torch.exp(MOVED * torch.randn(values.shape)))
    model.save_pretrained(folder)


def outcome(tool: Tool, seed: int, weights: Path) -> Outcome:
    """Run all checks of a tool on the weights."""
    learned = tool.backend("learned")
    if learned is None:
        raise SystemExit(f"{tool.card.name} has no learned backend")
    backend: Any = learned.make()
    backend.setup("cpu", str(weights))
    outcomes = run_checks(tool, backend)
    values = [item for item in outcomes if item.series is not None]
    least = max((entry.series.least for entry in values if entry.series is not None), default=0)
    return Outcome(tool.card.name, seed, sum(value.wrong is None for value in values), len(values), least)


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return a row per tool: over all seeds, the fewest and most right answers, and how often the series was passed."""
    names = ("tool", "seeds", "right, fewest", "right, most", "wanted", "pass the series")
    columns = (Column(names[0], "left"), *map(Column, names[1:]))
    rows = []
    for tool in dict.fromkeys(item.tool for item in outcomes):
        values = [entry for entry in outcomes if entry.tool == tool]
        right = [value.right for value in values]
        passed = sum(first_item.right >= first_item.least for first_item in values)
        text = f"{values[0].least} of {values[0].questions}"
        rows.append((tool, str(len(values)), str(min(right)), str(max(right)), text, str(passed)))
    return Table("Random networks put to known answers", columns, tuple(rows), ())


def main(argv: Sequence[str] | None = None) -> None:
    """Make the networks, run the checks, and print the table."""
    flags = options(__doc__, {"--seeds": 10, "--tools...": {"choices": TOOLS, "default": TOOLS}, "--json": Path}, argv)
    outcomes = []
    for seed in range(flags.seeds):
        with tempfile.TemporaryDirectory() as place:
            random_network(seed, Path(place))
            outcomes += [outcome(load("tools", name), seed, Path(place)) for name in flags.tools]
    print(as_text(table(outcomes)))
    write_json(flags.json, outcomes)


if __name__ == "__main__":
    main()
