"""`hybrid tools fetch` and `check`, as a user calls them."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import WeightsError
from hybrid.plugins.weights import find_weights
from hybrid.serving.loader import Loader
from hybrid.tool import Tool
from tests.finished_runs import Command, Words

EYE = """
from hybrid.tool import Args, BackendCard, Card, CheckCase, Evidence, KnownAnswer, Provenance, Tool


class Eye:
    def setup(self, device, weights):
        from hybrid.tool.checkpoint import load_verified

        self.model = load_verified("AutoModel", weights, device=device, model_types=("dinov2",)).model

    def run(self, requests):
        return [Evidence("seen", {"side_px": self.model.config.image_size}, 1.0) for _ in requests]


def pose():
    import numpy as np

    dark = np.zeros((8, 8, 3), np.uint8)
    return CheckCase((dark,), {}, lambda found: None if found.data["side_px"] == 28 else "wrong")


KNOWN = (Provenance("made/tiny", "MIT", ("COCO",)),)
CARD = BackendCard("learned", "1", Eye, "A tiny network.", weights="made/tiny", provenances=KNOWN)
TOOL = Tool(Card("eye", "Sees.", "Little.", (CARD,)), Args, (KnownAnswer("side", pose),))
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of DINOv2 in the real format, next to an unrelated file."""
    import torch
    import transformers

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("tiny")
    config = transformers.Dinov2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=1, mlp_ratio=1, image_size=28, patch_size=14
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    transformers.BitImageProcessor(size={"height": 28, "width": 28}, do_center_crop=False).save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    return folder


pytestmark = pytest.mark.usefixtures("tools_as_they_were")


@pytest.fixture(scope="module")
def eye_arguments(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Options that load the tool `eye`."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "eye.py").write_text(EYE)
    return ("--path", str(folder))


@pytest.mark.system
def test_fetch_says_what_comes_brings_it_checks_it_and_says_what_to_run(
    command: Command, hub: Any, tiny: Path, eye_arguments: Words, tmp_path: Path
) -> None:
    sha = hub.commit("made/tiny", tiny)
    sizes = {path.name: path.stat().st_size for path in tiny.iterdir()}
    del sizes["pytorch_model.bin"]
    text = f"eye: made/tiny, {sum(sizes.values()) / 1e6:,.1f} MB at {hub.url}"
    dry = command("tools", "fetch", "eye", "--dry-run", *eye_arguments)
    assert (dry.code, dry.out.splitlines()[0]) == (0, text)
    assert hub.contents == []
    result = command("tools", "fetch", "eye", *eye_arguments, "-o", "weights.json", code=0)
    snapshot = tmp_path / "cache" / "models--made--tiny" / "snapshots" / sha
    first, licence, trained, installed, hashed, answers, following = (line.split() for line in result.out.splitlines())
    assert " ".join(first) == text
    assert (licence, trained, installed) == (["licence", "MIT"], ["trained", "on", "COCO"], ["here", str(snapshot)])
    assert answers[:5] == ["answers", "all", "known", "answers", "right"]
    assert following == ["next:", "hybrid", "tools", "run", "eye", "PICTURE_1"]
    assert {path.name for path in snapshot.iterdir()} == sizes.keys(), "no other format comes"
    content = hashlib.sha256((tiny / "model.safetensors").read_bytes()).hexdigest()
    full = hashlib.sha256(f"model.safetensors\x1f{content}\x1e".encode()).hexdigest()
    assert hashed == ["sha256", full]
    row = {"tool": "eye", "weights": "made/tiny", "path": str(snapshot), "sha256": full}
    assert json.loads(Path("weights.json").read_text()) == {"weights": [row], "absent": []}
    # Complete weights are not fetched again, and suffice if the hub is unreachable.
    came = len(hub.contents)
    hub.down = True
    second = command("tools", "fetch", "eye", *eye_arguments)
    assert (second.code, second.out.splitlines()[1:]) == (0, result.out.splitlines()[1:])
    assert "on disk" in second.out.splitlines()[0]
    assert len(hub.contents) == came


@pytest.mark.system
def test_one_broken_tool_loses_no_other_and_ends_with_3(
    command: Command, hub: Any, tiny: Path, eye_arguments: Words, tmp_path: Path
) -> None:
    hub.commit("made/tiny", tiny)
    pickles = tmp_path / "pickles"
    pickles.mkdir()
    (pickles / "pytorch_model.bin").write_bytes(b"pickled")
    hub.commit("made/pickles", pickles)
    hub.commit("made/gated", tiny, readers=frozenset({"token"}))
    payload = {
        "similarity": "made/tiny",
        "saliency": "made/pickles",
        "segmentation": "made/gated",
        "detection": "no/where",
        "depth": str(pickles),
    }
    words = [word for name, value in payload.items() for word in ("--weights", f"{name}={value}")]
    result = command("tools", "fetch", *payload, "eye", *words, *eye_arguments, "-o", "out.json", code=3)
    values = dict(line.split(": ", 1) for line in result.err.splitlines() if line.partition(":")[0] in payload)
    assert "fail 1 of 1 known answers" in values["similarity"], "random numbers are no DINOv2"
    assert values["saliency"] == f"weights absent: made/pickles has no .safetensors file at {hub.url}"
    assert "is gated" in values["segmentation"]
    assert "HF_TOKEN" in values["segmentation"]
    assert f"no/where does not exist at {hub.url}" in values["detection"]
    assert "contains no .safetensors file" in values["depth"]
    assert "next: hybrid tools run eye PICTURE_1" in result.out
    rows = json.loads(Path("out.json").read_text())
    assert ([row["tool"] for row in rows["weights"]], rows["absent"]) == (["eye"], list(payload))


@pytest.mark.system
def test_a_server_that_fails_is_named_and_what_came_is_kept(
    command: Command, hub: Any, tiny: Path, eye_arguments: Words
) -> None:
    hub.commit("made/tiny", tiny)
    hub.faults.append("404")
    result = command("tools", "fetch", "eye", *eye_arguments, code=3)
    assert f"eye: weights absent: made/tiny cannot be fetched from {hub.url} (" in result.err
    assert "HF_ENDPOINT to a mirror" in result.err
    assert "--from DIR" in result.err
    assert command("tools", "fetch", "eye", *eye_arguments).code == 0


@pytest.mark.system
@pytest.mark.parametrize("place", ["made/tiny", "made--tiny"])
def test_a_folder_of_repositories_serves_as_the_hub(
    command: Command, hub: Any, tiny: Path, eye_arguments: Words, tmp_path: Path, place: str
) -> None:
    shutil.copytree(tiny, tmp_path / "usb" / place)
    result = command("tools", "fetch", "eye", "--from", "usb", *eye_arguments, code=0)
    assert "  licence      MIT" in result.out.splitlines()
    assert hub.requests == []
    # After the fetch, the checkpoint is found by its id without the folder; only the needed files were copied.
    shutil.rmtree(tmp_path / "usb")
    weights = find_weights("made/tiny", download=False)
    assert sorted(path.name for path in weights.iterdir()) == [
        "config.json",
        "model.safetensors",
        "preprocessor_config.json",
    ]
    assert command("tools", "check", "eye", *eye_arguments).code == 0
    missing = command("tools", "fetch", "eye", "--from", "cache", *eye_arguments)
    assert (missing.code, missing.err) == (3, "eye: weights absent: cache contains neither made/tiny nor made--tiny\n")


@pytest.mark.system
def test_a_folder_that_names_code_is_not_taken(
    command: Command, hub: Any, tiny: Path, eye_arguments: Words, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "usb" / "made" / "tiny")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "_attn_implementation": "evil/kernel"}))
    assert (
        "names code to download "
        "and run" in command("tools", "fetch", "eye", "--from", "usb", *eye_arguments, code=3).err
    )
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("markers",), "markers loads no weights of its own"),
        (("--weights", "relation=DIR"), "relation loads no weights of its own"),
        (("dpeth",), "did you mean 'depth'"),
        (("depth", "--weights", "nowhere"), "--weights nowhere: directory nowhere not found"),
        # This case loads torch.
        pytest.param(("depth", "--device", "cuda:999"), "torch sees", marks=pytest.mark.system),
    ],
)
def test_fetch_refuses_what_has_no_weights(command: Command, words: Words, message: str) -> None:
    assert message in command("tools", "fetch", "--dry-run", *words, code=2).err


@pytest.mark.system
def test_absent_weights_name_the_command(command: Command, tiny: Path, eye_arguments: Words, hub: Any) -> None:
    auto = command("tools", "check", "eye", *eye_arguments, code=2)
    assert "weights absent: made/tiny is not on disk (`hybrid tools fetch eye` fetches it)" in auto.err
    result = command("tools", "check", "eye", *eye_arguments, "--weights", "no/where")
    assert f"weights absent: no/where does not exist at {hub.url}" in result.err


@pytest.mark.system
def test_check_goes_on_after_a_tool_whose_weights_do_not_load(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(loader: Loader, tool: Tool) -> Any:
        if tool.card.name == "similarity":
            raise WeightsError("similarity/model.safetensors: header too small")
        return load(loader, tool)

    load = Loader.load
    monkeypatch.setattr(Loader, "load", fail)
    result = command("tools", "check", "similarity", "saliency", "--backend", "classical", code=3)
    assert result.err.splitlines()[0] == "hybrid: similarity/model.safetensors: header too small"
    assert result.out.splitlines()[0].startswith("0 of 1 wrong: saliency, classical backend")


@pytest.mark.system
def test_check_prints_each_image_and_ends_with_0_or_3(command: Command) -> None:
    passed = command("tools", "check", "saliency", "--backend", "classical", code=0)
    assert passed.out.splitlines()[0].startswith("0 of 1 wrong: saliency, classical backend")
    assert "ok     dark on bright" in passed.out
    failed = command("tools", "check", "similarity", "--backend", "classical", code=3)
    first, *item, text = failed.out.splitlines()
    assert any(line.startswith("missed ") for line in item)
    assert "failed: the same pattern in another light: " in text
    assert "at least 7 needed" in text
    assert first.startswith("1 of 1 wrong: similarity, ")
    assert "WRONG  nearer point" in command("tools", "check", "depth", "--backend", "classical", code=3).out


@pytest.mark.parametrize(("name", "option"), [("run", "--help"), ("check", "--help-all"), ("try", "--help")])
def test_help_says_that_a_needed_tool_is_named(command: Command, name: str, option: str) -> None:
    text = " ".join(command("tools", name, option, code=0).out.split())
    assert (
        "--weights [TOOL=]DIR_OR_ID Folder or hub id of learned weights; TOOL= selects another tool that this one "
        "calls." in text
    )
