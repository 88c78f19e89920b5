"""Does the gain come from the tool output?

gain: the hybrid solver minus its MLLM alone. presence: with blank tools minus alone, the effect of offering tools
(prompts, tool descriptions, more turns). content: with tools minus with blank tools, the effect of tool output. gain =
presence + content. other questions' findings: with shuffled output minus with blank tools. p tests the difference in
the row; a single test has no adjusted p. p (Holm, FAMILY) is adjusted within the family that the header names. p (Holm
in family) is adjusted within that of the column `family`.

n: questions that all of these have and none failed
source: ours; docs/statistics.md; paired by question, resampled by cluster
values: -1 to 1

- gain = hybrid - alone. gain = presence + content.
- presence = hybrid with blank tools - alone. The effect of other prompts and more turns.
- content = hybrid - hybrid with blank tools. The effect of tool output.
- other questions' findings = hybrid with shuffled tools - hybrid with blank tools. The effect of tool
  output about other questions.

gain = hybrid - alone compares the same MLLM with and without tools. It is the sum of two parts, on the same questions:
presence = blank - alone (prompts, tool descriptions, more turns) and content = hybrid - blank (the tool output).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_cases import Case, case
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.conclusion_words import CI, ends_of, number, signed, size_of
from hybrid.scoring.definitions import statistic
from hybrid.scoring.families import adjusted_by_claim, family_of_pair, family_of_tasks
from hybrid.scoring.faults import tool_faults
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.headline_pair import NO_CLAIM, State, shown, with_claim
from hybrid.scoring.parts import contrasts
from hybrid.scoring.result import Family, Result

NAME = "gain"
NOTHING: Mapping[str, str] = {}
GAIN, PRESENCE, CONTENT, SHUFFLED = "gain", "presence", "content", "other questions' findings"


def rows(comparison: Comparison) -> list[Result]:
    """Return the parts of the gain, in total and by task, of each hybrid solver with a blank control."""
    section_rows: list[Result] = []
    for group in comparison.groups:
        if group.blank is None:
            continue
        # Use the questions that all three solvers have. If the MLLM alone was not run, only `content` can be computed.
        if group.alone is None:
            section_rows += contrasts(comparison, NAME, (group.blank, group.hybrid), {CONTENT: (0, 1)})
        else:
            places = {GAIN: (0, 2), PRESENCE: (0, 1), CONTENT: (1, 2)}
            section_rows += contrasts(comparison, NAME, (group.alone, group.blank, group.hybrid), places)
        if group.shuffled is not None:
            section_rows += contrasts(comparison, NAME, (group.blank, group.shuffled), {SHUFFLED: (0, 1)})

    def family(row: Result) -> Family:
        return family_of_tasks(row) if row.group else family_of_pair(comparison, row.a, row.b)

    rows_of_pairs = ConclusionRows(comparison, ("differences", "helped", "answered"))
    return [
        row
        if row.group
        else with_claim(row, rows_of_pairs.tested_pair(comparison.named(row.a), comparison.named(row.b)))
        for row in adjusted_by_claim(comparison, section_rows, family)
    ]


def lead(comparison: Comparison, section_rows: Sequence[Result]) -> str:
    """State the two parts of each hybrid solver's gain: from offering blank tools, and from tool output."""
    sentences = []
    for group in comparison.groups:
        quantities = (
            (group.blank, group.hybrid, CONTENT),
            (group.alone, group.hybrid, GAIN),
            (group.alone, group.blank, PRESENCE),
        )
        names = [(a.solver, b.solver, name) for a, b, name in quantities if a is not None and b is not None]
        overall = {(row.a, row.b, row.quantity): row for row in section_rows if not row.group}
        tested = [overall[name] for name in names if name in overall]
        if tested and tested[0].low is not None:
            unclear = unclear_parts(ConclusionRows(comparison, ("differences", "helped", "answered")), group)
            words = said_of(*tested, none=none_said(comparison, group), unclear=unclear)[1]
            sentences.append(f"{group.hybrid.solver}: {words}")
    return " ".join(sentences)


def none_said(comparison: Comparison, group: ComparisonGroup) -> bool:
    """Return whether no tool call succeeded, so that a difference from blank tools cannot come from tool output."""
    repetitions = comparison.repetitions(group.hybrid)
    return all(tool.faults == tool.calls for scored in repetitions for tool in tool_faults(scored))


def unclear_parts(rows: ConclusionRows, group: ComparisonGroup) -> Mapping[str, str]:
    """Map each part of a group's gain whose difference supports no claim to the reason."""
    pairs = {
        GAIN: (group.alone, group.hybrid),
        PRESENCE: (group.alone, group.blank),
        CONTENT: (group.blank, group.hybrid),
    }
    claims = {name: rows.tested_pair(a, b).claim for name, (a, b) in pairs.items() if a is not None and b is not None}
    return {name: NO_CLAIM[claim] for name, claim in claims.items() if claim in NO_CLAIM}


SOURCE = case(
    "content.source",
    "a gain; what the tools say is shown and more than half of it, presence is not shown",
    "Tool output accounts for {content}. Offering tools that return nothing has no significant effect ({presence}).",
)
SHARED = case(
    "content.shared",
    "a gain; both are shown and above 0",
    "Of the {gain}, {presence} come from offering tools that return nothing; tool output adds {content}.",
)
PARTS = case("content.parts", "any other", "{presence}; {content}.")
ALONE = case(
    "content.alone",
    "the model alone was not asked, or its difference from blank tools is not tested (it answers nothing)",
    "Compared with tools that return nothing, {content}.",
)


def said_of(
    content: Result,
    gain: Result | None = None,
    presence: Result | None = None,
    *,
    none: bool = False,
    unclear: Mapping[str, str] = NOTHING,
) -> tuple[str, str]:
    """Return the id of a case and its words; a part is claimed if it is significant after Holm's adjustment.

    `none` is True if no tool answered a call. `unclear` has, for each part whose difference supports no claim, the
    reason (`unclear_parts`).
    """
    words = NO_OUTPUT.fill() if none else _clause(CONTENT_CASES, content, unclear.get(CONTENT))
    if gain is None or presence is None or presence.low is None:
        return ALONE.id, ALONE.fill(content=words)
    states, parts = tuple(map(_state_of, (gain, presence, content))), {"presence": presence, "content": content}
    outcome, fields = PARTS, {"presence": _clause(PRESENCE_CASES, presence, unclear.get(PRESENCE)), "content": words}
    if none or unclear:
        pass
    elif states == ("more", "more", "more"):
        outcome = SHARED
        fields = {name: f"{number(row.value or 0.0, row.unit)} ({CI} {ends_of(row)})" for name, row in parts.items()}
    elif states == ("more", "open", "more") and 2 * (content.value or 0.0) > (gain.value or 0.0):
        outcome, fields = SOURCE, {name: f"{signed(row)}, {CI} {ends_of(row)}" for name, row in parts.items()}
        fields["content"] = f"{signed(content)} ({CI} {ends_of(content)})"
    return outcome.id, outcome.fill(gain=size_of(gain), **fields)


PRESENCE_CASES: Mapping[str, Case] = {
    "more": case(
        "presence.more",
        "part of content.parts: shown, above 0",
        "Offering tools that return nothing already brings {size} ({ends})",
    ),
    "less": case(
        "presence.less",
        "part of content.parts: shown, below 0",
        "Offering tools that return nothing costs {size} ({ends})",
    ),
    "open": case(
        "presence.open",
        "part of content.parts: not shown",
        "Offering tools that return nothing has no significant effect ({size}, {ends})",
    ),
    "unclear": case(
        "presence.unclear",
        "part of content.parts: the difference supports no claim (as in `gain.rule`, `uneven`, `answering`, `others`, "
        "`split`)",
        "Offering tools that return nothing changes the score by {size} ({ends}), {why}",
    ),
}
CONTENT_CASES: Mapping[str, Case] = {
    "more": case("content.more", "part of content.parts: shown, above 0", "tool output adds {size} ({ends})"),
    "less": case("content.less", "part of content.parts: shown, below 0", "tool output costs {size} ({ends})"),
    "open": case(
        "content.open", "part of content.parts: not shown", "tool output has no significant effect ({size}, {ends})"
    ),
    "unclear": case(
        "content.unclear",
        "part of content.parts: the difference supports no claim (as in `gain.rule`, `uneven`, `answering`, `others`, "
        "`split`)",
        "with tool output it changes by {size} ({ends}), {why}",
    ),
}
NO_OUTPUT = case(
    "content.none",
    "part of content.parts: no tool answered a call",
    "tool output adds nothing, because no tool answered a call",
)


def _state_of(row: Result) -> State:
    return shown(row) if row.holds else "open"


def _clause(cases: Mapping[str, Case], row: Result, unclear: str | None = None) -> str:
    if unclear is not None:
        return cases["unclear"].fill(size=signed(row), ends=f"{CI} {ends_of(row)}", why=unclear)
    state = _state_of(row)
    size = signed(row) if state == "open" else size_of(row)
    note = ", not after adjustment (Holm)" if state == "open" and row.excludes_zero else ""
    return cases[state].fill(size=size, ends=f"{CI} {ends_of(row, cost=state == 'less')}{note}")


SECTION = statistic(rows, lead, chart="intervals", order=120)
