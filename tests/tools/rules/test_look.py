"""The rules over surfaces and likeness: the choice's words decide, not its letter; what does not decide abstains."""

from collections.abc import Mapping
from typing import Any

import pytest

from hybrid.types import Finding, ImageRef, Json, Kind, Prompt, StoredImage
from tools.rules import ask_specialists as ask_rules

PLACES = ("the second image", "the third image")
DARKER = ("A is darker", "B is darker", "About the same")


def prompt(route: str, choices: tuple[str, ...], images: int) -> Prompt:
    refs = [ImageRef(f"img:{n}", StoredImage("0" * 64, 8, 8, "image/png")) for n in range(1, images + 1)]
    return Prompt(("Which?", *refs), Kind.CHOICE, choices, route=route)


def finding(data: Mapping[str, Json]) -> Finding:
    return Finding("", data, 0.7, "classical", "1")


@pytest.mark.parametrize("choices", [PLACES, PLACES[::-1]])
@pytest.mark.parametrize(("route", "aspect"), [("Visual_Similarity", "content"), ("Art_Style", "style")])
@pytest.mark.parametrize("best", [0, 1, None, True, 9])
async def test_the_closest_image(choices: tuple[str, ...], route: str, aspect: str, best: Any, fakes: Any):
    asked = prompt(route, choices, 3)
    ctx = fakes.context_of(asked, findings=[finding({"best": best})])
    said = await ask_rules(asked, ctx)
    assert ctx.tool.calls == [("similarity", ("img:1", "img:2", "img:3"), {"aspect": aspect})]
    if best in (0, 1) and best is not True:
        assert said is not None
        assert choices[said.choice] == PLACES[best]
    else:
        assert said is None


@pytest.mark.parametrize("choices", [DARKER, DARKER[::-1]])
@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"darker": "A", "same": False}, "A is darker"),
        ({"darker": "B", "same": False}, "B is darker"),
        ({"darker": None, "same": True}, "About the same"),
        ({"darker": None, "same": False}, None),
        ({"darker": "C", "same": False}, None),
        ({}, None),
    ],
)
async def test_the_darker_surface(choices: tuple[str, ...], data: dict[str, Json], wanted: str | None, fakes: Any):
    asked = prompt("Relative_Reflectance", choices, 1)
    ctx = fakes.context_of(asked, findings=[finding(data)])
    said = await ask_rules(asked, ctx)
    name, images, args = ctx.tool.calls[0]
    assert (name, images, set(args["labels"])) == ("reflectance", ("img:1",), {"A", "B"})
    assert (None if said is None else choices[said.choice]) == wanted
