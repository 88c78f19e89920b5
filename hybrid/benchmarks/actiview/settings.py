"""The settings of ActiView (`--setting KEY=VALUE`), checked as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.core.errors import UsageError

STARTS = ("R", "E", "M", "H")

# Maps a start to its key in shifting_level.json.
LEVELS: Mapping[str, str] = {"E": "easy", "M": "medium", "H": "hard"}

# The modes without the picture. In `commonsense` the reply may be None instead of a letter; in `guess` it must name the
# most likely option.
BLIND = ("commonsense", "guess")

# Values that are defined only for four parts.
FOUR_ONLY = (
    *("mode=average", "start=E", "start=M", "start=H", "images=concat", "images=any_view"),
    *("views=oracle", "decisions=official"),
)


@dataclass(frozen=True)
class Settings:
    """Checked settings. `variants` are the pairs of mode and start in which each question is asked."""

    variants: tuple[tuple[str, str], ...]
    choose: bool
    splits: int
    images: str
    oracle_views: bool
    decisions: str

    @property
    def starts(self) -> frozenset[str]:
        """The kinds of first view that these settings use."""
        return frozenset(start for _, start in self.variants if start)


def column(mode: str, start: str) -> str:
    """Return the name of a variant, after the paper's columns: `zoom`, `shift_R`, `single_E`."""
    return f"{mode}_{start}" if start else mode


def read_settings(values: Mapping[str, str]) -> Settings:
    """Check the combination of values. Raises `UsageError` naming the setting."""
    mode, start, images = values["mode"], values["start"], values["images"]
    pairs = {f"{key}={value}" for key, value in values.items()}
    if values["splits"] != "4" and (wrong := next((pair for pair in FOUR_ONLY if pair in pairs), None)):
        raise UsageError(f"--setting {wrong} is defined for splits=4 only")
    if images != "separate" and mode not in ("zoom", "shift", "average"):
        raise UsageError(f"--setting images={images} is for the modes zoom, shift and average, not {mode}")
    if images == "any_view" and mode == "shift":
        raise UsageError("--setting images=any_view is the paper's rule for zoom; for shift use concat")
    if values["views"] == "oracle" and mode != "zoom":
        raise UsageError(f"--setting views=oracle is for mode=zoom, not {mode}")
    if mode == "average":
        variants = (("zoom", ""), *(("shift", start_name) for start_name in STARTS))
    else:
        variants = ((mode, start if mode in ("single", "shift") else ""),)
    ways = (values["shift"] == "choose", int(values["splits"]), images, values["views"] == "oracle")
    return Settings(variants, *ways, values["decisions"])
