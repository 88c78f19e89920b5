"""Files of tags: every tag is read, and an error names the row."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import DataError
from hybrid.report.payload import Tag
from hybrid.report.tags import read_tags
from tests.tables import cases

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
TAGS = st.lists(
    st.builds(Tag, WORDS, WORDS.filter(bool), WORDS, WORDS.filter(bool), WORDS), max_size=6, unique=True
).map(tuple)


@given(TAGS)
def test_every_tag_is_read(tmp_path: Path, tags: tuple[Tag, ...]) -> None:
    (tmp_path / "tags.json").write_text(json.dumps({"format": 1, "tags": [asdict(tag) for tag in tags]}))
    assert read_tags(tmp_path / "tags.json") == tags


@pytest.mark.parametrize(
    ("content", "told"),
    [*cases(__file__, "no_tags", list)[1], ("[" * 100_000, "not JSON")],
)
def test_what_is_no_file_of_tags_is_named(tmp_path: Path, content: Any, told: str) -> None:
    file = tmp_path / "tags.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError) as raised:
        read_tags(file)
    assert told in str(raised.value)
    assert str(raised.value).startswith(str(file))
