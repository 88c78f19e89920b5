"""Model and tools share one scale: a box from a tool output that the model passes to crop is the same box, in every
frame."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.controller import Controller
from hybrid.config import ServiceOptions
from hybrid.core.coordinates import Place, at, length, span_px, unmarked
from hybrid.core.errors import ToolError
from hybrid.core.images import ImageStore
from hybrid.core.types import Box, ImageRef, Kind, Prompt, Reply, StoredImage
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.solving.controls import ToolCondition
from hybrid.solving.coordinates import FRAMES, CoordinateSystem
from hybrid.solving.evidence import origin
from hybrid.solving.images import ImageRegistry
from hybrid.solving.session import Session
from hybrid.solving.solver import SolverContext
from hybrid.tool import Tool
from tests import fakes

SIZES = ((4032, 3024), (3024, 4032), (300, 4000), (64, 64), (231, 173))
SYSTEMS = [CoordinateSystem(name, most) for name, most in itertools.product(FRAMES, (None, 40_000, 1_000_000))]


def ref(size: tuple[int, int], name: str = "img:1", **more: Any) -> ImageRef:
    return ImageRef(name, StoredImage("0" * 64, *size, "image/png"), **more)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def copy_box(frame: CoordinateSystem, image: ImageRef, message: str) -> Any:
    """Return the box of a text `x A-B, y C-D` in pixels, as a call with these numbers would have it."""
    x0, x1, y0, y1 = numbers(message.replace("-", " "))
    args = {"box": {"x0": x0, "y0": y0, "x1": x1, "y1": y1}}
    return frame.to_pixels(args, ImageRegistry([image]), [image.name])["box"]


@pytest.mark.parametrize("frame", SYSTEMS, ids=str)
@settings(max_examples=12, deadline=None)
@given(st.sampled_from(SIZES), st.data())
def test_a_box_of_a_finding_comes_back_to_the_pixel(frame: CoordinateSystem, size: tuple[int, int], data: Any) -> None:
    (x0, x1), (y0, y1) = (
        sorted(data.draw(st.lists(st.integers(0, side), min_size=2, max_size=2, unique=True))) for side in size
    )
    box, image = Box(x0, y0, x1, y1), ref(size)
    text = frame.say(*unmarked(span_px(box)), [image])
    assert copy_box(frame, image, text) == {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
    assert text.endswith(" px") is (frame.name == "pixels")
    # The region of a crop and a box inside the crop are also converted back to the same pixels.
    scale = data.draw(st.sampled_from((0.5, 1.0, 3.7)))
    crop = ref((max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale))), "img:1.1", parent="img:1", box=box)
    first, second = re.findall(r"\(([^)]*)\)", origin(crop, image, frame))
    x0_said, y0_said, x1_said, y1_said = numbers(first + " " + second)
    assert copy_box(frame, image, f"{x0_said} {x1_said} {y0_said} {y1_said}") == {
        "x0": x0,
        "y0": y0,
        "x1": x1,
        "y1": y1,
    }
    inner = Box(0, 0, crop.image.width, crop.image.height)
    text = frame.say(*unmarked(span_px(inner, -1)), [image], [crop])
    assert copy_box(frame, crop, text) == {"x0": 0, "y0": 0, "x1": inner.x1, "y1": inner.y1}


def test_marks_leave_no_trace_and_cost_no_length() -> None:
    text = f"cat at {span_px(Box(1, 2, 3, 4))}, rows {at('height', 12.0)} px apart"
    plain, places = unmarked(text)
    assert plain == "cat at x 1-3, y 2-4 px, rows 12 px apart"
    assert length(text) == len(plain)
    assert [plain[place.start : place.end] for place in places] == ["1", "3", "2", "4", " px", "12"]
    assert CoordinateSystem().say(plain, places, [ref((9, 9))]) == plain
    # Numbers of an image that the call does not have stay as they are.
    assert CoordinateSystem("fractions").say("7", (Place(0, 1, "x", 3),), [ref((9, 9))]) == "7"
    assert unmarked("a \ue000 of a text that a picture shows \ue001") == (
        "a \ue000 of a text that a picture shows \ue001",
        (),
    )


async def call_tool(
    frame: CoordinateSystem, store: ImageStore, image: ImageRef, args: dict[str, Any], *tools: Tool
) -> Any:
    """Call a tool, crop by default, with a model's arguments; return what the solver gets, and the step of the
    trace."""
    service = CachedTools(store, FindingCache(None, store), ServiceOptions("classical", threads=1))
    got: list[Any] = []
    name = tools[0].card.name if tools else "crop"

    class Solver(Controller):
        async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
            images = [ref.name for ref in prompt.images]
            try:
                got.append(await ctx.tool(name, images, frame.to_pixels(args, ctx.image_registry, images)))
            except ToolError as error:
                got.append(error)
            return Reply("")

    shared = fakes.resources(fakes.QueueModel([]), ToolCondition(service), tools, frame=frame)
    reply = await Session(fakes.question("q"), Solver(), shared).ask(Prompt(("Which?", image), Kind.FREE))
    service.close()
    return got[0], reply.steps[0]


@pytest.mark.parametrize(
    "frame", [CoordinateSystem("thousandths", 40_000), CoordinateSystem("pixels", 40_000)], ids=str
)
async def test_the_trace_keeps_both_and_an_error_says_what_the_model_wrote(
    frame: CoordinateSystem, tmp_path: Path
) -> None:
    store = ImageStore(tmp_path)
    image = ImageRef("img:1", store.put_pixels(np.zeros((600, 800, 3), np.uint8)))
    finding, step = await call_tool(frame, store, image, {"box": {"x0": 100.0, "y0": 40.0, "x1": 130.0, "y1": 90.0}})
    # The crop is widened to whole pixels of the original.
    assert numbers(finding.text)[1:5] == pytest.approx([100.0, 130.0, 40.0, 90.0], abs=1.25)
    assert (step.data["shown"], step.text != finding.text) == (finding.text, True)
    (crop,) = finding.images
    assert crop.box == Box(*(step.data["data"]["crops"][0]["box_px"]))
    error, step = await call_tool(frame, store, image, {"box": {"x0": 5100.0, "y0": 40.0, "x1": 5130.0, "y1": 90.0}})
    assert numbers(str(error))[1:5] == pytest.approx([5100, 40, 5130, 90], abs=0.02)
    assert str(error).endswith("230 x 173 px")
    assert step.text.endswith("800 x 600 px")


@pytest.mark.parametrize("frame", SYSTEMS, ids=str)
async def test_a_text_from_outside_says_in_which_pixels_it_speaks(frame: CoordinateSystem, tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    image = ImageRef("img:1", store.put_pixels(np.zeros((600, 800, 3), np.uint8)))
    finding, _ = await call_tool(frame, store, image, {"number": 7}, fakes.counter(fakes.CountingBackend()))
    first, *more = finding.text.splitlines()
    assert first == "number 7, mean 0.000"
    plain = frame.name == "pixels" and frame.sent_pixels != 40_000
    assert more == ([] if plain else ["(Coordinates in this text are in pixels of img:1 at 800 x 600 px.)"])


def test_no_tool_writes_a_coordinate_that_is_not_marked() -> None:
    """A formatted coordinate or size in a text for a model goes through `hybrid.core.coordinates`."""
    pattern = re.compile(r"\{[^{}]*\b(?:box|mark|spot|s)\.[xy][01]?:[^}]*\}|\{[^{}()]*\} x \{[^{}()]*\} px")
    tools = Path(__file__).parents[3] / "tools"
    sources = [path for path in tools.rglob("*.py") if path.name != "checks.py"]
    assert len(sources) > 60
    assert {path.name: matches for path in sources if (matches := pattern.findall(path.read_text()))} == {}
