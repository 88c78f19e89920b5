"""Reads a run's configuration from a YAML or JSON file or a run's manifest: options, each with its location there.

    file = read_config(Path("run.yaml"))
    file.entries["limit"].where     # its location
    file.is_manifest                # whether it contains the options of an existing run

Only plain values are read. Tags that create objects are rejected; so are aliases, with which a small file can expand
without limit.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hybrid.config.command_options import FIELDS, PATH, nearest_model_arg
from hybrid.config.nodes import Node, of_json, read_nodes
from hybrid.config.option import OptionField
from hybrid.config.values import check_value, merged_pairs, split_names
from hybrid.core.errors import UsageError, did_you_mean
from hybrid.core.files import read_small
from hybrid.core.secrets import REDACTED
from hybrid.log.manifest import MANIFEST, read_manifest
from hybrid.plugins.discovery import add_search_path

# The manifest's key for the options.
OPTIONS = "options"
# Largest size of a YAML file in bytes; a typical configuration has a few hundred.
MAX_BYTES = 1_000_000
MATRIX = "matrix"

# Values of `--KEY=` by key of the file; empty if the file leaves the option out. `Axes` has, for each option that
# varies, the values in each run.
FileValues = Mapping[str, tuple[str, ...]]
Axes = dict[str, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True)
class ConfigFile:
    """The top level of a configuration."""

    path: Path
    entries: Mapping[str, Node]
    is_manifest: bool = False


# The configuration of a command without `--config`.
NO_FILE = ConfigFile(Path(), {})


def open_config(path: Path) -> ConfigFile:
    """Read a configuration, and add its plug-in folders to the search path, because its other options may need them.

    Raises:
        UsageError: as for `read_config`, or a folder cannot be searched.
        DataError: a damaged manifest.
    """
    file = read_config(path)
    for word, node in file.entries.items():
        if word != MATRIX and (field := _field(word, node)) is FIELDS["path"]:
            places = [Path(text) for text in _texts(field, node)]
            try:
                add_search_path(places, PATH.name)
            except UsageError as error:
                reason = str(error).removeprefix(f"{PATH.name} ")
                raise UsageError(f"{node.where}: {word}: {reason}") from error
    return file


def read_config(path: Path) -> ConfigFile:
    """Read a configuration, or the manifest of a run (its file, or the run's folder).

    Raises:
        UsageError: the file is neither of these, or has a duplicate key.
        DataError: a damaged manifest.
    """
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise UsageError(f"--config {path}: this folder is not a run, because it has no {MANIFEST}")
        path = path / MANIFEST
    try:
        if path.name == MANIFEST:
            return _of_manifest(path)
        data = read_small(path)
    except OSError as error:
        raise UsageError(f"--config {path}: cannot be read: {error.strerror or error}") from error
    if path.suffix == ".json" and _is_manifest(data):
        return _of_manifest(path)
    if len(data) > MAX_BYTES:
        raise UsageError(f"--config {path}: the file has {len(data):,} bytes; a configuration may have {MAX_BYTES:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--config {path}: is not text in UTF-8") from error
    # Between JSON values a tab equals a space, and JSON texts contain none; YAML rejects tabs.
    root = read_nodes(path, text.replace("\t", " ") if path.suffix == ".json" else text, "--config ")
    if root is None or not isinstance(root.value, dict):
        raise UsageError(f"--config {path}: write one option per line, KEY: VALUE")
    return ConfigFile(path, root.value)


def _is_manifest(data: bytes) -> bool:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"format", "identity"} <= content.keys()


def _of_manifest(path: Path) -> ConfigFile:
    content = read_manifest(path)
    options = content.get(OPTIONS)
    if not isinstance(options, dict):
        raise UsageError(
            f"--config {path}: this manifest records no options: the run was imported, or was made from Python "
            "without options or by an older version"
        )
    if REDACTED in json.dumps(options):
        hidden = next(key for key, value in options.items() if REDACTED in json.dumps(value))
        raise UsageError(f"--config {path}: {hidden} contained a secret, which was not saved: give it again in a file")
    from hybrid.running.hub import HUB, is_hub

    # For data from the hub, use the commit of the run: a branch may have changed since then.
    data = content["identity"].get("data")
    origin = data if isinstance(data, dict) else {}
    revision = origin.get("revision")
    if origin.get("kind") == HUB and isinstance(revision, str) and is_hub(str(options.get("data", HUB))):
        options = {**options, "data": f"{HUB}@{revision}"}
    return ConfigFile(path, {key: of_json(value, str(path)) for key, value in options.items()}, is_manifest=True)


def file_options(file: ConfigFile, earlier: Collection[str]) -> tuple[dict[str, tuple[str, ...]], Axes]:
    """Return the file's options that are equal in every run, and those with a list of values.

    Args:
        file: the configuration.
        earlier: keys of options that are given elsewhere and override lists of the file.

    Raises:
        UsageError: an unknown option or a value that does not fit, with its line.
    """
    fixed: dict[str, tuple[str, ...]] = {}
    axes: Axes = {}
    matrix = file.entries.get(MATRIX, Node({}, ""))
    if not isinstance(matrix.value, dict):
        raise UsageError(f"{matrix.where}: {MATRIX}: write options with lists of values below this key")
    rows = [(word, node, False) for word, node in file.entries.items() if word != MATRIX]
    rows += [(word, node, True) for word, node in matrix.value.items()]
    for word, node, in_matrix in rows:
        field = _field(word, node)
        key = field.option.key
        # In a mapping, some keys may vary while others are fixed.
        if key in axes or (key in fixed and not (in_matrix and field.is_pairs)):
            raise UsageError(f"{node.where}: {word}: given twice")
        # A list of solvers belongs to one run, which compares them; for an option with a single value, a list defines
        # several runs.
        is_single = not field.is_many or field.is_pairs
        if key != "solver" if in_matrix else isinstance(node.value, tuple) and is_single:
            axes[key] = _axis(field, node, in_matrix=in_matrix)
        else:
            fixed[key] = _texts(field, node)
    return fixed, {key: runs for key, runs in axes.items() if FIELDS[key].is_pairs or key not in earlier}


def _field(word: str, node: Node) -> OptionField:
    """Return the option of a file's key. Raises `UsageError` for an unknown word, suggesting the closest."""
    names = {field.option.long: field for key, field in FIELDS.items() if key != "config"}
    names[PATH.short.removeprefix("--")] = FIELDS["path"]
    long = word.replace("_", "-")
    if long not in names:
        key = nearest_model_arg(word)
        hint = f"; write `model-arg: {{{key}: VALUE}}`" if key else did_you_mean(long, [*names, MATRIX])
        raise UsageError(f"{node.where}: no option {word!r}{hint}; see `hybrid run --help`")
    return names[long]


def _axis(field: OptionField, node: Node, *, in_matrix: bool) -> tuple[tuple[str, ...], ...]:
    """Return a list of values, one per run."""
    key = field.option.long
    if not field.can_vary:
        advice = f"give it outside {MATRIX}" if in_matrix else "give one value"
        raise UsageError(
            f"{node.where}: {key}: this option cannot vary between runs, because it is not part of their identity: "
            f"{advice}"
        )
    if not isinstance(node.value, tuple) or not node.value:
        raise UsageError(f"{node.where}: {key}: write a list of values, one for each run")
    return tuple(_texts(field, item) for item in node.value)


def _texts(field: OptionField, node: Node) -> tuple[str, ...]:
    """Return one value as texts for `--KEY=` on a command line; an empty list for null, which omits the option."""
    if node.value is None:
        return ()
    if field.is_pairs:
        return tuple(_pairs(field, node))
    if field.is_flag:
        if not isinstance(node.value, bool):
            raise _misfit(field.option.long, node, "true or false")
        return ("on",) if node.value else ()
    if isinstance(node.value, tuple) and field.is_many:
        texts = tuple(_single_value(field, item) for item in node.value)
        return texts if field.is_repeated or not texts else (",".join(texts),)
    return (_single_value(field, node),)


def _pairs(field: OptionField, node: Node) -> Iterator[str]:
    key = field.option.long
    if field.is_keyless and isinstance(node.value, str):
        yield node.text
        return
    if not isinstance(node.value, dict):
        raise _misfit(
            key, node, f"{field.option.metavar} or a mapping" if field.is_keyless else "a mapping, NAME: VALUE"
        )
    for name, part in node.value.items():
        if isinstance(part.value, tuple | dict) and key != "model-arg":
            raise _misfit(f"{key}: {name}", part, "one value")
        is_scalar = isinstance(part.value, str | int | float)
        yield f"{name}={part.text if is_scalar else json.dumps(part.plain())}"


def _single_value(field: OptionField, node: Node) -> str:
    """Return one value in the form that its option accepts."""
    key = field.option.long
    if isinstance(node.value, bool) and field.is_switch:
        return "on" if node.value else "off"
    if isinstance(node.value, bool) and not field.words:
        raise _misfit(key, node, _kind(field))
    if node.value is None or isinstance(node.value, tuple | dict):
        raise _misfit(key, node, "one value")
    try:
        for word in split_names(node.text) if field.is_listed else (node.text,):
            check_value(field, word)
    except ValueError as error:
        raise UsageError(f"{node.where}: {key}: {error}") from error
    return node.text


def _kind(field: OptionField) -> str:
    """Describe, for an error, the values of an option that has no list of words."""
    if field.item_type is Path:
        return "a path"
    if field.type is int and field.option.form != "GB":
        return "a whole number"
    return "a number" if field.type in (int, float) else "text"


def _misfit(key: str, node: Node, expected: str) -> UsageError:
    return UsageError(f"{node.where}: {key}: {json.dumps(node.plain())}: must be {expected}")


def with_choice(fixed: FileValues, choice: FileValues) -> dict[str, tuple[str, ...]]:
    """Return the options of one run: the options that are equal in every run, and those of this run's choice."""
    pairs = {key for key in choice if FIELDS[key].is_pairs}
    merged = {key: merged_pairs(fixed.get(key, ()), choice[key]) for key in pairs}
    return {**fixed, **choice, **merged}
