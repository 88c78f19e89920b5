"""The sections on tools once more, from the traces: what findings say by three plain rules, and calls counted."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tests.recomputed.runs import Cell, JsonObject, Runs, failed, unit
from tests.recomputed.solvers import answers, key
from tests.recomputed.sums import interval, same_records

ASKED = {"Counting": "detection", "Jigsaw": "jigsaw", "Relative_Depth": "depth", "yes_no": "detection"}
"""By task the tool whose finding decides."""
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
FAULTS = ("unknown_tool", "unknown_image", "bad_arguments", "tool_error", "timeout", "absent")


def calls(runs: Runs, solver: str, identity: str) -> list[JsonObject] | str:
    """The tool calls of a question, or why they are not known."""
    try:
        trace = json.loads((runs.folders[solver] / "traces" / f"{identity}.json").read_text())
    except FileNotFoundError:
        return "there is no trace"
    except ValueError:
        return "the trace cannot be read"
    return [step for each in trace["exchanges"] for step in each["reply"]["steps"] if step["kind"] == "tool"]


def found_answer(question: JsonObject, made: Sequence[JsonObject]) -> str | None:
    """What the last finding of the right tool comes to."""
    useful = [call for call in made if call["name"] == ASKED[question["task"]] and call["fault"] is None]
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
    """A question that both answered: MLLM alone right, the finding, hybrid right, its class, whether it was adopted."""

    row: JsonObject
    alone: bool
    finding: str
    hybrid: bool
    name: str
    as_found: bool


def cases(runs: Runs) -> list[Case]:
    found = []
    for identity, row in runs.scores[HYBRID].items():
        before = runs.scores[ALONE][identity]
        if failed(row) or failed(before):
            continue
        alone, hybrid = before["correct"] == 1, row["correct"] == 1
        made, question = calls(runs, HYBRID, identity), runs.questions[identity]
        answer = None if isinstance(made, str) else found_answer(question, made)
        if isinstance(made, str):
            finding = name = "unread"
        elif answer is not None:
            finding = "right" if answer == key(question) else "wrong"
            name = CLASS[alone, finding, hybrid]
        else:
            finding = "none"
            names = {call["name"] for call in made}
            name = "no finding" if ASKED[row["task"]] in names else "wrong tool" if made else "no call"
        found.append(Case(row, alone, finding, hybrid, name, answer is not None and answer == row["answer"]))
    return found


RATES: Mapping[str, tuple[Callable[[Case], bool], Callable[[Case], bool]]] = {
    "adoption": (lambda c: not c.alone and c.finding == "right", lambda c: c.hybrid),
    "over-trust": (lambda c: c.alone and c.finding == "wrong", lambda c: not c.hybrid),
    "harmed against a right finding": (lambda c: c.alone and c.finding == "right", lambda c: not c.hybrid),
    "harmed without a finding": (lambda c: c.alone and c.finding == "none", lambda c: not c.hybrid),
    "right findings": (lambda c: c.finding in ("right", "wrong"), lambda c: c.finding == "right"),
}
"""Over which cases, and which of them count."""


def evidence(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Cells, rates, and what is in neither."""
    both = {"hybrid": HYBRID, "alone": ALONE}
    every = cases(runs)
    expected: list[JsonObject] = []
    for task in ("", *sorted({case.row["task"] for case in every})):
        inside = [case for case in every if task in ("", case.row["task"])]
        for cell in {case[1:5] for case in inside}:
            own = [case for case in inside if case[1:5] == cell]
            expected.append(
                {
                    **both,
                    "group": task,
                    **dict(zip(("alone_right", "finding", "hybrid_right", "class"), cell, strict=True)),
                    "n": len(own),
                    "as_found": sum(case.as_found for case in own),
                    "ids": [case.row["id"] for case in own],
                }
            )
        for rate, (over, counts) in RATES.items():
            own = [case for case in inside if over(case)]
            if not own and task:
                continue
            cells = [Cell("", unit(case.row), float(counts(case))) for case in own]
            k = sum(map(counts, own))
            ends = interval("ratio", cells) if cells else None
            rated = {"rate": rate, "k": k, "n": len(own), "value": k / len(own) if own else None}
            expected.append({**both, "group": task, **rated, "interval": ends})
    lost = [i for i, row in runs.scores[HYBRID].items() if failed(row) or failed(runs.scores[ALONE][i])]
    expected.append({**both, "group": "", "left_out": "failed", "n": len(lost), "ids": lost})
    for why, ids in _unread(runs, HYBRID).items():
        expected.append({**both, "group": "", "unread": why, "n": len(ids), "ids": ids})
    keys = ("group", "alone_right", "finding", "hybrid_right", "class", "rate", "left_out", "unread")
    same_records(records, expected, keys)


def _unread(runs: Runs, solver: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for identity, row in runs.scores[solver].items():
        if not failed(row) and isinstance(why := calls(runs, solver, identity), str):
            found.setdefault(why, []).append(identity)
    return found


def tool_use(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Calls, faults and right answers by solver, tool and task."""
    expected: list[JsonObject] = []
    for solver in CALLERS:
        made = {
            i: [(_tool(call), call) for call in found]
            for i, row in runs.scores[solver].items()
            if not failed(row) and not isinstance(found := calls(runs, solver, i), str)
        }
        tools = sorted({tool for own in made.values() for tool, _ in own})
        tasks = sorted({runs.scores[solver][i]["task"] for i in made})
        for tool in ("", *tools):
            for task in ("", *tasks):
                inside = {i: own for i, own in made.items() if task in ("", runs.scores[solver][i]["task"])}
                record = _used(runs, solver, tool, inside)
                if record["questions"] or not tool:
                    expected.append({"solver": solver, "tool": tool, "group": task, **record})
        if lost := [i for ids in _unread(runs, solver).values() for i in ids]:
            expected.append({"solver": solver, "unread": len(lost), "ids": lost})
    same_records(records, expected, ("solver", "tool", "group", "unread"))


def _tool(call: JsonObject) -> str:
    return "(no such tool)" if call["fault"] == "unknown_tool" else call["name"]


def _used(runs: Runs, solver: str, tool: str, made: Mapping[str, Sequence[tuple[str, JsonObject]]]) -> JsonObject:
    own = {i: [call for name, call in each if tool in ("", name)] for i, each in made.items()}
    flat = [call for each in own.values() for call in each]
    faults = Counter(call["fault"] for call in flat)
    correct = {i: runs.scores[solver][i]["correct"] == 1 for i in made}
    return {
        "asked": len(made),
        "questions": sum(bool(each) for each in own.values()),
        "calls": len(flat),
        "faults": {fault: faults[fault] for fault in FAULTS if faults[fault]},
        "right": sum(correct[i] for i, each in own.items() if each),
        "n": sum(bool(each) for each in own.values()),
        "right_without": sum(correct[i] for i, each in own.items() if not each),
        "n_without": sum(not each for each in own.values()),
        "first": sum(tool in ("", each[0][0]) for each in made.values() if each),
        "most": max(map(len, own.values()), default=0),
        "seconds": sum(call["seconds"] for call in flat) / len(flat) if flat else None,
    }
