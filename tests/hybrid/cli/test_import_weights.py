"""`hybrid tools import-weights`: tensors of a torch checkpoint become a folder of weights, without running its code."""

import collections
import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import UsageError, WeightsError
from tests.finished_runs import Command


@pytest.fixture(scope="module")
def torch() -> Any:
    """The library torch, which is imported only by a process that runs these tests: it takes 2 s and 0.5 GB."""
    return pytest.importorskip("torch")


@pytest.fixture
def checkpoint(torch: Any, tmp_path: Path) -> Path:
    tied = torch.arange(6.0).reshape(2, 3)
    state = {"module.conv.weight": tied, "module.head.weight": tied, "module.steps": torch.tensor(3)}
    torch.save({"state_dict": state, "epoch": 7}, tmp_path / "net.pth")
    return tmp_path / "net.pth"


def table(folder: Path, text: str) -> Path:
    (folder / "map.py").write_text(text)
    return folder / "map.py"


def test_names_are_changed_by_the_table_and_all_tensors_written(
    torch: Any, checkpoint: Path, tmp_path: Path, command: Command
) -> None:
    from safetensors.torch import load_file

    names = table(tmp_path, '# Old names to new ones.\nRENAME = {r"^module\\.": "", r"^head\\.(\\w+)": r"last.\\1"}\n')
    out = tmp_path / "weights" / "net"
    result = command(
        *("tools", "import-weights", checkpoint, out, "--rename", names, "--size", "32"),
        *("--mean", "0.5,0.4,0.3", "--resample", "bicubic"),
        code=0,
    )
    assert "last.weight  float32 [2, 3]  (was module.head.weight)" in result.out
    tensors = load_file(out / "model.safetensors")
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == {
        "conv.weight": (2, 3),
        "last.weight": (2, 3),
        "steps": (),
    }
    assert torch.equal(tensors["last.weight"], torch.arange(6.0).reshape(2, 3))
    config = json.loads((out / "preprocessor_config.json").read_text())
    assert (config["size"], config["resample"]) == ({"height": 32, "width": 32}, 3)
    assert (config["image_mean"], config["image_std"]) == ([0.5, 0.4, 0.3], [0.229, 0.224, 0.225])


def test_a_dry_run_writes_nothing_and_an_old_folder_is_kept(checkpoint: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "weights"
    result = command("tools", "import-weights", checkpoint, out, "--dry-run", code=0)
    assert "module.conv.weight  float32 [2, 3]\n" in result.out
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    assert "already exists: name a new folder" in command("tools", "import-weights", checkpoint, out, code=2).err


def test_a_file_of_more_than_tensors_is_refused_by_what_it_names(torch: Any, tmp_path: Path) -> None:
    from hybrid.cli._tool_import import read_tensors

    torch.save({"state_dict": collections.Counter("ab")}, tmp_path / "counter.pth")
    with pytest.raises(WeightsError, match=r"contains more than tensors|holds a Counter|has no tensors"):
        read_tensors(tmp_path / "counter.pth")
    torch.save(Path("x"), tmp_path / "object.pth")
    with pytest.raises(WeightsError, match=r"object.pth contains more than tensors \(pathlib\."):
        read_tensors(tmp_path / "object.pth")


@pytest.mark.parametrize(
    ("content", "key", "message"),
    [
        ({"a": {"x": 1}}, None, r"has no tensors at this level, only: a; choose one with --key NAME"),
        ([1, 2], None, "contains a list, not a mapping"),
        ({"a": 1}, "b", "has no entry 'b'; it has: a"),
        ({"a": 1}, "a", "contains a int, not a mapping"),
    ],
)
def test_where_the_tensors_are_must_be_clear(
    torch: Any, tmp_path: Path, content: Any, key: str | None, message: str
) -> None:
    from hybrid.cli._tool_import import read_tensors

    torch.save(content, tmp_path / "net.pth")
    with pytest.raises(WeightsError, match=message):
        read_tensors(tmp_path / "net.pth", key)


@pytest.mark.usefixtures("torch")
def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    from hybrid.cli._tool_import import read_tensors

    (tmp_path / "net.pth").write_bytes(b"hello")
    with pytest.raises(WeightsError, match="cannot be read as a checkpoint of torch"):
        read_tensors(tmp_path / "net.pth")


def test_the_entry_of_a_key_is_read(torch: Any, tmp_path: Path) -> None:
    from hybrid.cli._tool_import import read_tensors

    torch.save({"state_dict": {"a": torch.zeros(1)}, "ema": {"b": torch.zeros(2), "n": 1}}, tmp_path / "net.pth")
    tensors, other = read_tensors(tmp_path / "net.pth", "ema")
    assert (list(tensors), other) == (["b"], ["n"])
    assert list(read_tensors(tmp_path / "net.pth")[0]) == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{'a': open('x')}", "must contain only string literals"),
        ("x = 1", "write one mapping"),
        ("{'a': 'b'}\n{'c': 'd'}", "the file has 2"),
        ("{'a': 1}", "pattern and replacement must be texts"),
        ("{'(': 'b'}", "is not a regular expression"),
        ("{'a'", "must contain only string literals"),
    ],
)
def test_a_table_is_read_and_never_run(tmp_path: Path, text: str, message: str) -> None:
    from hybrid.cli._tool_import import read_renames

    with pytest.raises(UsageError, match=message):
        read_renames(table(tmp_path, text))


@pytest.mark.parametrize(
    ("renames", "message"),
    [
        ({"[ab]": "c"}, "'a' and 'b' both become 'c'"),
        ({"a": ""}, "the name 'a' would become empty"),
        ({"x": "y"}, "no name of a tensor matches 'x'; the first name is 'a'"),
        ({"a": r"\2"}, "does not fit 'a'"),
    ],
)
def test_names_stay_apart(tmp_path: Path, renames: dict[str, str], message: str) -> None:
    from hybrid.cli._tool_import import read_renames, rename_tensors

    with pytest.raises(UsageError, match=message):
        rename_tensors({"a": 1, "b": 2}, read_renames(table(tmp_path, json.dumps(renames))))
