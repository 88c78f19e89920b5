"""The words of the options in `options.toml`."""

import tomllib
from pathlib import Path

import hybrid.config.option
from hybrid.config import RunConfig
from hybrid.config.option import option_fields


def test_every_entry_is_the_option_of_a_field() -> None:
    entries = tomllib.loads(Path(hybrid.config.option.__file__).with_name("options.toml").read_text())["option"]
    used = [field.option for parent in ("", "--setting", "--model-arg") for field in option_fields(RunConfig, parent)]
    declared = [(entry.get("parent", ""), entry["name"]) for entry in entries]
    assert sorted(declared) == sorted({(item.parent, item.name) for item in used})
