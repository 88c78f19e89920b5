"""Do known answers refuse a network that was never trained? A DINOv2-S of random weights, seed by seed.

    python -m bench.random_weights                                   ten seeds, the four tools that read DINO
    python -m bench.random_weights --seeds 2 --tools similarity --json random.json

Normalisation, layer scale and biases are moved away from where an initialiser puts them, so that only matrices are as
drawn. Of each tool the row says how many questions of its series it still gets right by what pictures it is given
alone. Minutes a seed on a CPU.
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
# Standard deviation of the logarithm of scales, and three times that of biases.
MOVED = 0.3


@dataclass(frozen=True)
class Outcome:
    """The outcome of the checks of a tool on one random network."""

    tool: str
    seed: int
    right: int
    asked: int
    # Of the tool's series: right answers, questions, and how many right ones are wanted.
    least: int


def random_network(seed: int, folder: Path) -> None:
    """Write a DINOv2-S of random weights, its normalisation and biases moved, with DINOv2's own processor."""
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
    """Put all checks of a tool to the weights."""
    learned = tool.backend("learned")
    if learned is None:
        raise SystemExit(f"{tool.card.name} has no learned backend")
    backend: Any = learned.make()
    backend.setup("cpu", str(weights))
    outcomes = run_checks(tool, backend)
    own = [one for one in outcomes if one.series is not None]
    least = max((one.series.least for one in own if one.series is not None), default=0)
    return Outcome(tool.card.name, seed, sum(one.wrong is None for one in own), len(own), least)


def table(outcomes: Sequence[Outcome]) -> Table:
    """A row a tool: over all seeds, how often it was refused, and the fewest and most right answers."""
    names = ("tool", "seeds", "right, fewest", "right, most", "wanted", "pass the series")
    columns = (Column(names[0], "left"), *map(Column, names[1:]))
    rows = []
    for tool in dict.fromkeys(one.tool for one in outcomes):
        own = [one for one in outcomes if one.tool == tool]
        right = [one.right for one in own]
        passed = sum(one.right >= one.least for one in own)
        wanted = f"{own[0].least} of {own[0].asked}"
        rows.append((tool, str(len(own)), str(min(right)), str(max(right)), wanted, str(passed)))
    return Table("Random networks put to known answers", columns, tuple(rows), ())


def main(argv: Sequence[str] | None = None) -> None:
    """Make the networks, ask, and print the table."""
    given = options(__doc__, {"--seeds": 10, "--tools...": {"choices": TOOLS, "default": TOOLS}, "--json": Path}, argv)
    outcomes = []
    for seed in range(given.seeds):
        with tempfile.TemporaryDirectory() as place:
            random_network(seed, Path(place))
            outcomes += [outcome(load("tools", name), seed, Path(place)) for name in given.tools]
    print(as_text(table(outcomes)))
    write_json(given.json, outcomes)


if __name__ == "__main__":
    main()
