"""The statistics of a comparison, one a file: `NAME.py` exports `SECTION` (`hybrid/scoring/result.py`).

for made in results(compare(solvers)):
    made.section.title, made.rows
"""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakKeyDictionary

from hybrid.errors import HybridError
from hybrid.registry import load, names
from hybrid.scoring.compare import Comparison
from hybrid.scoring.result import Section, SectionResult

_COMPUTED: WeakKeyDictionary[Comparison, dict[str, SectionResult]] = WeakKeyDictionary()


def computed(comparison: Comparison) -> dict[str, SectionResult]:
    """By name the sections that were computed for a comparison so far."""
    return _COMPUTED.setdefault(comparison, {})


def sections() -> tuple[Section, ...]:
    """Every section, in the order in which they are read. Raises `UsageError` for a file that is none."""
    found: list[Section] = [load(__name__, name) for name in names(__name__)]
    return tuple(sorted(found, key=lambda section: (section.order, section.name)))


def results(comparison: Comparison, only: Collection[str] | None = None) -> tuple[SectionResult, ...]:
    """The sections (all, or those named) that have a row or a fault, each computed once for a comparison.

    A section that cannot be made costs no other: its result says why.
    """
    asked = [section for section in sections() if only is None or section.name in only]
    made = [_made(section, comparison) for section in asked]
    return tuple(one for one in made if one.rows or one.fault)


def _made(section: Section, comparison: Comparison) -> SectionResult:
    made = computed(comparison)
    if section.name not in made:
        made[section.name] = _result_of(section, comparison)
    return made[section.name]


def _result_of(section: Section, comparison: Comparison) -> SectionResult:
    try:
        rows = tuple(section.rows(comparison))
        return SectionResult(section, rows, section.lead(comparison, rows) if rows else "")
    # A trace that was cut off or edited raises what reading raises: JSON and pydantic ValueError, the disk OSError.
    except (HybridError, OSError, ValueError) as error:
        return SectionResult(section, (), fault=" ".join(str(error).split()) or type(error).__name__)
