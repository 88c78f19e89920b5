"""Files of tags: every tag is read, and an error names the row."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.report.tags import read_tags
from tests.tables import cases


@pytest.mark.parametrize(("content", "message"), [*cases(__file__, "no_tags", list)[1], ("[" * 100_000, "not JSON")])
def test_what_is_no_file_of_tags_is_named(tmp_path: Path, content: Any, message: str) -> None:
    file = tmp_path / "tags.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError) as raised:
        read_tags(file)
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(file))
