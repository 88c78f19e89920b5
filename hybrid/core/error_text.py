"""Finds where an error in a user's code was raised: `mytools/depth.py, line 12`, for messages."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path
from typing import Final

_FRAME: Final = re.compile(r'^[ |]*  File "(.+)", line (\d+)', re.MULTILINE)
_OURS: Final = Path(__file__).parents[1]
_LIBRARIES: Final = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


def raised_at(trace: str, *, installed: bool = True) -> str:
    """Return the innermost frame of a traceback that is neither in hybrid's code nor in a library; "" if there is none.

    If there is no such frame and `installed` is set, return the first frame of a plug-in that is an installed library.
    """
    frames = _FRAME.findall(trace.rpartition("Traceback (most recent call last)")[2])
    below: list[tuple[Path, str]] = []
    for path, line in ((Path(path), line) for path, line in frames):
        below = [] if path.is_relative_to(_OURS) else [*below, (path, line)]
    # The innermost frame may be in hybrid's code although the plug-in is at fault, for example because of a wrong value
    # on its card.
    foreign_frames = [(Path(path), line) for path, line in frames if not Path(path).is_relative_to(_OURS)]
    plugin_frames = [
        frame for frame in foreign_frames if frame[0].suffix and not any(map(frame[0].is_relative_to, _LIBRARIES))
    ]
    shown_frames = plugin_frames[-1:] or (below[:1] if installed else [])
    return "".join(f"{Path(*path.parts[-2:])}, line {line}" for path, line in shown_frames)


def in_one_line(error: BaseException) -> str:
    """Describe an error and where it was raised: `KeyError: 'nokey' (mytools/depth.py, line 12)`."""
    trace = "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    own_place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    place = raised_at(trace) or own_place
    return " ".join(f"{type(error).__name__}: {error}".split()) + (f" ({place})" if place else "")


def describe_error(error: BaseException) -> str:
    """Return the message of an error; if a defect in a tool caused it, append the location of the defect."""
    place = raised_at(getattr(error, "trace", ""))
    return f"{error} ({place})" if place else str(error)
