"""Logs of Inspect read without Inspect: a zip with plain, deflated or zstd entries, and JSON."""

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hybrid.core.errors import DataError
from hybrid.scoring.predictions import recognise
from hybrid.scoring.predictions.inspect import read


def sample(number: int, reply: str = "Answer: A", **changed: Any) -> dict[str, Any]:
    """Return a sample as Inspect writes it, with its reply as a list of parts."""
    parts = [{"type": "reasoning", "reasoning": "B?"}, {"type": "text", "text": reply}]
    message = {"role": "assistant", "content": parts}
    return {
        "id": f"val_Jigsaw_{number}",
        "epoch": 1,
        "target": "A",
        "choices": ["left", "right"],
        "messages": [{"role": "user", "content": "Which?"}, message],
        "output": {"choices": [{"message": message}]},
        "metadata": {"task": "Jigsaw"},
        **changed,
    }


def as_eval(path: Path, samples: list[dict[str, Any]], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("header.json", "{}")
        for item in samples:
            file.writestr(f"samples/{item['id']}_epoch_{item['epoch']}.json", json.dumps(item))
    return path


def as_zstd(path: Path, mapping: dict[str, Any]) -> Path:
    """Return a zip of one entry that is compressed by zstd, as newer releases of Inspect write them."""
    name, data = f"samples/{mapping['id']}_epoch_1.json".encode(), json.dumps(mapping).encode()
    packed = pa.compress(data, codec="zstd", asbytes=True)
    facts = struct.pack("<HHHHHIII", 63, 0, 93, 0, 33, zipfile.crc32(data), len(packed), len(data))
    local = b"PK\x03\x04" + facts + struct.pack("<HH", len(name), 0) + name
    central = b"PK\x01\x02\x3f\x00" + facts + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    path.write_bytes(local + packed + central + end)
    return path


def as_json(path: Path, samples: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"version": 2, "eval": {}, "samples": samples}))
    return path


def test_questions_of_one_picture_are_one_unit(tmp_path: Path) -> None:
    metadata = ({"task": "Jigsaw", "cluster": "p1"}, {"cluster": 3}, {})
    samples = [sample(number, metadata=facts) for number, facts in enumerate(metadata)]
    recognised = read(as_json(tmp_path / "log.json", samples))
    assert recognised is not None
    assert [row.cluster for row in recognised.rows] == ["p1", "", ""]


@pytest.mark.parametrize("form", ["stored", "deflated", "zstd", "json"])
def test_a_log_of_each_form_is_read(tmp_path: Path, form: str) -> None:
    path = {
        "stored": lambda: as_eval(tmp_path / "a.eval", [sample(1)], zipfile.ZIP_STORED),
        "deflated": lambda: as_eval(tmp_path / "a.eval", [sample(1)]),
        "zstd": lambda: as_zstd(tmp_path / "a.eval", sample(1)),
        "json": lambda: as_json(tmp_path / "a.json", [sample(1)]),
    }[form]()
    result = recognise(path)
    assert result is not None
    (row,) = result.rows
    assert (row.id, row.reply, row.task, row.answer, row.choices) == (
        "val_Jigsaw_1",
        "Answer: A",
        "Jigsaw",
        "A",
        ("left", "right"),
    )


def test_further_epochs_and_errors_are_said(tmp_path: Path) -> None:
    samples = [sample(1), sample(1, "Answer: B", epoch=2), sample(2, error={"message": "x"})]
    parsed = read(as_eval(tmp_path / "a.eval", samples))
    assert parsed is not None
    assert [row.reply for row in parsed.rows] == ["Answer: A"]
    assert parsed.notes == (
        "2 epochs: the first is scored, the others are not",
        "1 sample ended in an error, left out: val_Jigsaw_2",
    )


def test_a_broken_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"a\.eval is not a log of Inspect that can be read"):
        read(tmp_path / "a.eval")
    with pytest.raises(DataError, match=r"sample 1: expected a sample with id and messages"):
        read(as_json(tmp_path / "b.json", [{"id": 1}]))
    (tmp_path / "c.json").write_text('{"a": "B"}')
    assert read(tmp_path / "c.json") is None


def flag_as_encrypted(data: bytearray) -> None:
    for header, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rfind(header) + offset] |= 1


def change_content(data: bytearray) -> None:
    header = data.rfind(b"PK\x03\x04")
    start = header + 30 + data[header + 26]
    data[start + 4 : start + 12] = bytes(byte ^ 0xFF for byte in data[start + 4 : start + 12])


def understate_size(data: bytearray) -> None:
    start = data.rfind(b"PK\x01\x02") + 24
    data[start : start + 4] = (10).to_bytes(4, "little")


def name_unknown_compression(data: bytearray) -> None:
    for header, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.rfind(header) + offset] = 99


def cut_in_half(data: bytearray) -> None:
    del data[len(data) // 2 :]


DAMAGES = (flag_as_encrypted, change_content, understate_size, name_unknown_compression, cut_in_half)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_archive_is_one_line(tmp_path: Path, compression: int, damage: Callable[[bytearray], None]) -> None:
    path = as_eval(tmp_path / "a.eval", [sample(1)], compression)
    data = bytearray(path.read_bytes())
    damage(data)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.eval is not a log of Inspect that can be read"):
        read(path)


def test_entries_that_lead_elsewhere_are_never_unpacked(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    path = as_eval(tmp_path / "deep" / "a.eval", [sample(1)])
    with zipfile.ZipFile(path, "a") as file:
        for name in ("samples/../../../up.json", "/samples/root.json", "samples/..\\up.json", "inner.zip"):
            file.writestr(name, json.dumps(sample(2)) if name.startswith("samples/") else path.read_bytes())
    ordered = sorted(tmp_path.rglob("*"))
    assert len(read(path).rows) == 3  # type: ignore[union-attr]
    assert sorted(tmp_path.rglob("*")) == ordered


def test_an_archive_of_too_many_or_too_large_entries_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_eval(tmp_path / "a.eval", [sample(number) for number in (1, 2, 3)])
    monkeypatch.setattr("hybrid.scoring.predictions.inspect.MAX_ENTRIES", 2)
    with pytest.raises(DataError, match="entries; at most 2 are read"):
        read(path)
    monkeypatch.undo()
    monkeypatch.setattr("hybrid.scoring.predictions.inspect.MAX_SAMPLE", 10)
    with pytest.raises(DataError, match="at most 10 are read"):
        read(path)


@pytest.mark.parametrize(("package", "named"), [("hybrid-perception", ("mllm@2", "openai/m")), ("other", ("", ""))])
def test_a_log_of_ours_names_its_solver_and_model(tmp_path: Path, package: str, named: tuple[str, str]) -> None:
    header = {"eval": {"packages": {package: "1"}, "solver": "mllm@2", "model": "openai/m"}}
    (tmp_path / "a.json").write_text(json.dumps({**header, "samples": [sample(1)]}))
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as file:
        file.writestr("samples/1_epoch_1.json", json.dumps(sample(1)))
        file.writestr("header.json", json.dumps(header))
    for log in (tmp_path / "a.json", tmp_path / "a.eval"):
        parsed = read(log)
        assert parsed is not None
        assert (parsed.solver, parsed.model, len(parsed.rows)) == (*named, 1)
