"""Supplied texts: errors are reported with their position, and only MLLMs are shown the texts, at one place."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import UsageError
from hybrid.solving.context import BESIDE, read_supplied, refuse_missing
from tests.tables import cases

IDS = st.text(st.characters(codec="utf-8", exclude_characters="#"), min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.strip())


@given(st.dictionaries(IDS, TEXTS, min_size=1, max_size=6))
def test_texts_come_back_for_a_question_and_for_its_variants(tmp_path_factory: Any, texts: dict[str, str]) -> None:
    path = tmp_path_factory.mktemp("context") / "texts.jsonl"
    data = "".join(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n" for name, text in texts.items())
    path.write_text(data, encoding="utf-8", newline="")
    supplied = read_supplied(path)
    assert supplied.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for name, text in texts.items():
        rendered = BESIDE.format(text=text.strip())
        assert (supplied.of(name), supplied.of(f"{name}#s2"), supplied.of(f"{name}#r1")) == (
            rendered,
            rendered,
            rendered,
        )


@pytest.mark.parametrize(*cases(__file__, "test_an_error_names_file_and_line"))
def test_an_error_names_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(f'{{"id": "a", "text": "x"}}\n{line}\n')
    with pytest.raises(UsageError) as error:
        read_supplied(path)
    assert str(error.value).startswith(f"--setting context: {path}, {message}")


def test_a_file_that_is_not_there_or_empty_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_supplied(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UsageError, match="contains no text"):
        read_supplied(tmp_path / "empty.jsonl")


def test_missing_texts_are_named_before_anything_is_asked(tmp_path: Path) -> None:
    refuse_missing((), 3, tmp_path)
    with pytest.raises(UsageError, match=r"no text for 6 of 9 questions \(q0, q1, q2, q3, q4, \.\.\.\); add them"):
        refuse_missing(tuple(f"q{n}" for n in range(6)), 9, tmp_path)
