"""A tool runs on many pictures from Python: in order, lazily, with failures reported; all pictures of an output are
saved.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import hybrid
from hybrid.core.errors import ToolError, UsageError
from hybrid.integrations.langchain import langchain_tools
from hybrid.tool import Image, ToolOutput, tool
from tests.finished_runs import Command


@tool(limits="Says nothing about what the image shows.")
def light(image: Image, least: float = 0.0) -> ToolOutput:
    """Returns the mean lightness of an image."""
    mean = image.mean()
    if mean == 7:
        raise ToolError("seven is refused")
    if mean == 9:
        raise ZeroDivisionError("nine is a defect")
    return ToolOutput(f"Lightness {mean:.0f}.", mean_grey=mean, light=bool(mean > least))


@tool(limits="Says nothing about what the images show.")
def both(first: Image, second: Image) -> ToolOutput:
    """Returns the difference of two images."""
    return ToolOutput("Difference.", difference_grey=first.mean() - second.mean())


def grey(level: int) -> Any:
    return np.full((4, 4, 3), level, np.uint8)


def test_outputs_and_failures_come_in_the_order_of_the_pictures() -> None:
    levels = [3, 7, 1, 9, 2, *range(20, 60)]
    outputs = list(hybrid.tool(light).map([*map(grey, levels), "absent.png"], batch=4, progress=False, least=2.0))
    assert [output.data["mean_grey"] for output in outputs if output] == [3, 1, 2, *range(20, 60)]
    assert [output.data["light"] for output in outputs[:3] if output] == [True, False]
    failed = [str(output) for output in outputs if not output]
    assert [line.split(":")[0] for line in failed] == ["picture 1", "picture 3", "picture 45"]
    assert "seven is refused" in failed[0]
    assert "nine is a defect" in failed[1]
    assert "absent.png" in failed[2]


def test_pictures_are_read_as_they_are_needed() -> None:
    results = []

    def pictures() -> Iterator[Any]:
        for level in range(1000):
            results.append(level)
            yield grey(level % 5)

    outputs = hybrid.tool(light).map(pictures(), batch=3, progress=False)
    next(outputs)
    assert len(results) == 6
    outputs.close()  # type: ignore[attr-defined]


def test_a_call_may_take_several_pictures() -> None:
    (output,) = hybrid.tool(both).map([(grey(5), grey(3))], progress=False)
    assert output.data == {"difference_grey": 2.0}


def test_wrong_arguments_are_refused_before_a_picture_is_read() -> None:
    with pytest.raises(ToolError, match="least"):
        hybrid.tool(light).map([grey(1)], least="much")
    with pytest.raises(UsageError, match="batch=0: must be at least 1"):
        hybrid.tool(light).map([grey(1)], batch=0)
    with pytest.raises(UsageError, match="weights=DIR: light has no learned backend"):
        hybrid.tool(light).run(grey(1), weights="DIR")


TWO = '''
from hybrid.tool import Image, ToolOutput, tool


@tool(limits="Says nothing about what the image shows.")
def two(image: Image) -> ToolOutput:
    """Draws two pictures of an image."""
    return ToolOutput("Two.", pictures=[255 - image, image // 2])
'''


@pytest.mark.system
def test_every_picture_is_saved(tmp_path: Path, command: Command, tools_as_they_were: None) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "two.py").write_text(TWO)
    Pillow.fromarray(grey(100)).save(tmp_path / "photo.png")
    target = tmp_path / "out.png"
    words = ("tools", "run", "two", tmp_path / "photo.png", "--picture", target, "--path", tmp_path / "tools")
    result = command(*words, code=0)
    assert f"wrote {target}" in result.err
    assert f"wrote {tmp_path / 'out-2.png'}" in result.err
    values = [np.asarray(Pillow.open(tmp_path / name)).max() for name in ("out.png", "out-2.png")]
    assert values == [155, 50]


DARK = TWO.replace("two", "dark")


def test_langchain_takes_tools_of_ones_own_as_objects_and_from_a_folder(
    tmp_path: Path, tools_as_they_were: None
) -> None:
    (tmp_path / "dark.py").write_text(DARK)
    served = langchain_tools([light, "dark"], path=tmp_path)
    assert [item.name for item in served] == ["light", "dark"]
    call = {"type": "tool_call", "id": "1", "name": "light", "args": {"image": grey(255)}}
    assert served[0].invoke(call).artifact["data"] == {"mean_grey": 255.0, "light": True}
    with pytest.raises(UsageError, match="two tools 'light'"):
        langchain_tools([light, tool(limits="x")(light.source)])
    with pytest.raises(UsageError, match="path=DIR adds your own"):
        langchain_tools(["depht"])
