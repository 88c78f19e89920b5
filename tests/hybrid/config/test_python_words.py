"""Messages about command options are reworded for callers from Python."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.config.command_options import FIELDS
from hybrid.config.python_words import RENAMED, accepted_words, python_errors, python_words
from hybrid.core.errors import DataError, UsageError

ROOT = Path(__file__).parents[3]
# Words that continue the sentence after the name of an option.
PROSE = frozenset(
    re.findall(
        r"\w+",
        "adds also and choose decides does has is leaves lists names need needs only or print prints reads records "
        "sets shows tests that to with without works",
    )
)


@pytest.mark.parametrize(
    ("command", "python"),
    [
        ("--solver mllm needs a model: give one with --model", 'solvers="mllm" needs a model: give one with model='),
        ("leave out --images none", 'leave out images="none"'),
        ("--protocol strict reads less (or --tools none)", 'protocol="strict" reads less (or tools="none")'),
        (
            "--images and --solver names and --tools names no tool",
            "images= and solvers= names and tools= names no tool",
        ),
        ("leave out --model-arg temperature", 'leave out model_arg={"temperature": ...}'),
        ("--setting context: no such text", 'setting={"context": ...}: no such text'),
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
    assert python_words(command) == python


@pytest.mark.parametrize("key", sorted(FIELDS))
def test_a_word_that_an_option_accepts_is_quoted_and_a_sentence_goes_on(key: str) -> None:
    option, name = f"--{key.replace('_', '-')}", RENAMED.get(key, key)
    field = FIELDS[key]
    assert accepted_words(key) >= {*field.words, *(("on", "off") if field.is_switch else ())}
    for word in accepted_words(key) - {"n"}:
        value = f'{{"{word}": ...}}' if key in ("setting", "model_arg") else f'"{word}"'
        if re.fullmatch("[a-z-]+", word):
            assert python_words(f"leave out {option} {word} here") == f"leave out {name}={value} here"
            assert python_words(f"leave out {option} {word}") == f"leave out {name}={value}"
    for word in PROSE:
        assert python_words(f"{option} {word} more") == f"{name}= {word} more"


def messages() -> Iterator[str]:
    """Yield the text literals of the program, with X for each computed part."""
    for folder in ("hybrid", "tools", "graphs", "baselines"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))) if "--" in path.read_text("utf-8") else ():
                if isinstance(node, ast.JoinedStr):
                    parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
                    yield "".join(map(str, parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_no_message_has_a_value_apart_from_its_option() -> None:
    names = "|".join(RENAMED.get(key, key) for key in FIELDS)
    texts = {text for text in messages() if "--" in text}
    assert len(texts) > 500
    found = {match[0] for text in texts for match in re.finditer(rf"\b(?:{names})= [a-z]+", python_words(text))}
    # `hybrid export --only helped` cannot be called from Python.
    assert {words for words in found if words.partition("= ")[2] not in PROSE} == {"only= helped"}


def test_errors_of_usage_alone_are_put_into_other_words() -> None:
    with pytest.raises(UsageError, match=r"^path=DIR$"), python_errors():
        raise UsageError("--path DIR")
    with pytest.raises(DataError, match=r"^--path DIR$"), python_errors():
        raise DataError("--path DIR")
