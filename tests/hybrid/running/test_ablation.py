"""The plan of an ablation: which menus are asked with, and what all of them together would cost."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ModelSettings, Price, RunConfig, ServiceOptions
from hybrid.errors import UsageError
from hybrid.registry import load, load_solver, names
from hybrid.running.ablation import Ablation, ablation, tools_of
from hybrid.running.cost_estimate import ManyEstimate
from hybrid.running.estimate import estimate
from hybrid.running.resolve import offered_tools, prepare
from hybrid.running.tools_in_use import ToolChoice, tools_in_use

TOOLS_OFFERED = st.lists(st.sampled_from(names("tools")), min_size=1, max_size=8, unique=True)
SERVER = ModelSettings(base_url="http://127.0.0.1:9/v1", price=Price(1.0, 2.0))


def tools_offered_by(plan: Ablation) -> dict[str, tuple[str, ...]]:
    return {run.name: tools_of(run) for run in plan.runs}


def test_every_run_has_a_name_and_a_menu() -> None:
    assert tools_offered_by(ablation(("depth", "crop", "ocr"), add_one=True)) == {
        "full": ("depth", "crop", "ocr"),
        "none": (),
        "without-depth": ("crop", "ocr"),
        "without-crop": ("depth", "ocr"),
        "without-ocr": ("depth", "crop"),
        "only-depth": ("depth",),
        "only-crop": ("crop",),
        "only-ocr": ("ocr",),
    }


@given(TOOLS_OFFERED, st.data())
def test_every_tool_is_left_out_once_and_alone_once(tools_offered: list[str], drawn: st.DataObject) -> None:
    vary = drawn.draw(st.one_of(st.none(), st.lists(st.sampled_from(tools_offered), min_size=1)))
    leave_out, add_one = drawn.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    plan = ablation(tools_offered, vary, leave_out=leave_out, add_one=add_one)
    asked = [tools_of(run) for run in plan.runs]
    assert plan.tools_offered == asked[0] == tuple(tools_offered)
    assert () in asked
    # No menu is asked with twice, and each keeps the order of the whole.
    assert len(set(asked)) == len(asked)
    assert all(offered == tuple(name for name in tools_offered if name in offered) for offered in asked)
    varied = set(tools_offered if vary is None else vary)
    wanted = {tuple(tools_offered), ()}
    if leave_out:
        wanted |= {tuple(other for other in tools_offered if other != name) for name in varied}
    if add_one:
        wanted |= {(name,) for name in varied}
    assert set(asked) == wanted


def test_of_two_tools_one_left_out_is_the_other_alone() -> None:
    assert list(tools_offered_by(ablation(("depth", "crop"), add_one=True))) == [
        "full",
        "none",
        "without-depth",
        "without-crop",
    ]
    assert list(tools_offered_by(ablation(("depth",), add_one=True))) == ["full", "none"]


def test_what_is_called() -> None:
    called = [run.about for run in ablation(("depth", "semantic_correspondence", "ocr")).runs]
    assert called == ["full", "no tool", "without depth", "without semantic_correspondence", "without ocr"]


@pytest.mark.parametrize(
    ("tools_offered", "options", "told"),
    [
        ((), {}, "no tool is offered: there is nothing to leave out"),
        (("depth",), {"vary": ["depht", "crop"]}, "--vary crop,depht: not among the tools offered: depth"),
        (("depth",), {"leave_out": False}, "--no-leave-out: give --add-one with it"),
    ],
)
def test_what_cannot_be_ablated_is_refused(tools_offered: tuple[str, ...], options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ablation(tools_offered, **options)


def test_a_run_differs_in_tools_and_folder_alone() -> None:
    config = RunConfig("blink", seed=3, out=Path("elsewhere"))
    runs = [run.config(config, Path("out")) for run in ablation(("depth", "crop")).runs]
    assert [(run.tools, run.out) for run in runs] == [
        (("depth", "crop"), Path("out/full")),
        (("none",), Path("out/none")),
        (("crop",), Path("out/without-depth")),
        (("depth",), Path("out/without-crop")),
    ]
    assert {run.seed for run in runs} == {3}


def test_a_tool_that_others_call_is_told() -> None:
    tools_offered = ("crop", "depth", "localization", "markers")
    used = tools_in_use(
        {"one": load_solver("controller")},
        "blink",
        ToolChoice(tools_offered, tools_offered),
        ServiceOptions("classical"),
    )
    (line,) = ablation(tools_offered).still_called(used)
    assert line == "markers is called by depth, localization also where it is left out"
    # It is not called where it is left out: not without crop, not with crop alone, and not without any tool.
    assert ablation(tools_offered, ["crop"], add_one=True).still_called(used) == ()


def sample(tmp_path: Path) -> RunConfig:
    return RunConfig(
        "blink", ("controller",), "openai:gpt-4o", model_settings=SERVER, data="sample", tasks=("Jigsaw",), limit=2,
        out=tmp_path,
    )  # fmt: skip


def test_the_menu_is_what_can_answer(tmp_path: Path) -> None:
    config = sample(tmp_path)
    offered = [tool.card.name for tool in offered_tools(config).tools_offered]
    assert offered == [tool.card.name for tool in prepare(config, dry=True).resources.tools_offered]
    assert 1 < len(offered) < len(load("hybrid.benchmarks", "blink").card.tools_offered)


async def test_all_runs_together_are_the_sum_of_each(tmp_path: Path) -> None:
    config = sample(tmp_path)
    plan = ablation(("crop", "depth"), ["crop"])
    runs = {v.name: await estimate(prepare(v.config(config, tmp_path), dry=True)) for v in plan.runs}
    told: Any = ManyEstimate(runs, str(tmp_path), also=("a note",)).as_json()
    assert (told["number_of_runs"], told["total"]["questions"]) == (3, 6)
    each = [run["solvers"]["controller"] for run in told["runs"].values()]
    for level in ("low", "expected", "high"):
        for quantity in ("model_calls", "input_tokens", "output_tokens"):
            assert told["total"][quantity][level] == pytest.approx(sum(one[quantity][level] for one in each), abs=2)
        assert told["total"]["cost_usd"][level] == pytest.approx(sum(one["cost_usd"][level] for one in each))
    # Without tools each question is one call, and nothing is assumed.
    none = told["runs"]["none"]["solvers"]["controller"]
    assert none["model_calls"] == {"low": 2, "expected": 2, "high": 2}
    assert none["assumes"] == []
    text = ManyEstimate(runs, str(tmp_path), also=("a note",)).as_text()
    assert "3 runs" in text
    assert "note: a note" in text
