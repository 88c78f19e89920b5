"""Recorded fixations of people, read from files of common formats in a folder.

    found = read_fixations(Path("eyes"), images=None, screen=None)
    found.paths, found.skipped          # one path per viewing; lines that name file, row and reason
    found.notes                         # what was read without order, and why

- `*.csv`, `*.tsv`: one row per fixation, with columns for the picture (`image`, `picture`, `name`, ...), `x`, `y`, and
  where known `t` (duration in ms) and `subject`; consecutive rows of a picture and subject are one path. Rows without a
  subject may come from several viewers, so they have no order, and are used for saliency only.
- `*.json`: a list of paths as in COCO-Search18 and COCO-FreeView, `{"name", "subject", "X": [], "Y": [], "T": []}`.
- `*.mat` with `fixLocs` (CAT2000) and `NAME_fixPts.png` or `.jpg` (MIT1003): a matrix of the picture's size that is not
  0 at fixations. These files have no order and no times, and are used for saliency only.

Positions are pixels of the picture, or of the screen on which it was shown centred, at the largest size that fits. A
file whose `t` cannot be durations in ms is used for saliency only.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hybrid.core.errors import DataError, UsageError
from hybrid.core.images import inspect, read_image_file

Floats = NDArray[np.float64]

PICTURES: Final = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
POINTS: Final = "_fixpts"
# Accepted column names by meaning, in lower case; the first that exists is read.
NAMES: Final[Mapping[str, Sequence[str]]] = {
    "picture": ("image", "picture", "name", "filename", "file", "stimulus", "image_name", "img"),
    "x": ("x", "fix_x", "x_px", "fixation_x"),
    "y": ("y", "fix_y", "y_px", "fixation_y"),
    "t": ("t", "t_ms", "duration", "duration_ms", "dur", "fix_duration"),
    "subject": ("subject", "viewer", "observer", "participant", "subject_id"),
}
MAX_BYTES: Final = 500_000_000
# Longest possible duration of a fixation and of a path, in ms; a larger `t` is a clock time.
MAX_MS: Final = 600_000.0
# The median of a file's durations in ms is between these two values; it is about 250 for people.
MEDIAN_MS: Final = (20.0, 10_000.0)


@dataclass(frozen=True)
class RecordedPath:
    """The fixations of one viewer on one picture.

    `points` (n, 3) has x and y as shares of the picture's width and height, and the duration in ms.
    """

    picture: str  # The picture's path relative to the folder of pictures
    subject: str
    points: Floats
    # Whether order and durations are known.
    ordered: bool = True


@dataclass
class Fixations:
    """The result of reading: the paths, the file of each picture by its relative path, and skipped data with reasons.

    `notes` name paths that were read without order, and why.
    """

    paths: list[RecordedPath] = field(default_factory=list)
    pictures: dict[str, Path] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Reader:
    """Reads the files of one folder.

    Args:
        folder: the folder with fixations.
        images: folder of the pictures; by default the folder with fixations.
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
        """Return the relative path of a named picture.

        Raises `DataError` if the picture is missing or the name is not unique.
        """
        matches = self._by_key.get(name) or self._by_key.get(Path(name).name) or []
        if len(matches) != 1:
            reason = "no picture" if not matches else f"{len(matches)} pictures have the name"
            raise DataError(f"{location}: {reason} {name!r:.80} in {self.images}")
        relative = matches[0].relative_to(self.images).as_posix()
        if relative not in self._sizes:
            try:
                image = inspect(read_image_file(matches[0], relative), relative)
            except (OSError, DataError) as error:
                raise DataError(f"{location}: {relative} cannot be read ({error})") from error
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
        """Add a note about skipped data."""
        self.found.skipped.append(str(error))

    def table(self, path: Path) -> None:
        """Read a table with one row per fixation."""
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path.name}: larger than {MAX_BYTES:,} bytes")
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            rows = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            columns = {name.strip().lower(): name for name in rows.fieldnames or () if name}
            columns_by_key = {
                key: next((columns[n] for n in names if n in columns), None) for key, names in NAMES.items()
            }
            missing = [key for key in ("picture", "x", "y") if columns_by_key[key] is None]
            if missing:
                listing = ", ".join(columns) or "no column"
                raise DataError(f"{path.name}: no column for {' and '.join(missing)}; available: {listing}")
            paths = list(self._runs(rows, columns_by_key, path.name))
        if not paths:
            raise DataError(f"{path.name}: the file has no usable row")
        if columns_by_key["t"] is not None:
            anonymous = sum(len(run.points) for run in paths if not run.subject)
            if anonymous:
                self.found.notes.append(
                    f"{path.name}: {anonymous} rows without a subject may come from several viewers, so they have no "
                    "order and are used for saliency only; add a column subject to give them an order"
                )
            paths = self._with_durations(paths, path.name)
        self.found.paths += paths

    def _runs(self, rows: csv.DictReader[str], columns: Mapping[str, str | None], name: str) -> Iterator[RecordedPath]:
        """Yield a path for each run of rows with one picture and subject."""
        key, points = ("", ""), list[tuple[float, float, float]]()

        def path() -> Iterator[RecordedPath]:
            if points:
                ordered = columns["t"] is not None and key[1] != ""
                yield RecordedPath(*key, np.array(points, float), ordered)

        for row in self._rows(rows, name):
            location = f"{name}:{rows.line_num}"
            cells = {part: (row.get(column) or "").strip() if column else "" for part, column in columns.items()}
            path_key, point = (cells["picture"], cells["subject"]), None
            try:
                relative, point = self._row(cells, location, has_t=columns["t"] is not None)
                path_key = relative, cells["subject"]
            except DataError as error:
                self.skip(error)
                # An invalid row of the same viewing is skipped; an invalid row of another picture or viewer ends the
                # path.
                if self._relative(cells["picture"]) in ("", key[0]) and path_key[1] == key[1]:
                    continue
            if path_key != key:
                yield from path()
                key, points = path_key, []
            points += [point] if point else []
        yield from path()

    def _rows(self, rows: csv.DictReader[str], name: str) -> Iterator[dict[str, str]]:
        """Yield the rows that can be read at all."""
        while True:
            try:
                yield next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                # The `line_num` of the `DictReader` itself is that of the last row that could be read.
                self.skip(DataError(f"{name}:{rows.reader.line_num}: cannot be read ({error})"))

    def _relative(self, name: str) -> str:
        """Return the relative path of a named picture; the name itself if it is missing or not unique."""
        try:
            return self.picture(name, "") if name else ""
        except DataError:
            return name

    def _row(self, cells: Mapping[str, str], location: str, *, has_t: bool) -> tuple[str, tuple[float, float, float]]:
        if not cells["picture"]:
            raise DataError(f"{location}: the row names no picture")
        relative = self.picture(cells["picture"], location)
        x, y = (_number(cells[key], f"{location}: {key}") for key in ("x", "y"))
        t = _duration(cells["t"], f"{location}: t") if has_t else 0.0
        return relative, (*self.share(relative, x, y, location), t)

    def _with_durations(self, paths: Sequence[RecordedPath], name: str) -> list[RecordedPath]:
        """Return the paths of a file, marked as unordered if their times cannot be durations in ms; a note says so."""
        times = [t for path in paths if path.ordered for t in path.points[:, 2].tolist()]
        median = statistics.median(times) if times else MEDIAN_MS[0]
        if not MEDIAN_MS[0] <= median <= MEDIAN_MS[1]:
            fix = "multiply seconds by 1000" if median < MEDIAN_MS[0] else "t must be durations, not clock times"
            self.found.notes.append(
                f"{name}: the median of t is {median:g}, but durations of fixations in ms have a median from "
                f"{MEDIAN_MS[0]:g} to {MEDIAN_MS[1]:,g} ({fix}): its paths are used for saliency only"
            )
            return [replace(path, ordered=False) for path in paths]
        return [self._limited(path, name) for path in paths]

    def _limited(self, path: RecordedPath, name: str) -> RecordedPath:
        """Return the path, marked as unordered if it lasts too long."""
        total = float(path.points[:, 2].sum())
        if not path.ordered or total <= MAX_MS:
            return path
        self.found.notes.append(
            f"{name}: the path of {path.subject!r:.40} on {path.picture} lasts {total:,.0f} ms, above {MAX_MS:,.0f}: "
            "it is used for saliency only"
        )
        return replace(path, ordered=False)

    def paths(self, path: Path) -> None:
        """Read a JSON file with a list of paths."""
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path.name}: larger than {MAX_BYTES:,} bytes")
        try:
            entries = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path.name}: is not JSON ({error})") from error
        if not isinstance(entries, list) or not entries:
            raise DataError(f"{path.name}: expected a list of paths with name, X, Y and T")
        paths = []
        for number, entry in enumerate(entries, 1):
            try:
                paths.append(self._entry(entry, f"{path.name}, path {number}"))
            except DataError as error:
                self.skip(error)
        self.found.paths += self._with_durations(paths, path.name)

    def _entry(self, entry: Any, location: str) -> RecordedPath:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise DataError(f"{location}: expected an object with name, X, Y and T")
        x, y, t = (entry.get(key) for key in ("X", "Y", "T"))
        ordered = t is not None
        if not ordered and isinstance(x, list):
            t = [0.0] * len(x)
        if not (isinstance(x, list) and isinstance(y, list) and isinstance(t, list) and len(x) == len(y) == len(t) > 0):
            raise DataError(f"{location}: X, Y and T must be lists of one length, and not empty")
        relative, points = self.picture(entry["name"], location), []
        for place, numbers in enumerate(zip(x, y, t, strict=True), 1):
            row_name = f"{location}, fixation {place}"
            try:
                a, b = (_number(value, row_name) for value in numbers[:2])
                points.append((*self.share(relative, a, b, row_name), _duration(numbers[2], f"{row_name}: t")))
            except DataError as error:
                # A fixation outside the picture is dropped; the rest of the path is kept.
                self.skip(error)
        if not points:
            raise DataError(f"{location}: no fixation is inside the picture")
        task = f" {entry['task']}" if isinstance(entry.get("task"), str) else ""
        return RecordedPath(relative, f"{entry.get('subject', '')}{task}", np.array(points, float), ordered)

    def matrix(self, path: Path, name: str, values: NDArray[Any]) -> None:
        """Read a matrix whose values are not 0 at the fixations."""
        relative = self.picture(name, path.name)
        width, height = self._sizes[relative]
        if values.ndim != 2 or values.shape != (height, width):
            shape = " x ".join(map(str, values.shape[::-1]))
            raise DataError(f"{path.name}: the matrix has size {shape}, but {relative} has {width} x {height} px")
        rows, columns = np.nonzero(values)
        if not len(rows):
            raise DataError(f"{path.name}: no fixation")
        points = [((x + 0.5) / width, (y + 0.5) / height, 0.0) for y, x in zip(rows, columns, strict=True)]
        self.found.paths.append(RecordedPath(relative, "", np.array(points, float), ordered=False))


def _number(value: Any, location: str) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    # An integer of hundreds of digits overflows.
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{location}: {value!r:.40} is not a number")
    return number


def _duration(value: Any, location: str) -> float:
    t = _number(value, location)
    if t < 0:
        raise DataError(f"{location} {t:g} is below 0")
    if t > MAX_MS:
        raise DataError(f"{location} {t:g} is above {MAX_MS:,.0f} ms; it is the duration of a fixation, not a time")
    return t


def read_fixations(folder: Path, images: Path | None = None, screen: tuple[int, int] | None = None) -> Fixations:
    """Read all fixations in a folder. The arguments are those of `_Reader`.

    Raises:
        UsageError: the folder has no usable file of fixations; the message gives up to three reasons.
    """
    reader, files = _Reader(folder, images, screen), list(_files(folder))
    for path in files:
        try:
            _read_file(reader, path)
        except DataError as error:
            reader.skip(error)
        except (OSError, ValueError, csv.Error) as error:
            reader.skip(DataError(f"{path.name}: cannot be read ({error})"))
    if not reader.found.paths:
        reasons = "".join(f"; {line}" for line in reader.found.skipped[:3])
        kinds = "*.csv, *.tsv, *.json, *.mat with fixLocs, NAME_fixPts.png"
        raise UsageError(
            f"--fixations {folder}: the folder has no usable fixations; the files that are read are {kinds}{reasons}"
        )
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
            # The reader may raise any exception on a damaged file.
            except Exception as error:
                raise DataError(f"{path.name}: cannot be read ({error})") from error
            if values is None:
                raise DataError(f"{path.name}: no variable fixLocs")
            reader.matrix(path, path.stem, np.asarray(values.todense() if hasattr(values, "todense") else values))
        case _:
            from hybrid.core.images import decode

            # JPEG compression leaves traces around a fixation, so only bright pixels count.
            pixels = decode(read_image_file(path, path.name), path.name)
            reader.matrix(path, path.stem[: -len(POINTS)], pixels.max(axis=2) > 127)
