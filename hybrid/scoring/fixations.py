"""Recorded fixations of people, read from the usual files of a folder.

    found = read_fixations(Path("eyes"), images=None, screen=None)
    found.paths, found.skipped          # one path a viewer and picture; lines that name file, row and reason

- `*.csv`, `*.tsv`: a row a fixation, with columns for the picture (`image`, `picture`, `name`, ...), `x`, `y`, and
  where known `t` (duration in ms) and `subject`; consecutive rows of a picture and subject are one path.
- `*.json`: a list of paths as in COCO-Search18 and COCO-FreeView, `{"name", "subject", "X": [], "Y": [], "T": []}`.
- `*.mat` with `fixLocs` (CAT2000) and `NAME_fixPts.png` or `.jpg` (MIT1003): a matrix as large as the picture that is
  not 0 at fixations. They have no order and no times, and serve saliency only.

Positions are pixels of the picture, or of the screen on which it was shown as large as it fits, centred.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import inspect, read_image_file

Floats = NDArray[np.float64]

PICTURES: Final = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
POINTS: Final = "_fixpts"
# Columns by meaning, in small letters; the first that exists is read.
NAMES: Final[Mapping[str, Sequence[str]]] = {
    "picture": ("image", "picture", "name", "filename", "file", "stimulus", "image_name", "img"),
    "x": ("x", "fix_x", "x_px", "fixation_x"),
    "y": ("y", "fix_y", "y_px", "fixation_y"),
    "t": ("t", "t_ms", "duration", "duration_ms", "dur", "fix_duration"),
    "subject": ("subject", "viewer", "observer", "participant", "subject_id"),
}
MAX_BYTES: Final = 500_000_000


@dataclass(frozen=True)
class RecordedPath:
    """The fixations of one viewer on one picture: (n, 3) of x and y in 0..1 of its size, and duration in ms."""

    picture: str  # Its path relative to the folder of pictures
    subject: str
    points: Floats
    # Whether order and durations are known.
    ordered: bool = True


@dataclass
class Fixations:
    """What was read: the paths, the file of each picture by its relative path, and what was skipped and why."""

    paths: list[RecordedPath] = field(default_factory=list)
    pictures: dict[str, Path] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


class _Reader:
    """Reads the files of one folder.

    Args:
        folder: the folder with fixations.
        images: folder of the pictures; the same by default.
        screen: width and height of the screen to which positions belong; None for pixels of the picture.
    """

    def __init__(self, folder: Path, images: Path | None, screen: tuple[int, int] | None) -> None:
        self.folder, self.images, self.screen = folder, images or folder, screen
        self.found = Fixations()
        self._sizes: dict[str, tuple[int, int]] = {}
        files = [path for path in sorted(self.images.rglob("*")) if path.suffix.lower() in PICTURES]
        files = [path for path in files if not path.stem.lower().endswith(POINTS) and path.is_file()]
        self._by_key: dict[str, list[Path]] = {}
        for path in files:
            relative = path.relative_to(self.images).as_posix()
            for key in {relative, path.name, path.stem, path.relative_to(self.images).with_suffix("").as_posix()}:
                self._by_key.setdefault(key, []).append(path)

    def picture(self, name: str, location: str) -> str:
        """Return the relative path of a named picture. Raises `DataError` if it is missing or its name not unique."""
        matches = self._by_key.get(name) or self._by_key.get(Path(name).name) or []
        if len(matches) != 1:
            reason = "no picture" if not matches else f"{len(matches)} pictures have the name"
            raise DataError(f"{location}: {reason} {name!r:.80} in {self.images}")
        relative = matches[0].relative_to(self.images).as_posix()
        if relative not in self._sizes:
            image = inspect(read_image_file(matches[0], relative), relative)
            self._sizes[relative] = (image.width, image.height)
            self.found.pictures[relative] = matches[0]
        return relative

    def share(self, relative: str, x: float, y: float, location: str) -> tuple[float, float]:
        """Return a position as shares of the picture's size. Raises `DataError` if it is outside the picture."""
        width, height = self._sizes[relative]
        if self.screen is not None:
            scale = min(self.screen[0] / width, self.screen[1] / height)
            x = (x - (self.screen[0] - scale * width) / 2) / scale
            y = (y - (self.screen[1] - scale * height) / 2) / scale
        if not (0 <= x < width and 0 <= y < height):
            hint = "" if self.screen else "; positions on a screen need --screen WIDTHxHEIGHT"
            raise DataError(f"{location}: ({x:g}, {y:g}) is outside {relative} of {width} x {height} px{hint}")
        return x / width, y / height

    def skip(self, error: Exception) -> None:
        """Note what is left out."""
        self.found.skipped.append(str(error))

    def table(self, path: Path) -> None:
        """Read a table with a row a fixation."""
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path.name}: larger than {MAX_BYTES:,} bytes")
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            rows = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            columns = {name.strip().lower(): name for name in rows.fieldnames or () if name}
            chosen = {key: next((columns[n] for n in names if n in columns), None) for key, names in NAMES.items()}
            missing = [key for key in ("picture", "x", "y") if chosen[key] is None]
            if missing:
                listing = ", ".join(columns) or "no column"
                raise DataError(f"{path.name}: no column for {' and '.join(missing)}; available: {listing}")
            runs: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
            for row in rows:
                location = f"{path.name}:{rows.line_num}"
                try:
                    key, point = self._row(row, chosen, location)
                except DataError as error:
                    self.skip(error)
                    continue
                runs.setdefault(key, []).append(point)
        if not runs:
            raise DataError(f"{path.name}: no usable row")
        for (relative, subject), points in runs.items():
            self._add(relative, subject, points, ordered=chosen["t"] is not None)

    def _row(
        self, row: Mapping[str, str | None], chosen: Mapping[str, str | None], location: str
    ) -> tuple[tuple[str, str], tuple[float, float, float]]:
        cells = {key: (row.get(column) or "").strip() if column else "" for key, column in chosen.items()}
        if not cells["picture"]:
            raise DataError(f"{location}: no picture is named")
        relative = self.picture(cells["picture"], location)
        x, y = (_number(cells[key], f"{location}: {key}") for key in ("x", "y"))
        t = _number(cells["t"], f"{location}: t") if chosen["t"] else 0.0
        if t < 0:
            raise DataError(f"{location}: t {t:g} is below 0")
        return (relative, cells["subject"]), (*self.share(relative, x, y, location), t)

    def paths(self, path: Path) -> None:
        """Read a list of paths."""
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path.name}: larger than {MAX_BYTES:,} bytes")
        try:
            entries = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path.name}: is not JSON ({error})") from error
        if not isinstance(entries, list) or not entries:
            raise DataError(f"{path.name}: expected a list of paths with name, X, Y and T")
        for number, entry in enumerate(entries, 1):
            try:
                self._entry(entry, f"{path.name}, path {number}")
            except DataError as error:
                self.skip(error)

    def _entry(self, entry: Any, location: str) -> None:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise DataError(f"{location}: expected an object with name, X, Y and T")
        columns = [entry.get(key) for key in ("X", "Y", "T")]
        x, y, t = columns[0], columns[1], columns[2] if columns[2] is not None else [0.0] * len(columns[0] or ())
        if not all(isinstance(column, list) for column in (x, y, t)) or not len(x) == len(y) == len(t) > 0:  # type: ignore[arg-type]
            raise DataError(f"{location}: X, Y and T must be lists of one length, and not empty")
        relative, points = self.picture(entry["name"], location), []
        for place, numbers in enumerate(zip(x, y, t, strict=True), 1):  # type: ignore[arg-type]
            try:
                a, b, ms = (_number(value, f"{location}, fixation {place}") for value in numbers)
                points.append((*self.share(relative, a, b, f"{location}, fixation {place}"), max(0.0, ms)))
            except DataError as error:
                # A fixation beside the picture costs only itself.
                self.skip(error)
        if not points:
            raise DataError(f"{location}: no fixation is inside its picture")
        task = f" {entry['task']}" if isinstance(entry.get("task"), str) else ""
        self._add(relative, f"{entry.get('subject', '')}{task}", points, ordered=columns[2] is not None)

    def matrix(self, path: Path, name: str, values: NDArray[Any]) -> None:
        """Read a matrix that is not 0 at fixations."""
        relative = self.picture(name, path.name)
        width, height = self._sizes[relative]
        if values.ndim != 2 or values.shape != (height, width):
            shape = " x ".join(map(str, values.shape[::-1]))
            raise DataError(f"{path.name}: a matrix of {shape} is not of {relative}, {width} x {height} px")
        rows, columns = np.nonzero(values)
        if not len(rows):
            raise DataError(f"{path.name}: no fixation")
        points = [((x + 0.5) / width, (y + 0.5) / height, 0.0) for y, x in zip(rows, columns, strict=True)]
        self._add(relative, "", points, ordered=False)

    def _add(self, relative: str, subject: str, points: Sequence[tuple[float, float, float]], *, ordered: bool) -> None:
        self.found.paths.append(RecordedPath(relative, subject, np.array(points, float), ordered))


def _number(value: Any, location: str) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{location}: {value!r:.40} is not a number")
    return number


def read_fixations(folder: Path, images: Path | None = None, screen: tuple[int, int] | None = None) -> Fixations:
    """Read all fixations of a folder; the arguments are those of the reader.

    Raises:
        UsageError: no file of fixations, or none usable; the reasons are named.
    """
    reader, files = _Reader(folder, images, screen), list(_files(folder))
    for path in files:
        try:
            _read_file(reader, path)
        except DataError as error:
            reader.skip(error)
        except (OSError, ValueError) as error:
            reader.skip(DataError(f"{path.name}: cannot be read ({error})"))
    if not reader.found.paths:
        reasons = "".join(f"; {line}" for line in reader.found.skipped[:3])
        kinds = "*.csv, *.tsv, *.json, *.mat with fixLocs, NAME_fixPts.png"
        raise UsageError(f"--fixations {folder}: no usable fixations; files are {kinds}{reasons}")
    return reader.found


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        suffix = path.suffix.lower()
        is_points = suffix in PICTURES and path.stem.lower().endswith(POINTS)
        if path.is_file() and (suffix in (".csv", ".tsv", ".json", ".mat") or is_points):
            yield path


def _read_file(reader: _Reader, path: Path) -> None:
    match path.suffix.lower():
        case ".csv" | ".tsv":
            reader.table(path)
        case ".json":
            reader.paths(path)
        case ".mat":
            from scipy.io import loadmat

            try:
                values = loadmat(path, variable_names=["fixLocs"]).get("fixLocs")
            # The reader raises whatever a damaged file leads it to.
            except Exception as error:
                raise DataError(f"{path.name}: cannot be read ({error})") from error
            if values is None:
                raise DataError(f"{path.name}: no variable fixLocs")
            reader.matrix(path, path.stem, np.asarray(values.todense() if hasattr(values, "todense") else values))
        case _:
            from hybrid.core.images import decode

            # JPEG leaves traces around a fixation: only what is bright is one.
            pixels = decode(read_image_file(path, path.name), path.name)
            reader.matrix(path, path.stem[: -len(POINTS)], pixels.max(axis=2) > 127)
