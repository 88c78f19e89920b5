"""`path=` and tools as objects in each Python function that takes names of tools."""

from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.core.errors import UsageError
from hybrid.integrations.langchain import langchain_tools
from hybrid.integrations.pictures import Folder
from hybrid.integrations.toolbox import Toolbox
from hybrid.tool import Image, ToolOutput, tool

pytestmark = pytest.mark.usefixtures("tools_as_they_were")

GLOW = '''
from hybrid.tool import Image, ToolOutput, tool


@tool(limits="A dark subject on white looks bright.")
def glow(image: Image) -> ToolOutput:
    """Says how bright an image is as a whole."""
    return ToolOutput("bright", light_0_1=image.mean() / 255)


@glow.rule("daylight")
def by_day(output, prompt):
    return "day" if output.light_0_1 > 0.5 else "night"
'''


@tool(limits="Says nothing about what the image shows.")
def middle(image: Image) -> ToolOutput:
    """Returns the grey level in the middle of an image."""
    return ToolOutput("grey", light_0_1=image[4, 4].mean() / 255)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools, `mine`, next to a white picture and a question about it."""
    from PIL import Image as Pillow

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "glow.py").write_text(GLOW)
    Pillow.fromarray(np.full((8, 8, 3), 255, np.uint8)).save(tmp_path / "white.png")
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "1", "image": "white.png", "question": "Which is it?", "choices": ["day", "night"], "answer": "day", '
        '"task": "daylight"}\n'
    )
    return tmp_path


async def test_an_mcp_server_and_langchain_take_names_of_a_folder_and_objects(place: Path) -> None:
    memory = pytest.importorskip("mcp.shared.memory", reason="the extra `mcp` is not installed")
    from hybrid.integrations.mcp.server import mcp_server

    toolbox = Toolbox.of(["glow", middle, "crop"], folder=Folder(place), path="mine")
    async with memory.create_connected_server_and_client_session(mcp_server(toolbox)) as session:
        assert [entry.name for entry in (await session.list_tools()).tools] == ["glow", "middle", "crop"]
        for name in ("glow", "middle"):
            result = await session.call_tool(name, {"image": "white.png"})
            assert result.structuredContent is not None
            assert result.structuredContent["data"] == {"light_0_1": 1.0}
    toolbox.close()
    assert [entry.name for entry in langchain_tools(["glow", middle], path=place / "mine")] == ["glow", "middle"]
    assert hybrid.tool("glow", path=[place / "mine"]).run(place / "white.png").data == {"light_0_1": 1.0}


def test_a_run_and_its_scores_take_them_too(place: Path) -> None:
    report = hybrid.run("questions.jsonl", solvers=["specialist"], tools=["glow", middle], path="mine", out="run")
    assert report.as_json()["solvers"]["specialist"]["metrics"]["accuracy"] == 1.0
    assert "1.000" in str(hybrid.score("run", path="mine"))
    assert "1.000" in str(hybrid.compare("run", path=["mine"]))
    clash = tool(limits="Says nothing about what the image shows.", name="glow")(middle.source)
    with pytest.raises(UsageError, match="write 'glow' to use that one, or give this object another name"):
        hybrid.run("questions.jsonl", solvers=["specialist"], tools=[clash], path="mine", out="other")


@pytest.mark.parametrize("function", [hybrid.score, hybrid.compare, hybrid.table])
def test_a_folder_that_is_not_there_is_named(function: object, place: Path) -> None:
    with pytest.raises(UsageError, match="path= absent: folder not found"):
        function("run", path="absent")  # type: ignore[operator]
