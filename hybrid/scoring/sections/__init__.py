"""The statistics of a comparison, one per module: `NAME.py` exports `SECTION` (`hybrid/scoring/result.py`).

for made in results(compare(solvers)):
    made.section.title, made.rows
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from weakref import WeakKeyDictionary

from hybrid.core.error_text import in_one_line
from hybrid.core.errors import HybridError
from hybrid.core.types import Json
from hybrid.plugins.registry import is_outside, load_each
from hybrid.scoring.compare import Comparison
from hybrid.scoring.findings import outputs_by_question
from hybrid.scoring.groups import role
from hybrid.scoring.result import Section, SectionResult
from hybrid.serving.sources import plugin_code_hashes

# Cached per comparison, so that an import that hangs is waited for only once.
_KNOWN: WeakKeyDictionary[Comparison, tuple[Section, ...]] = WeakKeyDictionary()


def sections() -> tuple[Section, ...]:
    """Return every section in reading order; faulty plug-in sections are left out.

    Raises:
        UsageError: a module of the project defines no section.
    """
    all_sections: list[Section] = [section for _, section in load_each(__name__)]
    return tuple(sorted(all_sections, key=lambda section: (section.order, section.name)))


def results(comparison: Comparison, only: Collection[str] | None = None) -> tuple[SectionResult, ...]:
    """Return the sections (all, or those in `only`) that have a row or a fault, each computed once per comparison.

    A section that fails does not affect others; its result has the reason.
    """
    if comparison not in _KNOWN:
        _KNOWN[comparison] = sections()
    requested, computed = (
        [section for section in _KNOWN[comparison] if only is None or section.name in only],
        comparison.computed,
    )
    if only is None and not computed:
        _judge_first(comparison)
    for section in (section for section in requested if section.name not in computed):
        try:
            rows = tuple(section.rows(comparison))
            computed[section.name] = SectionResult(section, rows, section.lead(comparison, rows) if rows else "")
        # A truncated or edited trace raises ValueError (JSON, pydantic); a failed read from disk raises OSError.
        except (HybridError, OSError, ValueError) as error:
            fault = " ".join(str(error).split()) or type(error).__name__
            computed[section.name] = SectionResult(section, (), fault=fault)
        except Exception as error:
            if not is_outside(__name__, section.name):
                raise
            computed[section.name] = SectionResult(section, (), fault=in_one_line(error))
    return tuple(result for section in requested if (result := computed[section.name]).rows or result.fault)


def _judge_first(comparison: Comparison) -> None:
    """Judge the tool output of all solvers: this reads their attempts and caches the facts for every section."""
    # If a file cannot be read, the section that needs it reports the error.
    for solver in comparison.solvers:
        if role(solver) in ("hybrid", "specialist"):
            with suppress(HybridError, OSError, ValueError):
                outputs_by_question(solver)


def codes_of(section_results: Iterable[SectionResult]) -> dict[str, Json]:
    """Return the code hash of each plug-in section, in the form that a manifest uses."""
    return {**plugin_code_hashes((__name__, result.name) for result in section_results)}
