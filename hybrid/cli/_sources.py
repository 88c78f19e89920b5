"""The values of all options: from the caller, else from a file, the environment or the default.

    (run,) = read_runs({"benchmark": "blink", "limit": 5}, open_config(Path("run.yaml")))
    run.values["limit"]             # the value of each option by its key
    run.recorded                    # the options as used, for the manifest: {"benchmark": "blink", "limit": 5, ...}

What is given overrides the file, and the file overrides the environment. Mappings are merged key by key.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.cli._config_file import NO_FILE, ConfigFile, FileValues, file_options, with_choice
from hybrid.config.command_options import BENCHMARK, FIELDS
from hybrid.config.option import OptionField
from hybrid.config.values import as_written, merged_pairs, read_values
from hybrid.config.words import STARTED
from hybrid.core.errors import UsageError
from hybrid.core.secrets import redact
from hybrid.core.types import Json
from hybrid.display.notes import tell

MAX_RUNS = 1000
# Providers whose models run in this process, are recordings, or have a server that this program starts.
_WITHOUT_SERVER = frozenset({"embedded", "hf", "replay", *STARTED})


@dataclass(frozen=True)
class RunOptions:
    """The options of one run."""

    # The value of every option, by key.
    values: Mapping[str, Any]
    # The options that the caller, a file or the environment sets, by long name; without defaults.
    recorded: Mapping[str, Json]
    # What distinguishes the run from the others that a file defines.
    distinguishing: Mapping[str, str] = field(default_factory=dict)
    # Name of the run's folder; empty if there is only one run.
    name: str = ""

    @property
    def label(self) -> str:
        """The choices, such as `model=openai:gpt-4o, tool-output=blank`."""
        return ", ".join(f"{key}={value}" for key, value in self.distinguishing.items())


def read_runs(given: Mapping[str, Any], file: ConfigFile = NO_FILE) -> tuple[RunOptions, ...]:
    """Return the runs that options and a file define, one for each benchmark and combination of the file's lists.

    Args:
        given: values by key, which override the file. Lists of the file for these options are left out.
        file: the configuration.

    Raises:
        UsageError: an unknown key of the file, or a value that does not fit.
    """
    fixed, axes = file_options(file, given)
    environment = not file.is_manifest
    benchmarks = _benchmarks(given.get(BENCHMARK))
    if (count := len(benchmarks) * math.prod(map(len, axes.values()))) > MAX_RUNS:
        raise UsageError(f"--config {file.path}: the file defines {count} runs; at most {MAX_RUNS} are allowed")
    runs: dict[str, RunOptions] = {}
    names: set[str] = set()
    for benchmark, choice in itertools.product(benchmarks, itertools.product(*axes.values())):
        texts = dict(zip(axes, choice, strict=True))
        distinguishing = {BENCHMARK: benchmark} if benchmark else {}
        values, recorded = resolve({**given, **distinguishing}, with_choice(fixed, texts), environment=environment)
        if file is not NO_FILE and values[BENCHMARK] is None:
            raise UsageError(f"--config {file.path}: {BENCHMARK}: a list must not contain null: write a name or a path")
        distinguishing |= {FIELDS[key].option.long: _value_label(key, texts[key]) for key in axes if len(axes[key]) > 1}
        # If the given options override every difference between two choices, both are the same run.
        if (signature := json.dumps(recorded)) not in runs:
            name = _folder_name(distinguishing, names) if distinguishing else ""
            runs[signature] = RunOptions(values, recorded, distinguishing, name)
    return tuple(runs.values())


def _benchmarks(given: object) -> list[str]:
    """Return the benchmarks in `A,B`; for a single benchmark, or a path with a comma, return one empty name."""
    several = isinstance(given, str) and not Path(given).exists()
    names = list(dict.fromkeys(name.strip() for name in str(given).split(","))) if several else []
    return names if len(names) > 1 else [""]


def _value_label(key: str, texts: Sequence[str]) -> str:
    """Return the text of an option's value for a label."""
    return ("on" if texts else "off") if FIELDS[key].is_flag else "+".join(texts) or "default"


def _folder_name(choices: Mapping[str, str], used_names: set[str]) -> str:
    """Make a valid and unique folder name from the choices."""
    text = "_".join(choices.values())
    name = re.sub(r"[^A-Za-z0-9.=+_-]+", "-", redact(text)).strip("-.") or "run"
    if len(name) > 100 or name in used_names:
        name = f"{name[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    used_names.add(name)
    return name


def resolve(
    given: Mapping[str, Any], texts: FileValues | None = None, *, environment: bool = True
) -> tuple[dict[str, Any], dict[str, Json]]:
    """Return the values of every option by key, and those that a manifest records by long name.

    Args:
        given: values by key.
        texts: the file's values by key, as texts.
        environment: whether variables count. With the manifest of a run, which defines all options, they do not.

    Raises:
        UsageError: a value of the environment that does not fit, or weights of a tool given twice.
    """
    values: dict[str, Any] = {}
    recorded: dict[str, Json] = {}
    for key, option_field in FIELDS.items():
        items, source = (texts or {}).get(key, ()), ""
        if not items and key not in given and environment:
            variable = value_of_environment(option_field, values)
            items, source = (() if variable is None else (variable,)), f" (env var: {option_field.option.variable!r})"
        values[key] = read_option(option_field, items, source) if items else option_field.default
        if key in given:
            values[key] = _merge(option_field, values[key], given[key])
        # A flag that is off is recorded only if it overrides the file.
        is_off = option_field.is_flag and not items and values[key] == option_field.default
        if option_field.option.in_manifest and (items or key in given) and not is_off:
            recorded[option_field.option.long] = as_written(option_field, values[key])
    return values, recorded


def read_option(option_field: OptionField, items: Sequence[object], source: str = "") -> Any:
    """Return the value of a field, like `read_values`. Raises `UsageError` for a value that does not fit."""
    try:
        return read_values(option_field, items)
    except ValueError as error:
        raise UsageError(f"Invalid value for '{option_field.option.name}'{source}: {error}") from error


def _merge(option_field: OptionField, below: Any, override: Any) -> Any:
    """Return the given value. A mapping also gets the keys that only the file sets."""
    if option_field.is_keyless:
        return merged_pairs(below, override)
    return {**below, **override} if option_field.is_pairs else override


def value_of_environment(option_field: OptionField, values: Mapping[str, Any]) -> str | None:
    """Return the value of the environment variable that applies to a run, or None.

    The variable for `--data` contains the benchmark's name; for that of `--base-url` see `base_url_of_environment`.

    Args:
        option_field: the option.
        values: the run's values so far, with its benchmark and model.
    """
    if option_field.option.key == "base_url":
        return base_url_of_environment(values["model"] or "")
    name = option_field.option.variable
    if option_field.option.key == "data":
        name = name.replace("NAME", str(values[BENCHMARK]).upper())
    return os.environ.get(name) or None if name else None


def base_url_of_environment(model: str) -> str | None:
    """Return the address in HYBRID_BASE_URL if it applies to the model, else None.

    A note is printed if the address is ignored for a known provider that has a server.

    The address applies to models of the provider in HYBRID_MODEL. Without that variable it applies to `openai:`, which
    includes every compatible server.
    """
    url, env_model = os.environ.get("HYBRID_BASE_URL") or None, os.environ.get("HYBRID_MODEL") or "openai:"
    provider, for_provider = model.partition(":")[0], env_model.partition(":")[0]
    if url is None or not model or provider == for_provider:
        return url if model else None
    from hybrid.models import has_known_provider

    # A name without a provider ends the command with its own message, so print no note here.
    if provider not in _WITHOUT_SERVER and has_known_provider(model):
        tell(f"note: HYBRID_BASE_URL is for models of {for_provider} and not used for {model}; give --base-url")
    return None


def read_keywords(keywords: Mapping[str, object], fields: Mapping[str, OptionField]) -> dict[str, Any]:
    """Return keywords of Python as values of their options, by key; those that are None are left out.

    Args:
        keywords: texts as on a command line, or values: a list for an option with several, a mapping for KEY=VALUE.
        fields: the option of each keyword.

    Raises:
        UsageError: a value that does not fit.
    """
    return {
        fields[keyword].option.key: read_option(fields[keyword], list(_items(fields[keyword], value)))
        for keyword, value in keywords.items()
        if value is not None
    }


def _items(option_field: OptionField, value: object) -> Iterator[object]:
    """Yield the values of an option, or a mapping's as KEY=VALUE texts."""
    if isinstance(value, Mapping) and option_field.is_pairs:
        yield from (
            f"{key}={_text(part, as_json=option_field.option.key == 'model_arg')}" for key, part in value.items()
        )
        return
    items = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    if isinstance(value, Mapping) or not (option_field.is_many or option_field.is_pairs or len(items) == 1):
        raise UsageError(f"{option_field.option.name}: expected a single value, got {value!r:.80}")
    yield from items


def _text(value: object, *, as_json: bool) -> str:
    """Return a value of a mapping as the text after `KEY=` on a command line."""
    if isinstance(value, bool) and not as_json:
        return "on" if value else "off"
    is_plain = value is None or isinstance(value, int | float | list | tuple | dict)
    return json.dumps(value, default=str) if is_plain else str(value)
