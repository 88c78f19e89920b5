"""Converts cells of a table to values: texts, lists of texts, numbers, and images in every form used in tables."""

from __future__ import annotations

import ast
import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from hybrid.benchmarks._shared.paths import located, read_located
from hybrid.benchmarks._shared.rows import DataRow, checked_text
from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS

# Largest size of a picture in a row, in bytes.
MAX_IMAGE_BYTES: Final = 200_000_000
MAX_IMAGES: Final = 100
# Maximum length at which VLMEvalKit treats the text of an image as the index of the row that contains the image
# (image_base.py).
REFERENCE: Final = 64
MAX_PATH_LENGTH: Final = 1000
# Largest length of a text that is parsed as a list.
MAX_LIST_LENGTH: Final = 100_000
_FILE: Final = re.compile(r"[^\n]{1,1000}\.[A-Za-z0-9]{2,5}")
_DATA_URL: Final = re.compile(r"data:image/[\w.+-]{1,40};base64,", re.IGNORECASE)


def scalar_text(row: DataRow, column: str) -> str | None:
    """Return a text, or a number or truth value as text; None for an empty cell. Raises `DataError` for a list."""
    value = row.cell(column)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return _as_text(value, f"{row.where}, column {column}")


def _as_text(value: Any, location: str) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        # In a column with an empty cell, whole numbers are stored as floats.
        value = int(value)
    if not isinstance(value, str | int | float):
        raise DataError(f"{location}: expected text, found {type(value).__name__}")
    text = checked_text(str(value), location).strip()
    if "\0" in text:
        raise DataError(f"{location}: a text with a NUL character")
    return text


def texts(row: DataRow, column: str) -> tuple[str, ...] | None:
    """Return the list in a cell, also one written as text (`["a", "b"]`); None for an empty list or any other cell."""
    value = parse_list(row.cell(column))
    if value is None:
        return None
    return tuple(_as_text("" if item is None else item, f"{row.where}, column {column}") for item in value)


def parse_list(value: Any) -> list[Any] | None:
    """Return a list, also one written as text in JSON's or Python's syntax; None for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]") and len(text) <= MAX_LIST_LENGTH):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            items = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(items, list):
            return items
    return None


# Keys of the two parts of a choice in data sets of the hub: its text, and its label.
_TEXT_KEYS: Final = ("text", "texts", "choice", "choices", "option", "options", "value", "values", "content")
_LABEL_KEYS: Final = ("label", "labels", "key", "keys", "letter", "letters", "id", "ids", "index")


def labelled(row: DataRow, column: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the labels and texts of the choices in a cell; None if the cell does not map labels to texts.

    A cell may also be a string with such a mapping in JSON's or Python's syntax. Supported are `{"A": TEXT, ...}`,
    `{"text": [TEXT, ...], "label": ["A", ...]}` and `[{"label": "A", "text": TEXT}, ...]`. Raises `DataError` for
    missing or duplicate labels, and for invalid texts.
    """
    pairs = _label_pairs(_mapping(row.cell(column)))
    if pairs is None:
        return None
    location = f"{row.where}, column {column}"
    # In a table with typed columns, every row has a key for each choice of any row; drop the empty ones at the end.
    while pairs and pairs[-1][1] in (None, ""):
        pairs.pop()
    labels = tuple(_as_text(label, location) for label, _ in pairs)
    if len(set(labels)) < len(labels) or "" in labels:
        raise DataError(f"{location}: two choices have the same label, or a choice has none: {', '.join(labels):.120}")
    return labels, tuple(_as_text("" if text is None else text, location) for _, text in pairs)


def _mapping(value: Any) -> Any:
    """Parse a cell with the text of a mapping or a list of mappings in JSON's or Python's syntax."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not (text.startswith("{") and text.endswith("}") and len(text) <= MAX_LIST_LENGTH):
        return parse_list(value)
    items = parse_list(f"[{text}]")
    return items[0] if items is not None and len(items) == 1 else None


def _label_pairs(value: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(value, list) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        # Arrow returns a column of maps as pairs.
        value = dict(value)
    if isinstance(value, list | tuple) and value and all(isinstance(item, dict) for item in value):
        label_pairs = [(_part(item, _LABEL_KEYS), _part(item, _TEXT_KEYS)) for item in value]
        return (
            None
            if any(text is None or isinstance(text, list | dict) for _, text in label_pairs)
            else _numbered(label_pairs)
        )
    if not isinstance(value, dict) or not value:
        return None
    texts_of, labels = _part(value, _TEXT_KEYS), _part(value, _LABEL_KEYS)
    if isinstance(texts_of, list | tuple):
        if labels is None:
            return _numbered([(None, text) for text in texts_of])
        same = isinstance(labels, list | tuple) and len(labels) == len(texts_of)
        return list(zip(labels, texts_of, strict=True)) if same else None
    one_choice = texts_of is not None and labels is not None
    if one_choice or any(isinstance(text, list | tuple | dict) for text in value.values()):
        return None
    pairs = [(str(label), text) for label, text in value.items()]
    # Labels that are letters or numbers define the order of the choices; JSON keys have no reliable order.
    if all(re.fullmatch(r"\(?[A-Za-z][).]?", label) for label, _ in pairs):
        return sorted(pairs, key=lambda pair: pair[0].strip("().").upper())
    if all(label.isascii() and label.isdigit() for label, _ in pairs):
        return sorted(pairs, key=lambda pair: int(pair[0]))
    return pairs


def _part(item: dict[str, Any], names: Sequence[str]) -> Any:
    return next((item[name] for name in names if name in item), None)


def _numbered(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Label the pairs with letters if none has a label."""
    if any(label is not None for label, _ in pairs):
        return pairs
    return [(letter, text) for letter, (_, text) in zip(LETTERS, pairs, strict=False)]


def numbers(value: Any) -> tuple[float, ...] | None:
    """Return finite numbers of a list, or of a text such as `12, 30`, `(12, 30)`, `[1, 2, 3, 4]`; else None."""
    items = parse_list(value)
    if items is None and isinstance(value, str):
        items = list(value.strip().strip("()[]").split(","))
    if items is None:
        return None
    try:
        read = tuple(float(item) for item in items if not isinstance(item, bool))
    except (TypeError, ValueError):
        return None
    return read if len(read) == len(items) and all(map(math.isfinite, read)) else None


class ImageOfRow(str):
    """The id of another row, whose image this row shows."""

    __slots__ = ()


def images(row: DataRow, columns: Sequence[str], folder: Path) -> Iterator[tuple[str, bytes | ImageOfRow]]:
    """Yield each image of a row with its location for messages: its bytes, or the id of the row that contains it.

    A cell is a path relative to the folder, base64, a data URL, bytes, a mapping with bytes or path, or a list of
    these. Raises `DataError` for anything else, and for a picture that is too large.
    """
    count = 0
    for column in columns:
        location = f"{row.where}, column {column}"
        value = row.cell(column)
        cells = value if isinstance(value, list | tuple) else _split_images(value)
        for cell in cells:
            if cell is None or cell == "":
                continue
            count += 1
            if count > MAX_IMAGES:
                raise DataError(f"{location}: more than {MAX_IMAGES} images")
            data = _image(cell, location, folder)
            if not isinstance(data, ImageOfRow) and len(data) > MAX_IMAGE_BYTES:
                raise DataError(f"{location}: an image of {len(data):,} bytes; at most {MAX_IMAGE_BYTES:,} are read")
            yield location, data


def _split_images(value: Any) -> Sequence[Any]:
    """Return the images of a single-value cell: the items of a list written as text, else the value itself."""
    if not (isinstance(value, str) and value.startswith("[")):
        return (value,)
    text = value.strip()
    if len(text) <= MAX_LIST_LENGTH:
        return parse_list(text) or (value,)
    # A list of base64 images is only split, because base64 has no quotes or commas and parsing millions of characters
    # is slow.
    parts = [part.strip().strip("'\"") for part in text.removeprefix("[").removesuffix("]").split(",")]
    if not any("data:" in part[:8] for part in parts):
        return parts
    # Each data URL contains a comma, at which it was split, so join its two parts again.
    return [f"{head},{tail}" for head, tail in zip(parts[::2], parts[1::2], strict=False)]


def _image(cell: Any, location: str, folder: Path) -> bytes | ImageOfRow:
    if isinstance(cell, dict):
        data, path = cell.get("bytes"), cell.get("path")
        cell = data if data is not None else path
    if isinstance(cell, bytes):
        return cell
    if not isinstance(cell, str | int) or isinstance(cell, bool):
        raise DataError(f"{location}: expected a path, base64 or bytes of an image, found {type(cell).__name__}")
    text = str(cell).strip()
    if "\0" in text[:1000]:
        raise DataError(f"{location}: a text with a NUL character")
    if url := _DATA_URL.match(text):
        return _decoded(text[url.end() :], location)
    # Neither base64 nor a row's id contains a dot before its end; a file name without an ending is looked up.
    path = located(folder, text) if len(text) <= MAX_PATH_LENGTH and "\n" not in text else None
    if path is not None or _FILE.fullmatch(text):
        if path is not None and (size := path.stat().st_size) > MAX_IMAGE_BYTES:
            raise DataError(f"{location}: {text!r:.80} has {size:,} bytes; at most {MAX_IMAGE_BYTES:,} are read")
        return read_located(folder, text, location)
    if len(text) <= REFERENCE:
        return ImageOfRow(text)
    return _decoded(text, location)


def _decoded(text: str, location: str) -> bytes:
    if len(text) > MAX_IMAGE_BYTES * 4 // 3 + 100:
        raise DataError(f"{location}: an image of more than {MAX_IMAGE_BYTES:,} bytes")
    try:
        return base64.b64decode("".join(text.split()) if re.search(r"\s", text) else text, validate=True)
    except (binascii.Error, ValueError) as error:
        quoted = f"{text[:40]!r}{'...' if len(text) > 40 else ''}"
        raise DataError(f"{location}: {quoted} is neither the path of an image nor base64 ({error})") from error
