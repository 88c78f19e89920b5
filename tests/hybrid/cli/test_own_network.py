"""An external learned tool, as the template writes it and with its test's tiny checkpoint, through every command.

`tests/test_docs_blocks.py` runs the commands on the tool's pages; the files that they write are checked here.
"""

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tools
from tests.finished_runs import Command, Words
from tests.tables import cases

JIGSAW = ("blink", "--data", "sample", "--task", "Jigsaw", "--limit", "2")


pytestmark = pytest.mark.usefixtures("tools_as_they_were")


def forget(folder: Path) -> None:
    """Forget the imported tool, so that the next import reads the file even after a quick edit that keeps its
    length."""
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    sys.modules.pop("tools.likeness", None)
    vars(tools).pop("likeness", None)
    importlib.invalidate_caches()


def template_test(tmp_path: Path) -> Any:
    """Return the test that the template writes, as a module."""
    spec = importlib.util.spec_from_file_location("likeness_template_test", tmp_path / "mine" / "test_likeness.py")
    assert spec is not None
    assert spec.loader is not None
    text: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(text)
    return text


@pytest.fixture(params=[(), ("--module",)], ids=["transformers", "module"])
def path(request: pytest.FixtureRequest, command: Command, tmp_path: Path) -> Words:
    """Options that select the tool; its tiny checkpoint is in `tiny`, a checkpoint with random weights in `random`."""
    assert command("tools", "new", "likeness", "--learned", *request.param, "--path", "mine").code == 0
    text = template_test(tmp_path)
    text.save_tiny(tmp_path / "tiny")
    text.save_tiny(tmp_path / "random", 0)
    return ("--path", "mine")


def test_a_module_is_asked_for_with_a_network(command: Command) -> None:
    assert "add --learned" in command("tools", "new", "likeness", "--module", "--path", "mine", code=2).err


def replace_in(path: Path, *replacements: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    forget(path.parent)


# An architecture with another input size and output shape than the template's.
LINEAR = """self.filters = torch.nn.Linear(3 * 32 * 32, 5)"""
LINEAR_FORWARD = "self.filters(pictures.flatten(1))"
MAPS = "self.filters(pictures).relu()"
VIT = """sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **sizes))"""


@pytest.mark.system
def test_the_test_survives_another_module(command: Command, tmp_path: Path) -> None:
    command("tools", "new", "likeness", "--learned", "--module", "--path", "mine", code=0)
    forget(tmp_path / "mine")
    tool, test = tmp_path / "mine" / "likeness.py", tmp_path / "mine" / "test_likeness.py"
    filters = "self.filters(pictures).relu().mean(dim=(2, 3))"
    original = tool.read_text()
    replace_in(tool, (filters, MAPS))
    template_test(tmp_path).save_tiny(tmp_path / "maps")
    with pytest.raises(pytest.fail.Exception, match=r"another shape: edit Features\.compute and Network\.finish"):
        template_test(tmp_path).try_network(tmp_path / "maps")
    tool.write_text(original)
    replace_in(tool, ("self.filters = torch.nn.Conv2d(3, 16, 7, bias=False)", LINEAR), (filters, LINEAR_FORWARD))
    template_test(tmp_path).save_tiny(tmp_path / "linear")
    with pytest.raises(pytest.fail.Exception, match=r"edit SIDE_PX, or the processor in save_tiny\(\), in test_"):
        template_test(tmp_path).try_network(tmp_path / "linear")
    replace_in(test, ("SIDE_PX = 56", "SIDE_PX = 32"))
    template_test(tmp_path).save_tiny(tmp_path / "fitting")
    template_test(tmp_path).try_network(tmp_path / "fitting")
    with pytest.raises(pytest.skip.Exception, match="trained weights alone"):
        template_test(tmp_path).test_the_known_answers_accept_weights_that_know_them(tmp_path / "fitting")


@pytest.mark.system
def test_the_test_survives_another_checkpoint(command: Command, tmp_path: Path) -> None:
    command("tools", "new", "likeness", "--learned", "--path", "mine", code=0)
    forget(tmp_path / "mine")
    tool, test = tmp_path / "mine" / "likeness.py", tmp_path / "mine" / "test_likeness.py"
    replace_in(tool, ('"AutoModel"', '"ViTModel"'))
    template_test(tmp_path).save_tiny(tmp_path / "resnet")
    with pytest.raises(pytest.fail.Exception, match=r"edit tiny_network\(\) and SIDE_PX in test_likeness\.py"):
        template_test(tmp_path).try_network(tmp_path / "resnet")
    replace_in(
        test,
        ("return transformers.ResNetModel(transformers.ResNetConfig(**sizes))", VIT),
        ("SIDE_PX = 56", "SIDE_PX = 32"),
    )
    template_test(tmp_path).save_tiny(tmp_path / "vit")
    template_test(tmp_path).try_network(tmp_path / "vit")
    with pytest.raises(pytest.skip.Exception, match="trained weights alone"):
        template_test(tmp_path).test_the_known_answers_accept_weights_that_know_them(tmp_path / "vit")


@pytest.mark.slow
def test_random_weights_fail_the_known_answers(command: Command, path: Words) -> None:
    checked = command("tools", "check", "likeness", "--weights", "random", *path, code=3)
    assert "1 of 1 wrong" in checked.out
    assert "failed: the same pattern in another light, which random weights miss: 0 of 6 right" in checked.out
    ran = command("run", *JIGSAW, "--solver", "specialist", "--weights", "likeness=random", *path, "--out", "refused")
    assert ran.code != 0
    assert "fail 1 of 1 known answers" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(*cases(__file__, "test_wrong_preprocessing_is_found"))
def test_wrong_preprocessing_is_found(
    command: Command, path: Words, tmp_path: Path, right: str, wrong: str, message: str | None
) -> None:
    """The template's test finds each preprocessing error; `hybrid tools check` also finds wrong colours."""
    text = tmp_path / "mine" / "likeness.py"
    assert text.read_text().count(right) == 1
    text.write_text(text.read_text().replace(right, wrong))
    forget(text.parent)
    with pytest.raises(AssertionError):
        template_test(tmp_path).test_the_network_is_given_what_the_processor_of_its_weights_makes(tmp_path / "tiny")
    if message is not None:
        checked = command("tools", "check", "likeness", "--weights", "tiny", *path)
        (line,) = (line for line in checked.out.splitlines() if "colours of its input" in line)
        assert (checked.code, line.startswith("WRONG"), message in line) == (3, True, True), line


@pytest.mark.slow
def test_it_is_listed_checked_and_run(command: Command, path: Words, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    assert "likeness" in command("tools", "list", *path).out
    checked = command("tools", "check", "likeness", "--weights", "tiny", *path)
    assert (checked.code, "0 of 1 wrong" in checked.out) == (0, True)
    assert re.search(r"^ok     colours of its input .* tiny$", checked.out, re.MULTILINE)
    for place, grey in enumerate((20, 25, 250)):
        Image.new("RGB", (64, 64), (grey, 0, 0)).save(tmp_path / f"{place}.png")
    result = command("tools", "run", "likeness", "0.png", "1.png", "2.png", "--weights", "tiny", "--json", *path)
    assert json.loads(result.out)["backend"] == "learned"
    damaged = tmp_path / "tiny" / "model.safetensors"
    tensors = load_file(damaged)
    smallest = min(name for name in tensors if name.endswith("weight"))
    tensors.pop(smallest)
    save_file(tensors, damaged, {"format": "pt"})
    assert smallest in command("tools", "check", "likeness", "--weights", "tiny", *path, code=2).err


@pytest.mark.slow
def test_its_rule_serves_every_solver_that_follows_rules(command: Command, path: Words, tmp_path: Path) -> None:
    solvers = [word for name in ("mllm", "specialist", "arbiter", "verify") for word in ("--solver", name)]
    weights = ("--weights", "likeness=tiny", *path)
    result = command("run", *JIGSAW, "--model", "embedded", *solvers, *weights, "--out", "real", code=0)
    assert "note: likeness: asked for 'Jigsaw' before the project's rule" in result.err
    for solver in ("specialist", "arbiter", "verify"):
        attempts = (tmp_path / "real" / solver / "attempts.jsonl").read_text()
        assert '"likeness"' in attempts
        assert '"jigsaw"' not in attempts
    assert command("calibrate", "real", "-o", "trust.json", *path).code == 0
    assert "likeness" in (tmp_path / "trust.json").read_text()
    assert "verify" in command("compare", "real", "--only", "evidence", *path, code=0).out


@pytest.mark.slow
def test_the_comparison_has_the_tool_alone_the_hybrid_and_its_blank_control(command: Command, path: Words) -> None:
    """The three runs of docs/add-a-tool.md become rows of one table, each with a number."""
    weights = ("--model", "embedded", "--weights", "likeness=tiny", *path)
    alone = ("--solver", "specialist", "--solver", "mllm", "--solver", "verify")
    assert command("run", *JIGSAW, *alone, *weights, "--out", "real").code == 0
    assert command("run", *JIGSAW, "--solver", "verify", *weights, "--tool-output", "blank", "--out", "blank").code == 0
    rows = json.loads(command("compare", "real", "blank", "--json", *path, code=0).out)["solvers"]
    assert [(row["run"], row["n"]) for row in rows.values()] == [("real", 2)] * 3 + [("blank", 2)]
    assert all(0 <= row["metrics"]["accuracy_macro"] <= 1 for row in rows.values())


@pytest.mark.slow
def test_its_rule_that_raises_costs_its_own_answers(command: Command, path: Words, tmp_path: Path) -> None:
    text = tmp_path / "mine" / "likeness.py"
    text.write_text(
        text.read_text().replace('OneCall("likeness", later_image)', 'OneCall("likeness", later_image, len)')
    )
    result = command("run", *JIGSAW, "--solver", "specialist", "--weights", "likeness=tiny", *path, "--out", "broken")
    steps = (tmp_path / "broken" / "specialist" / "attempts.jsonl").read_text()
    assert result.code in (0, 3), result.err
    assert steps.count("tool_fault") >= 2
    assert "likeness: the rule for 'Jigsaw' failed" in steps
