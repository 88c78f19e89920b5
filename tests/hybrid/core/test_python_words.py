"""Messages about command options are reworded for callers from Python."""

import pytest

from hybrid.core.errors import DataError, UsageError
from hybrid.core.python_words import python_errors, python_words


@pytest.mark.parametrize(
    ("command", "python"),
    [
        ("--solver mllm needs a model: give one with --model", "--solver mllm needs a model: give one with model="),
        ("give --model, such as --model openai:gpt-4o", 'give model=, such as model="openai:gpt-4o"'),
        ("--tool-output oracle: the answers are hidden", 'tool_output="oracle": the answers are hidden'),
        ("--weights depth=/a/b: there is no folder", 'weights={"depth": "/a/b"}: there is no folder'),
        ("--limit 3 is too few", "limit=3 is too few"),
        ("no 'x' in tools/; --path DIR adds your own", "no 'x' in tools/; path=DIR adds your own"),
        ("`hybrid tools fetch depth --weights a=b` fetches it", "`hybrid tools fetch depth --weights a=b` fetches it"),
        ("use hybrid tools fetch --from DIR, or --no-cache", "use hybrid tools fetch --from DIR, or no_cache="),
        ("--tools: no 'a' in tools/", "tools: no 'a' in tools/"),
        ("Say --show text, which sends text", 'Say show="text", which sends text'),
        ("--allow blind-tools measures it", 'allow="blind-tools" measures it'),
        ("no option at all", "no option at all"),
    ],
)
def test_options_are_arguments_and_commands_stay(command: str, python: str) -> None:
    python = python.replace("--solver mllm", "solvers= mllm")
    assert python_words(command) == python


def test_errors_of_usage_alone_are_put_into_other_words() -> None:
    with pytest.raises(UsageError, match=r"^path=DIR$"), python_errors():
        raise UsageError("--path DIR")
    with pytest.raises(DataError, match=r"^--path DIR$"), python_errors():
        raise DataError("--path DIR")
