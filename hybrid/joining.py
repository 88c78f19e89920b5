"""How several pictures become one (`--images concat`): our own way, and the way of a benchmark whose paper has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Joint:
    """What lies between and around pictures that are put side by side, left to right, none of them scaled."""

    gap_px: int = 12
    rgb: tuple[int, int, int] = (255, 255, 255)
    """Of the gap, and of what a picture leaves free where another one is higher."""
    at: Literal["top", "middle"] = "top"
    """Where a picture that is lower than another one stands."""


OURS = Joint()
