"""`--weights` with and without the name of a tool."""

from pathlib import Path

import pytest

from hybrid.core.errors import UsageError
from hybrid.plugins.registry import load
from hybrid.plugins.weights_option import tools_named, weights_by_tool, weights_from_python


@pytest.mark.parametrize(
    ("values", "tools", "weights"),
    [
        (["DIR"], ["depth"], {"depth": "DIR"}),
        (["depth=DIR"], ["depth"], {"depth": "DIR"}),
        (["DIR"], ["crop", "depth"], {"depth": "DIR"}),
        (["DIR", "ocr=OTHER"], ["depth"], {"depth": "DIR", "ocr": "OTHER"}),
        (["owner/name"], ["depth"], {"depth": "owner/name"}),
        ([], ["depth"], {}),
    ],
)
def test_weights_are_for_a_named_tool_or_for_the_only_one(
    values: list[str], tools: list[str], weights: dict[str, str]
) -> None:
    assert weights_by_tool(values, tools_named(tools)) == weights


@pytest.mark.parametrize(
    ("values", "tools", "message"),
    [
        (["DIR"], ["depth", "ocr"], r"depth, ocr load weights; say which: --weights depth=DIR$"),
        (["DIR"], ["crop"], "crop has no learned backend"),
        (["DIR"], [], r"say which tool loads them: --weights TOOL=DIR$"),
        (["depht=DIR"], ["depth"], r"unknown tool \(did you mean 'depth'\?\)"),
        (["depth="], ["depth"], r"write --weights depth=DIR_OR_ID$"),
        (["DIR", "depth=DIR"], ["depth"], "--weights depth: given twice"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_form_that_works(
    values: list[str], tools: list[str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        weights_by_tool(values, tools_named(tools))


def test_a_folder_may_have_an_equals_sign(tmp_path: Path) -> None:
    (folder := tmp_path / "depth=x").mkdir()
    assert weights_by_tool([str(folder)], tools_named(["depth"])) == {"depth": str(folder)}


def test_python_gives_a_source_or_a_mapping() -> None:
    depth = [load("tools", "depth")]
    assert weights_from_python(Path("DIR"), depth) == {"depth": "DIR"}
    assert weights_from_python({"ocr": "A", "depth": Path("B")}, depth) == {"ocr": "A", "depth": "B"}
    assert weights_from_python(None, depth) == {}
