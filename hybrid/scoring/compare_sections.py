"""What a comparison tells beyond differences: a section a question, each in a file of its own next to this one.

for told in sections(comparison):
    told.tables        # for a person: hybrid compare RUN, and the pages of a report
    told.data          # for a program: hybrid compare RUN --json, under `told.name`
    told.numbers       # one number a line: hybrid compare RUN --csv
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid.errors import HybridError
from hybrid.scoring import agreement, ceiling, evidence, floor, gain, noninferior, sampling, spread, tool_use
from hybrid.scoring.compare import Comparison
from hybrid.scoring.told import Told
from hybrid.tables import Column, Table

Section = Callable[[Comparison], Told | None]
"""None where the comparison lacks what the section needs: a blank control, traces, repetitions."""

SECTIONS: tuple[Section, ...] = (
    noninferior.section,
    gain.section,
    ceiling.section,
    evidence.section,
    tool_use.section,
    agreement.section,
    floor.section,
    spread.section,
    sampling.section,
)
"""In the order in which they are read."""


def sections(found: Comparison) -> tuple[Told, ...]:
    """What every section has to say, in order; one that cannot be made says why, and costs no other (`Told.fault`)."""
    return tuple(told for section in SECTIONS if (told := _told(section, found)) is not None)


def name_of(section: Section) -> str:
    """What a section is called: the stem of its file."""
    return section.__module__.rpartition(".")[2]


def _told(section: Section, found: Comparison) -> Told | None:
    try:
        return section(found)
    # A trace that was cut off or edited raises what reading raises: JSON and pydantic ValueError, the disk OSError.
    except (HybridError, OSError, ValueError) as error:
        name, why = name_of(section), " ".join(str(error).split()) or type(error).__name__
        row = Table(
            "This section could not be made", (Column("section", "left"), Column("why", "left")), ((name, why),)
        )
        return Told(name, f"{name}: nothing is told", (row,), (), (), fault=why)
