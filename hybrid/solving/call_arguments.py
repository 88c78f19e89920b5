"""Repairs the arguments that an MLLM wrote in a call, so that they fit the tool's schema.

    images, args, repairs = read_arguments(tool, {"bbox_2d": [1, 2, 30, 40]}, frame, image_registry)
    # ("img:1",), {"box": {"x0": 1, "y0": 2, "x1": 30, "y1": 40}}, ("image left out", "coordinates")

Only unambiguous deviations are repaired; everything else is left to the tool's own validation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.core.errors import Fault, ToolError
from hybrid.core.types import Json
from hybrid.models.call_forms import ARGUMENTS
from hybrid.models.literals import read_value
from hybrid.models.toolspec import IMAGE, IMAGES, argument_schemas
from hybrid.solving.coordinates import CoordinateSystem
from hybrid.solving.images import ImageRegistry
from hybrid.tool import Tool

# Kinds of repairs.
IMAGE_NAME, LEFT_OUT, AS_TEXT, LIST, COORDINATES = "image name", "image left out", "JSON as text", "list", "coordinates"
NESTED, EMPTY = "arguments in arguments", "empty argument"
# Name of a step before a call, which records the text dialect of the call (`read_from`) and the `repairs` to it.
AS_READ = "call as read"

_IMAGE_KEY = re.compile(
    r"(?:(?:input|target|source)_)?(?:image|img|picture)s?_?"
    r"(?:ids?|idx|index|indices|indexes|names?|numbers?|no|paths?|urls?|files?|refs?)?",
    re.IGNORECASE,
)
_ONE_OF_IMAGES = re.compile(r"(?:image|img|picture)_?([1-9a-d])|(first|second)_(?:image|img|picture)", re.IGNORECASE)
_IMAGE_NAME = re.compile(
    r"[\s<\[({\"'‘“`#|@]*(?:attachment://)?(?:image|img|picture|photo|figure|图片?)?\s*[:：_#.|-]?\s*"
    r"([1-9]\d{0,5}(?:\.[1-9]\d{0,5})*)(?:\.(?:png|jpe?g|webp))?[\s>\])}\"'’”`|.]*",
    re.IGNORECASE,
)
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINAL = re.compile(rf"(?:the )?({'|'.join(_ORDINALS)}) (?:image|img|picture|photo|figure)", re.IGNORECASE)
_LETTERS = re.compile(r"[A-Z]{1,3}(?:\s*,\s*[A-Z]{1,3})*")
_LETTER = re.compile("[A-Z]{1,3}")
_TWO_CORNERS = ("top_left", "bottom_right")
_BOX, _POINT = ("x0", "y0", "x1", "y1"), ("x", "y")
_BOX_KEYS = re.compile(
    r"(?:crop_?|target_?)?(?:b(?:ounding_?)?box(?:es)?|box(?:es)?|region|roi|area|rect(?:angle)?)"
    r"(?:_?2d|_?coord(?:inate)?s)?",
    re.IGNORECASE,
)
_POINT_KEYS = re.compile(r"(?:points?(?:_?2d)?|coordinates?|coords?|position|cent(?:er|re))", re.IGNORECASE)
_CORNERS = (
    ("x1", "y1", "x2", "y2"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("min_x", "min_y", "max_x", "max_y"),
    ("left", "top", "right", "bottom"),
)
_NUMBERS = re.compile(r"(?:<\|?/?(?:b?box|point|quad)\w*\|?>|[\s()\[\],;])+")


def read_arguments(
    tool: Tool, arguments: Mapping[str, Json], frame: CoordinateSystem, image_registry: ImageRegistry
) -> tuple[tuple[str, ...], dict[str, Json], tuple[str, ...]]:
    """Return the image names, the tool's own arguments with coordinates still in the frame, and the kinds of repairs.

    Raises:
        ToolError: images or coordinates are ambiguous or missing; the message tells the model what is expected.
    """
    reading = _Reading(tool, frame, image_registry)
    rest = reading.unwrapped(dict(arguments))
    images = reading.images(rest) if tool.card.images[1] else ()
    return images, reading.fields(rest), tuple(dict.fromkeys(reading.repairs))


def _argument_error(message: str) -> ToolError:
    return ToolError(message, Fault.BAD_ARGUMENTS)


class _Reading:
    def __init__(self, tool: Tool, frame: CoordinateSystem, image_registry: ImageRegistry) -> None:
        self.repairs: list[str] = []
        self._tool, self._frame, self._registry = tool, frame, image_registry
        self._nodes = argument_schemas(tool.args)

    def unwrapped(self, rest: dict[str, Any]) -> dict[str, Any]:
        """Unwrap arguments that contain the whole call again."""
        for key in ARGUMENTS:
            value = self._from_text(rest[key]) if isinstance(rest.get(key), str) else rest.get(key)
            if key not in self._nodes and isinstance(value, dict):
                outer = {name: item for name, item in rest.items() if name != key and item != self._tool.card.name}
                if not outer.keys() & value.keys():
                    self.repairs.append(NESTED)
                    return {**outer, **value}
        return rest

    def images(self, rest: dict[str, Any]) -> tuple[str, ...]:
        """Remove the images from the arguments and return their names."""
        image_keys = sorted(key for key in rest if key not in self._nodes and _ONE_OF_IMAGES.fullmatch(key))
        if len(image_keys) > 1 and all(isinstance(rest[key], str) for key in image_keys) and rest.get(IMAGES) is None:
            # Keys such as `image_1` and `image_2`, or `first_image` and `second_image`.
            self.repairs.append(IMAGE_NAME)
            rest[IMAGES] = [rest.pop(key) for key in image_keys]
        keys = [key for key in rest if key not in self._nodes and _IMAGE_KEY.fullmatch(key)]
        filled = [(key, value) for key in keys if (value := rest.pop(key)) not in (None, [], "")]
        if not filled:
            if len(self._registry.names) != 1 or len(keys) != len([key for key in keys if key in (IMAGE, IMAGES)]):
                raise _argument_error(
                    f'the argument "image" is missing: name an image; the images are: {self._image_list}'
                )
            self.repairs.append(LEFT_OUT)
            return self._registry.names
        read = [self._image_names(key, value) for key, value in filled]
        if any(names != read[0] for names in read):
            raise _argument_error('give "image" or "images", not both')
        return read[0]

    @property
    def _image_list(self) -> str:
        return ", ".join(self._registry.names) or "none"

    def _image_names(self, key: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = self._from_text(value)
        if isinstance(value, str) and self._registry.find(value) is None:
            parts = re.split(r"\s*(?:[,;&]|\band\b)\s*", value)
            value = parts if len(parts) > 1 and all(map(_IMAGE_NAME.fullmatch, parts)) else value
        names = value if isinstance(value, list | tuple) else [value]
        if (bare := [_bare_name(name) for name in names]) != list(names):
            self.repairs.append(IMAGE_NAME)
            names = bare
        if not all(isinstance(name, str) or type(name) is int for name in names):
            raise _argument_error(f'the argument "{key}" must hold names of images: {self._image_list}')
        if any(type(name) is int for name in names) or re.search("idx|ind", key):
            # Numbers count images from 1, or from 0 if only counting from 0 fits. If both ways fit, the numbers are
            # ambiguous.
            if not all(str(name).strip().isdecimal() for name in names):
                return tuple(self._image(str(name)) for name in names)
            candidates = [tuple(f"img:{int(name) + first}" for name in names) for first in (0, 1)]
            fits = [candidate for candidate in candidates if all(map(self._registry.find, candidate))]
            if not fits or (len(fits) == 2 and key not in (IMAGE, IMAGES)):
                raise _argument_error(f'the argument "{key}" must hold names of images: {self._image_list}')
            self.repairs.append(IMAGE_NAME)
            return fits[0]
        return tuple(self._image(str(name)) for name in names)

    def _image(self, name: str) -> str:
        if ordinal := _ORDINAL.fullmatch(name.strip()[:80]):
            name = f"image {_ORDINALS[ordinal[1].lower()]}"
        match = None if self._registry.find(name) else _IMAGE_NAME.fullmatch(name[:80])
        if match and self._registry.find(f"img:{match[1]}") is not None:
            self.repairs.append(IMAGE_NAME)
            return f"img:{match[1]}"
        return name

    def _from_text(self, text: str) -> Any:
        """Return the value if the text is exactly one JSON list or object, else the text."""
        try:
            value, end, _ = read_value(text)
        except ValueError:
            return text
        if text[end:].strip() or not isinstance(value, list | dict):
            return text
        self.repairs.append(AS_TEXT)
        return value

    def fields(self, rest: dict[str, Any]) -> dict[str, Json]:
        """Return the tool's own arguments, repaired."""
        for key in [key for key, value in rest.items() if key in self._nodes and value is None]:
            self.repairs.append(EMPTY)
            del rest[key]
        self._gather(rest, _BOX, _BOX_KEYS)
        self._gather(rest, _POINT, _POINT_KEYS)
        return {key: self._value(key, value) for key, value in rest.items()}

    def _gather(self, rest: dict[str, Any], names: tuple[str, ...], keys: re.Pattern[str]) -> None:
        """Move a box or a point with another name, or given as separate numbers, to the tool's argument."""
        places = [name for name, node in self._nodes.items() if names == _shape(node) or names == _shape(_items(node))]
        if len(places) != 1 or rest.get(places[0]) is not None:
            return
        if names is _BOX and all(key in rest and key not in self._nodes for key in _TWO_CORNERS):
            rest["box" if "box" not in self._nodes else "bbox"] = {key: rest.pop(key) for key in _TWO_CORNERS}
        matching = [key for key in rest if key not in self._nodes and keys.fullmatch(key)]
        forms = (names, *_CORNERS) if names is _BOX else (names,)
        flat = [form for form in forms if all(key in rest and key not in self._nodes for key in form)]
        if len(matching) == 1 and not flat:
            value = rest.pop(matching[0])
            value = self._from_text(value) if isinstance(value, str) else value
            # In Gemini's own format the four numbers begin with y, regardless of the declared frame.
            if re.search(r"^box_?2d", matching[0]) and isinstance(value, list) and not self._frame.name.endswith("_yx"):
                raise _argument_error(
                    f"{matching[0]}: which number is x is not certain; write {_expected_form(places[0], names)}"
                )
        elif len(flat) == 1 and not matching:
            value = {name: rest.pop(key) for name, key in zip(names, flat[0], strict=True)}
        else:
            return
        self.repairs.append(COORDINATES)
        rest[places[0]] = value
        if "label" not in self._nodes:
            # Qwen-VL is trained to write a box together with a label of its content.
            rest.pop("label", None)

    def _value(self, key: str, value: Any) -> Any:
        node = self._nodes.get(key, {})
        kinds = {kind.get("type") for kind in (node, *node.get("anyOf", ()))}
        shape, of_items = _shape(node), _shape(_items(node))
        if isinstance(value, str) and kinds & {"object", "array"} and "string" not in kinds:
            value = self._from_text(value)
            if of_items:
                value = self._numbers_in(value)
        if shape:
            return self._placed(key, value, shape)
        if of_items:
            alone = isinstance(value, Mapping) or (
                isinstance(value, list) and len(value) == len(of_items) and _are_numbers(value)
            )
            if of_items == _POINT and isinstance(value, Mapping) and value and all(map(_LETTER.fullmatch, value)):
                # `{"A": [x, y], "B": [x, y]}` gives each point under the letter drawn next to it.
                self.repairs.append(COORDINATES)
                return [{"label": letter, **self._placed(key, _pair(spot), _POINT)} for letter, spot in value.items()]
            if isinstance(value, list) and value and not alone and _are_numbers(value):
                raise _argument_error(f"{key}: write a list of {_expected_form(key, of_items).partition(': ')[2]}")
            self.repairs += [LIST] if alone else []
            if isinstance(value, str) and (letters := _LETTERS.fullmatch(value)):
                self.repairs.append(LIST)
                value = re.split(r"\s*,\s*", letters[0])
            items = [value] if alone else value
            return [self._placed(key, item, of_items) for item in items] if isinstance(items, list) else items
        if kinds == {"array"} and isinstance(value, str) and _items(node).get("type") == "string":
            self.repairs.append(LIST)
            return re.split(r"\s*,\s*", value) if "enum" in _items(node) else [value]
        return value

    def _numbers_in(self, value: Any) -> Any:
        """Return the numbers of a text that contains nothing else, such as `(10,20),(30,40)`."""
        if not isinstance(value, str) or len(value) > 200:
            return value
        numbers = [part for part in _NUMBERS.split(value) if part]
        return numbers if _are_numbers(numbers) and numbers else value

    def _placed(self, key: str, value: Any, names: tuple[str, ...]) -> Any:
        """Return a box or a point with named coordinates."""
        value = self._numbers_in(value)
        if isinstance(value, Mapping) and names == _BOX and value.keys() == set(_TWO_CORNERS):
            value = [_pair(value[key]) for key in _TWO_CORNERS]
        if isinstance(value, Mapping):
            keys = _BOX_KEYS if names == _BOX else _POINT_KEYS
            inner = [name for name in value if keys.fullmatch(name)]
            form = next((form for form in _CORNERS if names == _BOX and all(corner in value for corner in form)), None)
            if len(inner) == 1 and not any(name in value for name in names):
                others = {name: item for name, item in value.items() if name != inner[0]}
                return {**others, **self._placed(key, value[inner[0]], names)}
            if form is not None and "x0" not in value:
                self.repairs.append(COORDINATES)
                others = {name: item for name, item in value.items() if name not in form}
                return {**others, **{name: value[corner] for name, corner in zip(names, form, strict=True)}}
            if names == _BOX and "x" in value and not any(name in value for name in names):
                raise _argument_error(
                    f"{key}: x and y of a box may be a corner or its centre; write {_expected_form(key, names)}"
                )
            return value
        if isinstance(value, str) and names == _POINT and re.fullmatch("[A-Z]{1,3}", value):
            # Accept the letter drawn next to the point.
            self.repairs.append(COORDINATES)
            return {"label": value}
        if isinstance(value, list | tuple):
            flat = [number for part in value for number in (part if isinstance(part, list | tuple) else [part])]
            if len(flat) != len(names) or not _are_numbers(flat):
                raise _argument_error(f"{key}: write {_expected_form(key, names)}")
            self.repairs.append(COORDINATES)
            place = self._frame.under_names([float(number) for number in flat])
            if names == _BOX and not (place["x0"] < place["x1"] and place["y0"] < place["y1"]):
                raise _argument_error(
                    f"{key}: the second corner must be right of and below the first; write {_expected_form(key, names)}"
                )
            return place
        return value


def _bare_name(name: Any) -> Any:
    """Return the name from an image given as an object: `{"name": "img:1"}`."""
    candidates = [name[key] for key in ("name", "id", "image") if key in name] if isinstance(name, Mapping) else []
    return candidates[0] if len(candidates) == 1 and isinstance(candidates[0], str) else name


def _pair(spot: Any) -> Any:
    """Return the two numbers of a point that is an object; return any other value unchanged."""
    return [spot["x"], spot["y"]] if isinstance(spot, Mapping) and spot.keys() == {"x", "y"} else spot


def _items(node: Mapping[str, Any]) -> Mapping[str, Any]:
    items: Mapping[str, Any] = node.get("items", {})
    return items


def _shape(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the coordinate names of a box or point schema; empty for any other schema."""
    properties = node.get("properties", {})
    return next((names for names in (_BOX, _POINT) if all(name in properties for name in names)), ())


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(
        (isinstance(value, int | float) and not isinstance(value, bool))
        or (isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}(?:\.\d{0,9})?\s*", value) is not None)
        for value in values
    )


def _expected_form(key: str, names: Sequence[str]) -> str:
    return f'"{key}": {{{", ".join(f"{chr(34)}{name}{chr(34)}: ..." for name in names)}}}'
