"""The sections on tools, recomputed: three plain rules read the tool outputs of an attempt, and calls are counted."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.recomputed.rows import gated, measured, result, withheld
from tests.recomputed.runs import Cell, JsonObject, Runs, aligned, failed, rightness, unit
from tests.recomputed.solvers import answers, key

# By task, the tool whose output decides.
ASKED = {"Counting": "detection", "Jigsaw": "jigsaw", "Relative_Depth": "depth", "yes_no": "detection"}
CLASS = {
    (False, "right", True): "correct adoption",
    (True, "right", True): "confirmed",
    (False, "right", False): "ignored evidence",
    (True, "right", False): "ignored evidence",
    (True, "wrong", False): "over-trust",
    (True, "wrong", True): "resisted",
    (False, "wrong", False): "wrong from both",
    (False, "wrong", True): "right despite both",
}
HYBRID, ALONE = "controller", "mllm"
CALLERS = ("controller", "controller [blank]", "controller [shuffled]", "specialist")


def calls(runs: Runs, solver: str) -> dict[str, list[JsonObject]]:
    """Return the tool calls of each question by id."""
    return {
        row["id"]: [step for item in row["exchanges"] for step in item["reply"]["steps"] if step["kind"] == "tool"]
        for row in runs.attempts(solver)
    }


def found_answer(question: JsonObject, objects: Sequence[JsonObject]) -> str | None:
    """Return the answer that the last output of the right tool gives; None without one."""
    useful = [call for call in objects if call["name"] == ASKED[question["task"]] and call["fault"] is None]
    if not useful:
        return None
    data = useful[-1]["data"]["data"]
    if question["task"] == "Jigsaw":
        return None if data["best"] is None else "AB"[data["best"]]
    if question["task"] == "Relative_Depth":
        return data["nearer"]
    count = data["counts"].get("cup")
    if question["task"] == "Counting":
        return None if count is None else answers(question)[question["choices"].index(str(count))]
    return None if count is None else ("yes" if count else "no")


class Case(NamedTuple):
    """A question: whether the MLLM alone and the hybrid are right, the answer of the output, the class, and whether the
    hybrid adopted the output.
    """

    row: JsonObject
    alone: bool
    finding: str
    hybrid: bool
    name: str
    as_found: bool


def cases(runs: Runs) -> list[Case]:
    results, called_name = [], calls(runs, HYBRID)
    for identity, row in runs.scores[HYBRID].items():
        previous = runs.scores[ALONE][identity]
        if failed(row) or failed(previous):
            continue
        alone, hybrid = previous["correct"] == 1, row["correct"] == 1
        built, question = called_name[identity], runs.questions[identity]
        answer = found_answer(question, built)
        if answer is not None:
            finding = "right" if answer == key(question) else "wrong"
            name = CLASS[alone, finding, hybrid]
        else:
            finding = "none"
            names = {call["name"] for call in built}
            name = "no finding" if ASKED[row["task"]] in names else "wrong tool" if built else "no call"
        results.append(Case(row, alone, finding, hybrid, name, answer is not None and answer == row["answer"]))
    return results


# Cases of each rate, and which of them count.
RATES: Mapping[str, tuple[Callable[[Case], bool], Callable[[Case], bool]]] = {
    "adoption": (lambda c: not c.alone and c.finding == "right", lambda c: c.hybrid),
    "over-trust": (lambda c: c.alone and c.finding == "wrong", lambda c: not c.hybrid),
    "harmed against a right finding": (lambda c: c.alone and c.finding == "right", lambda c: not c.hybrid),
    "harmed without a finding": (lambda c: c.alone and c.finding == "none", lambda c: not c.hybrid),
    "right findings": (lambda c: c.finding in ("right", "wrong"), lambda c: c.finding == "right"),
}


def evidence(runs: Runs) -> Iterator[JsonObject]:
    """Yield classes, rates, and the questions left out because a solver failed them."""
    payload = {"a": ALONE, "b": HYBRID}
    all_rows, aligned_rows = cases(runs), aligned(runs, (ALONE, HYBRID), repeated=False)
    for task in ("", *sorted({case.row["task"] for case in all_rows})):
        inside = [case for case in all_rows if task in ("", case.row["task"])]
        of = {**payload, "group": task}
        for name in dict.fromkeys((*CLASS.values(), "no finding", "wrong tool", "no call", "unread")):
            values = [case for case in inside if case.name == name]
            parts = {
                "": values,
                ": helped": [case for case in values if case.hybrid and not case.alone],
                ": harmed": [case for case in values if case.alone and not case.hybrid],
                ": as found": [case for case in values if case.as_found],
            }
            for part, members in parts.items():
                if members or (not part and not task):
                    ids, n = [case.row["id"] for case in members], len(values) if part else len(inside)
                    row = {**of, "n": n, "ids": ids, "detail": bool(part)}
                    yield result("evidence", f"{name}{part}", "questions", len(members), **row)
        for rate, (over, counts) in RATES.items():
            if values := [case for case in inside if over(case)]:
                cells = [Cell("", unit(case.row), float(counts(case))) for case in values]
                row = measured(result("evidence", f"{rate} rate", "fraction", None, **of), ("ratio", cells))
                yield gated(row, withheld(aligned_rows, [row for row in aligned_rows if task in ("", row[0]["task"])]))
            elif not task:
                yield result("evidence", f"{rate} rate", "fraction", None, **of, n=0)
    scores = [i for i, row in runs.scores[HYBRID].items() if failed(row) or failed(runs.scores[ALONE][i])]
    yield result("evidence", "left out: failed", "questions", len(scores), **payload, ids=scores)


def tool_use(runs: Runs) -> Iterator[JsonObject]:
    """Yield calls, faults and right answers by solver, tool and task."""
    for solver in CALLERS:
        called_name = calls(runs, solver)
        by_score = {
            i: [(_tool(call), call) for call in called_name[i]]
            for i, row in runs.scores[solver].items()
            if not failed(row)
        }
        tools = sorted({tool for value in by_score.values() for tool, _ in value})
        tasks = sorted({runs.scores[solver][i]["task"] for i in by_score})
        for tool in ("", *tools):
            for task in ("", *tasks):
                inside = {i: current for i, current in by_score.items() if task in ("", runs.scores[solver][i]["task"])}
                if not tool or any(name == tool for own_rows in inside.values() for name, _ in own_rows):
                    yield from _used(runs, solver, tool, task, inside)


def _tool(call: JsonObject) -> str:
    return "(no such tool)" if call["fault"] == "unknown_tool" else call["name"]


def _used(
    runs: Runs, solver: str, tool: str, task: str, mapping: Mapping[str, Sequence[tuple[str, JsonObject]]]
) -> Iterator[JsonObject]:
    by_value = {i: [call for name, call in value if tool in ("", name)] for i, value in mapping.items()}
    flat = [call for item in by_value.values() for call in item]
    of = {"a": solver, "metric": tool, "group": task}
    first = sum(tool in ("", entry[0][0]) for entry in mapping.values() if entry)
    counts = {
        ("questions with a call", "questions"): sum(bool(other_value) for other_value in by_value.values()),
        ("calls", "calls"): len(flat),
        ("most calls a question", "calls"): max(map(len, by_value.values()), default=0),
        ("called first", "questions"): first,
    }
    for (quantity, kind), count in counts.items():
        detail = quantity in ("most calls a question", "called first")
        yield result("tool_use", quantity, kind, count, **of, n=len(mapping), detail=detail)
    for fault, count in Counter(call["fault"] for call in flat if call["fault"]).items():
        name = fault if fault == "absent" else f"faults: {fault.replace('_', ' ')}"
        yield result("tool_use", name, "calls", count, **of, n=len(flat))
    correct = {i: rightness(runs.scores[solver][i], runs.rule) for i in mapping}
    for quantity, expected in (("right when called", True), ("right when not called", False)):
        if judged := [correct[i] for i, value_value in by_value.items() if bool(value_value) is expected]:
            share = sum(judged) / len(judged)
            yield result("tool_use", quantity, "fraction", share, **of, n=len(judged), none=runs.rule)
    if flat:
        seconds = sum(call["seconds"] for call in flat) / len(flat)
        yield result("tool_use", "seconds a call", "seconds", seconds, **of, n=len(flat))
