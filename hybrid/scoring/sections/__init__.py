"""The statistics of a comparison, one a file: `NAME.py` exports `SECTION` (`hybrid/scoring/result.py`).

for made in results(compare(solvers)):
    made.section.title, made.rows
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from weakref import WeakKeyDictionary

from hybrid.core.error_text import in_one_line
from hybrid.core.errors import HybridError
from hybrid.core.types import Json
from hybrid.plugins.registry import is_outside, load_each
from hybrid.scoring.compare import Comparison
from hybrid.scoring.result import Section, SectionResult
from hybrid.serving.sources import plugin_code_hashes

# Loaded once for a comparison: an import that hangs is waited for once.
_KNOWN: WeakKeyDictionary[Comparison, tuple[Section, ...]] = WeakKeyDictionary()


def sections() -> tuple[Section, ...]:
    """Every section, in the order in which they are read; what is wrong from outside is left out.

    Raises:
        UsageError: a file of the project is none.
    """
    all_sections: list[Section] = [section for _, section in load_each(__name__)]
    return tuple(sorted(all_sections, key=lambda section: (section.order, section.name)))


def results(comparison: Comparison, only: Collection[str] | None = None) -> tuple[SectionResult, ...]:
    """The sections (all, or those named) that have a row or a fault, each computed once for a comparison.

    A section that cannot be made costs no other: its result says why.
    """
    if comparison not in _KNOWN:
        _KNOWN[comparison] = sections()
    requested, computed = (
        [section for section in _KNOWN[comparison] if only is None or section.name in only],
        comparison.computed,
    )
    for section in (section for section in requested if section.name not in computed):
        try:
            rows = tuple(section.rows(comparison))
            computed[section.name] = SectionResult(section, rows, section.lead(comparison, rows) if rows else "")
        # A trace that was cut off or edited raises what reading raises: JSON and pydantic ValueError, the disk OSError.
        except (HybridError, OSError, ValueError) as error:
            fault = " ".join(str(error).split()) or type(error).__name__
            computed[section.name] = SectionResult(section, (), fault=fault)
        except Exception as error:
            if not is_outside(__name__, section.name):
                raise
            computed[section.name] = SectionResult(section, (), fault=in_one_line(error))
    return tuple(result for section in requested if (result := computed[section.name]).rows or result.fault)


def codes_of(section_results: Iterable[SectionResult]) -> dict[str, Json]:
    """The hash of the code of those sections that lie outside of the project, as a manifest names such things."""
    return {**plugin_code_hashes((__name__, result.name) for result in section_results)}
