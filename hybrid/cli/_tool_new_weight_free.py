"""The files that `hybrid tools new NAME` writes: a weight-free tool, and its test."""

TEMPLATE = '''"""How light an image is, as a whole or in one half: an example to be changed.

`hybrid tools run {name} photo.jpg{path}`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from hybrid.tool import Args, BackendCard, Card, Evidence, KnownAnswer, CheckCase, Request, Tool


class {title}Args(Args):
    """The arguments of a call."""

    side: Literal["all", "left", "right"] = Field("all", description="The whole image, or its left or right half.")


class Classical:
    """The weight-free backend."""

    def setup(self, device: str, weights: str | None) -> None:
        """Nothing to load."""

    def run(self, requests: Sequence[Request[{title}Args]]) -> list[Evidence]:
        """One evidence a request, in order. Raise `ToolError` for a request that cannot be answered."""
        found = []
        for request in requests:
            pixels = request.images[0]
            half = max(1, pixels.shape[1] // 2)
            part = {{"all": pixels, "left": pixels[:, :half], "right": pixels[:, -half:]}}[request.args.side]
            light = float(part.mean()) / 255
            said = f"Mean lightness ({{request.args.side}}): {{light:.2f}} of 1."
            found.append(Evidence(said, {{"lightness_0_1": light}}, confidence=1.0))
        return found


def white_left_half() -> CheckCase:
    """A question whose answer is known."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20] = 255
    return CheckCase((pixels,), {{"side": "left"}}, lambda it: None if it.data["lightness_0_1"] == 1 else "it is white")


TOOL = Tool(
    card=Card(
        name="{name}",
        summary="Says how light an image is, as a whole or in its left or right half.",
        limits="Says nothing about what the image shows.",
        backends=(BackendCard("classical", "1", Classical, "Mean of all channels."),),
    ),
    args={title}Args,
    checks=(KnownAnswer("white left half", white_left_half),),
)
'''

TEST = '''"""`{name}` keeps the contract of all tools, and knows the answers of its own questions: `pytest {file}`."""

{head}
WEIGHTS: dict[str, str] = {{}}
"""By name of a tool the directory or hub id of weights that are not its default ones."""


@pytest.fixture(scope="module")
def backend():
    """The backend that answers: the learned one where its weights are on disk, else the weight-free one."""
    try:
        return Loader(BackendChoice(weights=WEIGHTS, unchecked=True)).load(load("tools", "{name}")).backend
    except NoBackend as error:
        pytest.skip(str(error))


def test_it_keeps_the_contract(backend) -> None:
    assert breaches("{name}", load("tools", "{name}"), ServiceOptions(weights=WEIGHTS, unchecked=True)) == ()


def test_it_knows_its_own_answers(backend) -> None:
    tool = load("tools", "{name}")
    if not tool.checks:
        pytest.skip("it has no images with known answers yet: `checks` of its TOOL")
    assert failures(run_checks(tool, backend)) == []
'''
IMPORTS = """from hybrid.serving.contract import breaches
from hybrid.serving.known_answers import failures, run_checks
from hybrid.config import BackendChoice, ServiceOptions
from hybrid.serving.loader import Loader
"""
INSIDE = f"""import pytest

from hybrid.errors import NoBackend
from hybrid.registry import load
{IMPORTS}"""
BESIDE = f"""from pathlib import Path

import pytest

from hybrid.errors import NoBackend
from hybrid.registry import load, look_also_in
{IMPORTS}
look_also_in([Path(__file__).parent], __file__)
"""
