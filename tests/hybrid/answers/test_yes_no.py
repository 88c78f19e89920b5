import pytest

from hybrid.answers.yes_no import parse_yes_no
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_reads"))
def test_reads(text: str, value: str, rule: str) -> None:
    parsed = parse_yes_no(text)
    assert (parsed.value, parsed.rule) == (value, rule)
