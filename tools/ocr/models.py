"""Readers of text: PP-OCR detection and recognition through transformers, or the rapidocr package.

`PaddleReader(dir, "cpu")` needs `dir/det` and `dir/rec`, both in the layout of transformers (PP-OCRv5 or v6: Cui et al.
2025). `RapidReader()` runs the PP-OCRv6 files of the package `rapidocr` on the CPU and never downloads others.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.core.coordinates import at, size_px
from hybrid.core.errors import ToolError, WeightsError, install_extra
from hybrid.core.types import Box
from hybrid.plugins.weights import find_weights
from hybrid.tool import Pixels
from hybrid.tool.checkpoint import load_verified
from hybrid.tool.networks import Network, announce, normalised
from tools._shared.batches import on_host, together
from tools._shared.reading import shrink

DETECTORS = ("pp_ocrv5_mobile_det", "pp_ocrv5_server_det", "pp_ocrv6_small_det", "pp_ocrv6_medium_det")
RECOGNISERS = ("pp_ocrv5_mobile_rec", "pp_ocrv5_server_rec", "pp_ocrv6_small_rec", "pp_ocrv6_tiny_rec")
# The files in rapidocr 3.10's wheel: a line detector, an orientation classifier, and a recogniser.
BUNDLED = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
}
# Mean and deviation, blue first, that PP-OCR's text detector was trained with (`NormalizeImage` in PaddleOCR's
# configs/det/PP-OCRv6/PP-OCRv6_small_det.yml). The package's config.yaml has 0.5 for both; with these values, faint
# text is missed.
DETECTOR_MEAN = (0.485, 0.456, 0.406)
DETECTOR_STD = (0.229, 0.224, 0.225)
RAPID_OPTIONS: dict[str, object] = {
    "Det.mean": list(DETECTOR_MEAN),
    "Det.std": list(DETECTOR_STD),
    # The caller drops lines with low scores.
    "Global.text_score": 0.0,
    "Global.log_level": "critical",
    # The runtime's threads spin while they wait: on two shared cores, one thread per core took twice as long, with
    # equal results.
    "EngineConfig.onnxruntime.intra_op_num_threads": max(1, min(8, (os.cpu_count() or 2) // 2)),
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}
MAX_SIDE_PX = 2560
MIN_SIDE_PX = 8
MAX_ELONGATION = 40.0
# Largest number of text boxes read in an image, highest scores first.
MAX_LINES = 400
# A box with a larger ratio of height to width is read as rotated: text that runs downwards.
TALL = 1.5


# A box is part of another one if this share of its width is inside the other.
INSIDE = 0.8
# Boxes that overlap by less than this fraction of a letter's width share margins, not a letter.
SHARED_LETTER = 0.6


class TextLine(NamedTuple):
    """A line of text, its score 0..1, and its box in pixels of the image.

    `turned` says whether the text is upside down in the image.
    """

    text: str
    score: float
    box: Box
    turned: bool = False


class PaddleReader:
    """Two verified checkpoints on a device: a line detector and a recogniser."""

    def __init__(self, weights: str, device: str) -> None:
        """Load both checkpoints. Raises `WeightsError` if a part is missing, does not fit, or lists no characters."""
        folder = find_weights(weights, download=False)
        for part in ("det", "rec"):
            if not (Path(folder) / part).is_dir():
                raise WeightsError(f"weights absent: {weights} has no folder {part}/ (expected: a PP-OCR checkpoint)")
        self._finder = load_verified(
            "AutoModelForObjectDetection", str(folder / "det"), device=device, model_types=DETECTORS
        )
        self._recogniser = load_verified(
            "AutoModelForTextRecognition",
            str(folder / "rec"),
            device=device,
            model_types=RECOGNISERS,
            full_pictures=False,
        )
        characters = len(self._recogniser.processor.character_list or ())
        outputs = int(self._recogniser.model.config.head_out_channels)
        if characters != outputs:
            raise WeightsError(
                f"{weights}: rec/preprocessor_config.json lists {characters} characters, the network has {outputs}"
            )

    @property
    def version(self) -> str:
        """Family and content of both checkpoints."""
        return f"{self._finder.version}+{self._recogniser.version}"

    def read(self, pixels: Pixels) -> list[TextLine]:
        """Read the lines of an image (H, W, 3), unordered. Raises `ToolError` if the image cannot be read."""
        import torch
        from PIL import Image

        picture = _reduced(pixels)
        finder = self._finder
        inputs = finder.process(images=Image.fromarray(picture))
        with torch.inference_mode():
            outputs = finder.model(pixel_values=together([inputs["pixel_values"]], finder.device))
        outputs.last_hidden_state = outputs.last_hidden_state.float()
        (detection,) = finder.processor.post_process_object_detection(
            outputs, target_sizes=torch.tensor([picture.shape[:2]])
        )
        order = np.argsort(-on_host(detection["scores"]))[:MAX_LINES]
        # Four corners per line, contrary to the processor's documentation: lines may be slanted.
        quads = on_host(detection["boxes"]).reshape(-1, 4, 2)[order]
        return _in_image([self._line(picture, quad) for quad in quads], picture, pixels)

    def _line(self, picture: Pixels, quad: npt.NDArray[np.float32]) -> TextLine:
        import torch
        from PIL import Image

        crop = straighten(picture, quad)
        if crop is None:
            return TextLine("", 0.0, _around(quad))
        reader = self._recogniser
        # Process the crops one by one, because the processor scales a batch to the shape of its widest member.
        inputs = reader.process(images=Image.fromarray(crop))
        with torch.inference_mode():
            outputs = reader.model(pixel_values=together([inputs["pixel_values"]], reader.device))
        outputs.last_hidden_state = outputs.last_hidden_state.float()
        (recognition,) = reader.processor.post_process_text_recognition(outputs)
        return TextLine(str(recognition["text"]).strip(), float(recognition["score"]), _around(quad))


class RapidReader:
    """The rapidocr package with the weights in its wheel."""

    def __init__(self, folder: Path | None = None) -> None:
        """Load the files of `folder`, else those of the package.

        Raises:
            WeightsError: the package, its runtime or one of the files is missing or damaged.
        """
        try:
            package = importlib.import_module("rapidocr")
            importlib.import_module("onnxruntime")
        except ImportError as error:
            raise WeightsError(
                f"weights absent: rapidocr with onnxruntime cannot be imported ({error}): {install_extra('local')}"
            ) from error
        from importlib.metadata import version

        folder = folder or Path(str(package.__file__)).parent / "models"
        total = hashlib.sha256()
        for name in BUNDLED.values():
            if not (folder / name).is_file():
                raise WeightsError(f"weights absent: there is no {folder / name}; it is in the wheel of rapidocr 3.10")
            total.update(hashlib.sha256((folder / name).read_bytes()).digest())
        self._version = f"{version('rapidocr')}@{total.hexdigest()[:12]}"
        # Paths are given because the package would download missing files.
        paths = {f"{part}.model_path": str(folder / name) for part, name in BUNDLED.items()}
        try:
            self._engine = package.RapidOCR(params={**paths, **RAPID_OPTIONS})
            # The package loads its networks on first use.
            blank = np.full((48, 48, 3), 255, np.uint8)
            self._engine(blank, use_det=False)
            self._engine(blank, use_det=True)
            # The package rotates upside-down lines before it reads them, and does not report which.
            self._turned = threading.local()
            self._classify, self._engine.cls_and_rotate = self._engine.cls_and_rotate, self._classify_lines
            self._recognise, self._engine.recognize_txt = self._engine.recognize_txt, self._recognise_lines
            finder = self._engine.text_det
            finder.session = _WatchedSession(finder.session)
        except Exception as error:
            raise WeightsError(f"rapidocr cannot load {folder}: {_line(error)}") from error
        # BGR, as PaddleOCR reads images; only the line detector is watched, because the recogniser gets small crops.
        picture_input = partial(normalised, DETECTOR_MEAN, DETECTOR_STD, order="BGR")
        announce(Network(f"rapidocr {BUNDLED['Det']}", finder.session, picture_input))

    @property
    def version(self) -> str:
        """The package's version and the content of its weights."""
        return f"rapidocr-{self._version}"

    def read(self, pixels: Pixels) -> list[TextLine]:
        """Read the lines of an image (H, W, 3), unordered. Raises `ToolError` if the image cannot be read."""
        picture = _reduced(pixels)
        # The package expects BGR arrays, as OpenCV does.
        self._turned.lines = []
        output = self._engine(np.ascontiguousarray(picture[:, :, ::-1]), use_det=True)
        # If nothing is found, the package returns another class without texts.
        if getattr(output, "txts", None) is None or output.boxes is None or output.scores is None:
            return []
        flags = self._turned.lines
        lines = [
            TextLine(str(text).strip(), float(score), _around(np.asarray(corners, np.float32)), upside_down)
            for corners, text, score, upside_down in zip(output.boxes, output.txts, output.scores, flags, strict=True)
        ]
        return _in_image(lines, picture, pixels)

    def _classify_lines(self, crops: Any) -> Any:
        """Run the package's step that rotates line crops upright; record which were rotated."""
        crops, classes = self._classify(crops)
        least = self._engine.text_cls.cls_thresh
        self._turned.lines = [bool("180" in label and score > least) for label, score in classes.cls_res]
        return crops, classes

    def _recognise_lines(self, crops: Any) -> Any:
        """Run the package's step that reads line crops; like its output, drop the flags of crops without a text."""
        read = self._recognise(crops)
        pairs = zip(self._turned.lines, read.txts or (), strict=True)
        self._turned.lines = [flag for flag, text in pairs if text.strip()]
        return read


class _WatchedSession:
    """An ONNX session with the hooks of a torch module, for checks of networks; only these checks load torch."""

    def __init__(self, session: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]) -> None:
        self._session = session
        self._before: OrderedDict[int, Callable[..., None]] = OrderedDict()
        self._after: OrderedDict[int, Callable[..., None]] = OrderedDict()

    def __call__(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self._before:
            import torch

            for hook in self._before.values():
                hook(self, (torch.from_numpy(values),), {})
        try:
            return self._session(values)
        finally:
            for after in self._after.values():
                after(self, (), None)

    def modules(self) -> list[_WatchedSession]:
        """Return only the session: the content of the file is not inspected."""
        return [self]

    def named_modules(self) -> list[tuple[str, _WatchedSession]]:
        """Return the session under an empty name."""
        return [("", self)]

    def named_parameters(self, *, recurse: bool = True) -> list[tuple[str, object]]:
        """Return nothing: the parameters are inside the session."""
        del recurse
        return []

    def register_forward_pre_hook(self, hook: Callable[..., None], *, with_kwargs: bool = False) -> Any:
        """Register as on a torch module; arguments are always passed by name."""
        del with_kwargs
        return _registered(self._before, hook)

    def register_forward_hook(self, hook: Callable[..., None], *, always_call: bool = False) -> Any:
        """Register as on a torch module; the hook also runs after a failure."""
        del always_call
        return _registered(self._after, hook)


def _registered(hooks: OrderedDict[int, Callable[..., None]], hook: Callable[..., None]) -> Any:
    """Register a hook and return the handle that removes it."""
    from torch.utils.hooks import RemovableHandle

    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


# A reader of text lines.
Reader = PaddleReader | RapidReader


def open_reader(weights: str, device: str) -> Reader:
    """Open the checkpoints in a directory, or the package if none is named. Raises `WeightsError`."""
    return PaddleReader(weights, device) if weights else RapidReader()


def _line(error: BaseException) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)[
        :200
    ]


def reading_order(lines: list[TextLine]) -> list[TextLine]:
    """Sort lines from top to bottom; lines whose centres differ by less than half a line height, from left to right.

    If most letters of a row are upside down, the row is read from right to left. If most letters of the page are, the
    page is read from bottom to top. If most letters are in lines that run up or down, the page is ordered as if turned
    by 90 degrees.
    """
    return _on_upright_page(lines, _ordered)


def _ordered(lines: Sequence[TextLine]) -> list[TextLine]:
    """Sort horizontal lines into reading order."""
    down = -1 if mostly_turned(lines) else 1
    waiting = sorted(lines, key=lambda line: (down * (line.box.y0 + line.box.y1), line.box.x0))
    ordered: list[TextLine] = []
    while waiting:
        first = waiting[0]
        middle, reach = (first.box.y0 + first.box.y1) / 2, (first.box.y1 - first.box.y0) / 2
        row = [line for line in waiting if abs((line.box.y0 + line.box.y1) / 2 - middle) <= reach]
        backwards = mostly_turned(row)
        ordered += sorted(row, key=lambda line: -line.box.x1 if backwards else line.box.x0)
        row_ids = {id(line) for line in row}
        waiting = [line for line in waiting if id(line) not in row_ids]
    return ordered


def _is_vertical(line: TextLine) -> bool:
    return line.box.y1 - line.box.y0 > TALL * (line.box.x1 - line.box.x0)


def _mostly_vertical(lines: Sequence[TextLine]) -> bool:
    """Return whether more than half of the letters are in vertical lines."""
    return sum(len(line.text) * (1 if _is_vertical(line) else -1) for line in lines) > 0


def _on_upright_page(lines: Sequence[TextLine], step: Callable[[Sequence[TextLine]], list[TextLine]]) -> list[TextLine]:
    """Apply a step for horizontal lines; if most lines run up or down, rotate the page by 90 degrees for this step."""
    if not _mostly_vertical(lines):
        return step(lines)
    upwards = mostly_turned(lines)
    page = [_rotate(line, upwards=upwards, flip=upwards) for line in lines]
    return [_rotate(line, upwards=not upwards, flip=upwards) for line in step(page)]


def _rotate(line: TextLine, *, upwards: bool, flip: bool) -> TextLine:
    """Return the line rotated by 90 degrees with its page, so that upward (or downward) text is horizontal."""
    box = line.box
    upright = Box(-box.y1, box.x0, -box.y0, box.x1) if upwards else Box(box.y0, -box.x1, box.y1, -box.x0)
    return line._replace(box=upright, turned=line.turned != flip)


def mostly_turned(lines: Sequence[TextLine]) -> bool:
    """Return whether more than half of the letters are upside down (on a page of vertical lines: run upwards)."""
    vertical = _mostly_vertical(lines)
    along = [line for line in lines if _is_vertical(line) is vertical]
    return sum(len(line.text) * (1 if line.turned else -1) for line in along) > 0


def drop_repeats(lines: Sequence[TextLine]) -> list[TextLine]:
    """Remove from lines in reading order the letters that the overlapping boxes of two neighbours both contain.

    A letter is removed from the second line if both texts have it and the boxes share most of its width.
    """
    return _on_upright_page(lines, _without_repeats)


def _without_repeats(lines: Sequence[TextLine]) -> list[TextLine]:
    """Do what `drop_repeats` does for lines that run across."""
    unique: list[TextLine] = []
    for line in lines:
        count = repeated_letters(unique[-1], line) if unique else 0
        text = line.text[count:].lstrip()
        if not count:
            unique.append(line)
        elif text:
            first, box = unique[-1].box, line.box
            x0, x1 = (box.x0, max(first.x0, box.x0)) if line.turned else (min(first.x1, box.x1), box.x1)
            unique.append(line._replace(text=text, box=Box(x0, box.y0, x1, box.y1)))
    return unique


def repeated_letters(first: TextLine, second: TextLine) -> int:
    """Count the first letters of `second` that repeat the last ones of `first`, the line before it on its row."""
    a, b = first.box, second.box
    lower = min(a.y1 - a.y0, b.y1 - b.y0)
    shared = min(a.x1, b.x1) - max(a.x0, b.x0)
    letter = min((a.x1 - a.x0) / max(1, len(first.text)), (b.x1 - b.x0) / max(1, len(second.text)))
    if min(a.y1, b.y1) - max(a.y0, b.y0) < lower / 2 or letter <= 0 or shared <= 0:
        return 0
    if shared >= INSIDE * (b.x1 - b.x0) and second.text in first.text:
        return len(second.text)
    most = min(int(shared / letter + 1 - SHARED_LETTER), len(first.text), len(second.text))
    ends, starts = (unicodedata.normalize("NFKC", line.text) for line in (first, second))
    return next((count for count in range(most, 0, -1) if ends[-count:] == starts[:count]), 0)


def straighten(picture: Pixels, quad: npt.NDArray[np.float32]) -> Pixels | None:
    """Rectify the region between four corners (4, 2), given from the upper left clockwise, to an upright picture.

    Return None if a side is shorter than 2 px. Text that runs downwards is rotated to run from left to right.
    """
    import cv2

    sides = [float(np.linalg.norm(quad[first] - quad[second])) for first, second in ((0, 1), (3, 2), (0, 3), (1, 2))]
    width, height = round(max(sides[:2])), round(max(sides[2:]))
    if min(width, height) < 2:
        return None
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(quad, target)
    crop = cv2.warpPerspective(picture, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    if height > TALL * width:
        crop = np.rot90(crop)
    return np.ascontiguousarray(crop, np.uint8)


def _around(quad: npt.NDArray[np.float32]) -> Box:
    (x0, y0), (x1, y1) = quad.min(axis=0), quad.max(axis=0)
    return Box(float(x0), float(y0), float(x1), float(y1))


def _in_image(lines: Sequence[TextLine], picture: Pixels, pixels: Pixels) -> list[TextLine]:
    """Convert lines of a shrunk image to pixels of the original; drop lines without text."""
    across, down = pixels.shape[1] / picture.shape[1], pixels.shape[0] / picture.shape[0]
    return [
        line._replace(box=Box(line.box.x0 * across, line.box.y0 * down, line.box.x1 * across, line.box.y1 * down))
        for line in lines
        if line.text
    ]


def _reduced(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    if min(height, width) < MIN_SIDE_PX or max(height, width) > MAX_ELONGATION * min(height, width):
        raise ToolError(
            f"ocr: an image of {size_px(width, height)} px is too small or too elongated to be read "
            f"(at least {at('width', MIN_SIDE_PX)} px, at most {MAX_ELONGATION:g} : 1)"
        )
    return np.ascontiguousarray(shrink(pixels, MAX_SIDE_PX))
