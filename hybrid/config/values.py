"""Checks of option values, the same for the command line, files, the environment and Python.

check_value(field, "12")        # 12, for a field of type int

Each check takes a text, or a value from Python. If it is wrong, the check raises `ValueError` with a sentence that does
not name the option.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from hybrid.config.option import OptionField
from hybrid.config.price import Price, parse_price
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.repetitions import REPEAT
from hybrid.core.types import Json
from hybrid.plugins.registry import names, solver_names

BYTES_PER_GB = 1e9
DEVICE = re.compile(r"auto|cpu|mps|cuda|cuda:[0-9]+(?:,cuda:[0-9]+)*")
SWITCH = {"on": True, "off": False, "true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def check_value(field: OptionField, value: object) -> Any:
    """Convert one value of an option to the type of its field; for a list, one item."""
    form, least, text = field.option.form, field.option.at_least, str(value)
    if form in CHECKS:
        return CHECKS[form](value)
    if form == "GB":
        return round(check_amount(value, least) * BYTES_PER_GB)
    if field.words:
        return check_word(text, field.words)
    if field.item_type is Path:
        if form == "existing file" and not Path(text).exists():
            raise ValueError(f"Path {text!r} does not exist.")
        return Path(text)
    if field.type is bool:
        return check_switch(value, ("on", "off")) if field.is_switch else check_switch(text.lower(), SWITCH)
    if field.type is int:
        return check_whole(value, least)
    if field.type is float:
        return check_amount(value, least)
    return parse_price(text) if field.type is Price else text


def check_word(text: str, words: Collection[str]) -> str:
    """Return the text if it is one of the words."""
    if text not in words:
        raise ValueError(f"{text!r} is not one of {', '.join(map(repr, words))}.")
    return text


def check_switch(value: object, words: Collection[str]) -> bool:
    """Return a bool for a bool or one of the words."""
    return value if isinstance(value, bool) else SWITCH[check_word(str(value), words)]


def check_whole(value: object, least: float | None) -> int:
    """Return a whole number of at least `least`. A bool is refused, as is 2.5."""
    try:
        number = int("" if isinstance(value, bool) else str(value))
    except ValueError:
        raise ValueError(f"{str(value)!r} is not a valid integer.") from None
    if least is not None and number < least:
        raise ValueError(f"{number} is not in the range x>={least:g}.")
    return number


def check_amount(value: object, least: float | None = None) -> float:
    """Return a finite number of seconds, dollars or a share: at least `least`, or above 0 if `least` is None."""
    try:
        number = float(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a number.") from None
    if not math.isfinite(number) or (number <= 0 if least is None else number < least):
        raise ValueError(f"{value} is not a finite number {'above 0' if least is None else f'of at least {least:g}'}.")
    return number


def check_device(value: object) -> str:
    """Return `auto`, `cpu`, `mps`, `cuda` or `cuda:N,cuda:M`; whether the device exists is checked at loading."""
    if not DEVICE.fullmatch(str(value)):
        raise ValueError(f"{value!r} is not a device: write auto, cpu, mps, cuda or cuda:N,cuda:M.")
    return str(value)


def check_address(value: object) -> str:
    """Return an address `http://HOST[:PORT][/PATH]` or `https://...`; the host is not contacted."""
    try:
        parts = urlsplit(str(value))
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"{value!r} is not an address: write it as http://127.0.0.1:8000/v1.")
    return str(value)


def check_plugin(value: object, noun: str, package: str = "") -> str:
    """Return the name of a plug-in of `package`, or of a solver if `package` is empty, without importing it."""
    name, all_names = str(value), tuple(names(package) if package else solver_names())
    # The names of repetitions are rejected later, with an explanation.
    if name not in all_names and REPEAT not in name:
        raise ValueError(f"no {noun} {name!r}{did_you_mean(name, all_names)}; available: {', '.join(all_names)}")
    return name


check_solver: Final = partial(check_plugin, noun="solver")
check_benchmark: Final = partial(check_plugin, noun="benchmark", package="hybrid.benchmarks")


CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {
    "address": check_address,
    "device": check_device,
    "solver": check_solver,
}


def split_names(text: str) -> list[str]:
    """Return the names in `A,B`. Raises `ValueError` for an empty name."""
    words = [word.strip() for word in text.split(",")]
    if "" in words:
        raise ValueError("a name is empty")
    return words


def read_values(field: OptionField, items: Sequence[object]) -> Any:
    """Return the value of a field from the values given for its option; for a mapping, texts by key.

    For `--weights` it returns the texts, which may lack a key.

    Args:
        field: the field.
        items: one value, several of an option that may be repeated, or KEY=VALUE texts.

    Raises:
        ValueError: a value does not fit.
        UsageError: a text without a key, or a key given twice.
    """
    texts = [str(item) for item in items]
    if field.is_keyless:
        return tuple(texts)
    if field.is_pairs:
        return pairs(field.option.name, texts)
    if field.is_many:
        if field.is_listed:
            texts = [word for text in texts for word in split_names(text)]
        elif not field.is_repeated:
            texts = [word.strip() for text in texts for word in text.split(",") if word.strip()]
        values = [check_value(field, text) for text in texts]
        return tuple(dict.fromkeys(values) if field.option.form == "solver" else values)
    value = check_value(field, items[0])
    return not value if field.is_negative else value


def as_written(field: OptionField, value: Any) -> Json:
    """Return a field's value in the notation of its option, as in a configuration file or a manifest."""
    if field.is_switch:
        return "on" if value else "off"
    if field.is_negative:
        return not value
    if field.option.form == "A,B":
        return ",".join(value)
    if field.option.form == "GB":
        return float(value / BYTES_PER_GB)
    if field.is_pairs and not isinstance(value, Mapping):
        return {key: part for key, _, part in (text.partition("=") for text in value)}
    if isinstance(value, tuple):
        return [str(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` texts to a mapping. Raises `UsageError` for another form or a duplicate key."""
    by_key: dict[str, str] = {}
    for text in texts:
        key, equals, rest = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} {text!r}: write KEY=VALUE")
        if key in by_key:
            raise UsageError(f"{option} {key}: given twice")
        by_key[key] = rest
    return by_key


def merged_pairs(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Merge `KEY=VALUE` texts; those of `second` override those of `first`.

    A key that occurs twice in `second` stays, so that it is reported as an error.
    """
    keys = {text.partition("=")[0] for text in second}
    return (*(text for text in first if text.partition("=")[0] not in keys), *second)


def seconds_of(time: str, option: str = "--wait-for-server") -> float:
    """Convert `45s`, `90m`, `2h`, or a number of seconds to seconds. Raises `UsageError` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", time.strip().lower())
    if match is None:
        raise UsageError(f"{option} {time}: write a time such as 90m or 2h")
    return float(match[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2]]
