"""Logs of Inspect read without Inspect: a zip with plain, deflated or zstd entries, and JSON."""

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hybrid.errors import DataError
from hybrid.scoring.predictions import recognise
from hybrid.scoring.predictions.inspect import read


def sample(number: int, reply: str = "Answer: A", **changed: Any) -> dict[str, Any]:
    """A sample as Inspect writes it, with its reply as a list of parts."""
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
        for each in samples:
            file.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
    return path


def as_zstd(path: Path, each: dict[str, Any]) -> Path:
    """A zip of one entry that is compressed by zstd, as newer releases of Inspect write them."""
    name, data = f"samples/{each['id']}_epoch_1.json".encode(), json.dumps(each).encode()
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


@pytest.mark.parametrize("form", ["stored", "deflated", "zstd", "json"])
def test_a_log_of_each_form_is_read(tmp_path: Path, form: str) -> None:
    path = {
        "stored": lambda: as_eval(tmp_path / "a.eval", [sample(1)], zipfile.ZIP_STORED),
        "deflated": lambda: as_eval(tmp_path / "a.eval", [sample(1)]),
        "zstd": lambda: as_zstd(tmp_path / "a.eval", sample(1)),
        "json": lambda: as_json(tmp_path / "a.json", [sample(1)]),
    }[form]()
    found = recognise(path)
    assert found is not None
    (row,) = found.rows
    assert (row.id, row.reply, row.task, row.answer, row.choices) == (
        "val_Jigsaw_1",
        "Answer: A",
        "Jigsaw",
        "A",
        ("left", "right"),
    )


def test_further_epochs_and_errors_are_said(tmp_path: Path) -> None:
    samples = [sample(1), sample(1, "Answer: B", epoch=2), sample(2, error={"message": "x"})]
    found = read(as_eval(tmp_path / "a.eval", samples))
    assert found is not None
    assert [row.reply for row in found.rows] == ["Answer: A"]
    assert found.notes == (
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
