"""The identity of a run: every option declares whether it is part of it, and identities of old runs are unchanged."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid import __version__
from hybrid.config import Limits, ModelSettings, RunConfig, ServiceOptions, short_name
from hybrid.config.option import IDENTITY_OF_SOLVERS, NOT_IDENTITY, AffectsRunId
from hybrid.core.errors import UsageError
from hybrid.running.resolve import prepare
from tests.tables import cases


def test_every_option_says_first_whether_it_counts() -> None:
    marks = {field.name: field.metadata.get("identity") for field in fields(RunConfig)}
    assert not [
        name
        for name, mark in marks.items()
        if mark not in (NOT_IDENTITY, IDENTITY_OF_SOLVERS) and type(mark) is not AffectsRunId
    ]
    # The fields that affect a solver are in the solver's entry in the manifest (see `ToolsInUse.metadata`).
    assert [name for name, mark in marks.items() if mark == IDENTITY_OF_SOLVERS] == ["service", "mcp", "mcp_images"]


def test_every_option_of_the_tools_is_known_here() -> None:
    # The fields in `count` affect a tool output; no others do. In the manifest, `backend` and `weights` are in a
    # solver's "tools", the last three are keys next to "tools", and `pictures` is a key of the identity.
    count, free = (
        {"backend", "weights", "pictures", "unchecked", "dtype", "compiled"},
        {"device", "timeout_s", "queue_s", "coming_s", "threads", "gpu_share"},
    )
    process = {"isolated", "import_s", "load_s", "silence_s", "grace_s", "process_bytes"}
    assert {field.name for field in fields(ServiceOptions)} == count | free | process | {"memory_bytes"}


def test_the_identity_of_a_run_is_what_it_was(tmp_path: Path, fakes: Any) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"x")
    config = RunConfig(
        "blink",
        ("controller",),
        model="openai:mock",
        model_settings=ModelSettings(base_url="http://127.0.0.1:9/v1"),
        data=str(fakes.blink_folder(tmp_path / "blink")),
        settings={"disclaimer": "off"},
        tools=("depth", "crop"),
        tool_output="blank",
        service=ServiceOptions(weights={"depth": str(weights)}, unchecked=True),
        limits=Limits(tool_calls=3, seconds=None),
        seed=7,
    )
    run = prepare(config)
    record = json.loads(json.dumps(run.identity))
    data, prompts = record.pop("data"), record.pop("prompts")
    assert run.resources.model is not None
    tools: Any = run.tools.metadata("controller")
    # The depth tool needs the letters next to the points.
    assert list(tools) == ["crop", "depth", "markers"]
    assert {tuple(tool) for tool in tools.values()} == {("backend", "code")}
    assert tools["depth"]["backend"].endswith(":2cbfbfa26ffb")
    assert tools["crop"]["backend"].startswith("classical:")
    assert {len(item["code"]) for item in tools.values()} == {12}
    assert (data["kind"], len(data["sha256"])) == ("folder", 64)
    assert (prompts["format_line"], list(prompts)) == (True, ["format_line", "format_lines", "texts"])
    assert run.tools.unchecked(config.service) == ("depth",)
    assert list(record.items()) == [
        ("hybrid", __version__),
        ("pictures", "auto"),
        ("benchmark", "blink"),
        ("split", "val"),
        ("tasks", ["Jigsaw", "Spatial_Relation"]),
        ("settings", {"disclaimer": "off", "marks": "drawn"}),
        ("model", run.resources.model.metadata()),
        ("protocol", "strict"),
        ("image_labels", True),
        ("tools_offered", ["depth", "crop"]),
        ("tool_output", "blank"),
        ("show", "both"),
        ("images", "separate"),
        ("rotate", False),
        ("frame", "pixels"),
        ("answer", "text"),
        ("samples", 1),
        ("trust", None),
        ("limits", {"tool_calls": 3, "turns": 8, "seconds": None, "tokens": None, "cost_usd": None}),
        ("seed", 7),
    ]


SAMPLED = ModelSettings(base_url="http://127.0.0.1:9/v1", temperature=1.0)


@pytest.mark.parametrize(
    ("setting", "message"),
    [("samples", "samples would be identical; omit"), ("repeats", "repetitions would be identical: add")],
)
def test_where_samples_or_repetitions_would_be_one_they_are_refused(setting: str, message: str) -> None:
    request: dict[str, Any] = {"model": "openai:m", "model_settings": SAMPLED, setting: 5}
    for change, text in (
        ({"model": "replay:outputs"}, f"--setting {setting}=5: a recorded model has only one reply per question"),
        ({"answer": "likelihood"}, f"--setting {setting}=5: likelihoods are the same every time"),
        ({"model_settings": ModelSettings()}, f"--setting {setting}=5: at temperature 0 all {message}"),
        ({setting: 0}, f"--setting {setting}=0: must be at least 1"),
    ):
        with pytest.raises(UsageError, match=text):
            RunConfig("blink", **{**request, **change})
        RunConfig("blink", **{**request, **change, setting: 1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *cases(__file__, "not_together")[1],
        ({"model": "replay:outputs", "context": Path("x")}, "--setting context: a recorded model"),
    ],
)
def test_ways_of_asking_that_do_not_go_together_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RunConfig("blink", **change)


@pytest.mark.parametrize(*cases(__file__, "test_a_model_has_a_short_safe_name"))
def test_a_model_has_a_short_safe_name(model: str, short: str) -> None:
    assert short_name(model) == short


@given(st.text())
def test_the_name_of_a_folder_is_one_name_whatever_the_model_is_called(model: str) -> None:
    assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,38}[A-Za-z0-9])?)?", short_name(model))
