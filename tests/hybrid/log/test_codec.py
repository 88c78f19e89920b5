"""Records are read from JSON without checking `Json` values again, and with the same results."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hybrid.core.types import Step
from hybrid.log.codec import codec, to_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def types_of(value: Any) -> Any:
    """Return the value with the type of every part, because 1, 1.0 and True are equal."""
    if isinstance(value, dict):
        return {name: types_of(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return (type(value), *map(types_of, value))
    return type(value), value


@pytest.mark.system
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_data_are_read_as_the_annotation_says(data: dict[str, Any]) -> None:
    line = json.dumps({"kind": "rule", "name": "n", "text": "t", "data": data})
    read = codec(Step).validate_json(line)
    expected: Step = TypeAdapter(Step).validate_json(line)
    assert types_of(read.data) == types_of(expected.data)
    assert to_json(Step, read) == TypeAdapter(Step).dump_json(expected)


def test_numbers_that_are_none_are_read() -> None:
    read = codec(Step).validate_json('{"kind":"rule","name":"n","text":"t","data":{"x":NaN}}')
    assert math.isnan(read.data["x"])


@pytest.mark.parametrize("line", ['{"kind":"rule","name":"n","text":"t","data":[1]}', '{"kind":"rule","data":{}}'])
def test_everything_around_the_data_is_still_checked(line: str) -> None:
    with pytest.raises(ValidationError):
        codec(Step).validate_json(line)


def test_values_of_python_are_still_checked() -> None:
    with pytest.raises(ValidationError):
        codec(Step).validate_python({"kind": "rule", "name": "n", "text": "t", "data": {"x": object()}})


def test_data_are_not_matched_with_the_alternatives_of_json() -> None:
    assert "AnyValidator" in str(codec(Step).validator)
    assert "AnyValidator" not in str(TypeAdapter(Step).validator)
