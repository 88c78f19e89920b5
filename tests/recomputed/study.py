"""The sections of a study, recomputed from the events of each question and from plain sets of questions."""

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.recomputed.rows import gated, measured, result, withheld
from tests.recomputed.runs import Cell, JsonObject, Runs, aligned, by_task, credit, failed, rightness, unanswered, unit
from tests.recomputed.sums import contrast, fieller, value
from tests.recomputed.traces import calls

HYBRID, ALONE, SPECIALIST = "controller", "mllm", "specialist"
WRONG, RIGHT = "wrong alone", "right alone"
# By part, the questions that it covers, whether a tool was called, and their outcome with tools.
FACTORS = {
    "gain with a call": (WRONG, True, "right"),
    "gain without a call": (WRONG, False, "right"),
    "harm with a call": (RIGHT, True, "wrong"),
    "harm without a call": (RIGHT, False, "wrong"),
}


class Asked(NamedTuple):
    """A question, and the results of the MLLM alone and of the hybrid on it."""

    id: str
    task: str
    cluster: str
    alone: float
    hybrid: float
    tools: tuple[str, ...]
    answered: bool

    def events(self) -> dict[str, float]:
        """Return the question's share in every named event."""
        up, down = max(self.hybrid - self.alone, 0), max(self.alone - self.hybrid, 0)
        payload = {"gain": self.hybrid - self.alone, "accuracy alone": self.alone}
        payload |= {"gain by answering": 0 if self.answered else up, "harm by no answer": 0 if self.answered else down}
        alone = {WRONG: (1 - self.alone) * self.answered, RIGHT: self.alone * self.answered}
        change = {"right": up * self.answered, "wrong": down * self.answered}
        for part, (of, call, became) in FACTORS.items():
            acted = bool(self.tools) is call
            payload[of] = alone[of]
            payload[f"{of}, {'call' if call else 'no call'}"] = alone[of] * acted
            payload[part] = change[became] * acted
        return payload


def read_questions(runs: Runs) -> list[Asked]:
    results, built = [], calls(runs, HYBRID)
    for alone, hybrid in aligned(runs, (ALONE, HYBRID)):
        if not failed(alone):
            tools = tuple(sorted({call["name"] for call in built[alone["id"]] if call["fault"] is None}))
            values = (credit(alone, runs.rule), credit(hybrid, runs.rule))
            answered = not unanswered(alone) and not unanswered(hybrid)
            results.append(Asked(alone["id"], alone["task"], unit(alone), *values, tools, answered))
    return results


def share(row: JsonObject, questions: Sequence[Asked], above: str, below: str = "", *, macro: bool) -> JsonObject:
    """Return the row with a share of questions, or of an event within an event, and its interval if there are any.

    A ratio of two means over tasks equals a ratio of two sums in which each question weighs 1 / the size of its task.
    """
    size = Counter(question.task for question in questions)
    cells = []
    for item in questions:
        options = {**item.events(), "": 1.0}
        weight = len(questions) / len(size) / size[item.task] if macro and below else 1.0
        if options[below] > 0:
            stratum = item.task if macro and not below else ""
            cells.append(Cell(stratum, item.cluster, options[above] * weight, options[below] * weight))
    if not cells:
        return row
    side = ("macro" if macro and not below else "ratio", cells)
    plain = len(cells) == 1 and cells[0].above in (0, 1) and cells[0].below == 1
    if len({cell.cluster for cell in cells}) == 1 and not plain:
        return {**row, "value": value(*side), "n": len(questions)}
    return {**measured(row, side), "n": len(questions)}


def decomposition(runs: Runs) -> Iterator[JsonObject]:
    """Compute gain, parts and factors, in total and by task; also gain and harm with a call, by the tools called."""
    all_rows = read_questions(runs)
    total = sum(failed(row[0]) for row in aligned(runs, (ALONE, HYBRID)))
    notes = [f"left out: {total} that one of them failed"] * bool(total)
    built = calls(runs, HYBRID)
    dead = sum(bool(built[item.id]) and not item.tools for item in all_rows)
    notes += [f"{dead} with calls that all ended in faults count as without a call"] * bool(dead)
    of = {"a": ALONE, "b": HYBRID, "none": runs.rule}
    payload = {**of, "n": len(all_rows), "note": "; ".join(notes)}
    macro, aligned_rows = runs.benchmark == "blink", aligned(runs, (ALONE, HYBRID))
    reason = withheld(aligned_rows, aligned_rows)
    yield from (gated(row, reason) for row in _parts(payload, all_rows, macro))
    for tools in sorted({entry.tools for entry in all_rows if entry.tools}):
        only = [
            first_item if first_item.tools == tools else first_item._replace(hybrid=first_item.alone)
            for first_item in all_rows
        ]
        for part in ("gain with a call", "harm with a call"):
            row = {**of, "n": len(all_rows), "metric": " + ".join(tools), "ids": _ids_with_event(only, part)}
            yield gated(share(result("decomposition", part, "fraction", None, **row), only, part, macro=macro), reason)
    for task, rows in by_task(aligned_rows).items():
        values = [item_value for item_value in all_rows if item_value.task == task]
        yield from (
            gated(row, withheld(aligned_rows, rows))
            for row in _parts({**of, "n": len(values), "group": task}, values, False)
        )


def _parts(of: JsonObject, questions: Sequence[Asked], macro: bool) -> Iterator[JsonObject]:
    strata = [question.task if macro else "" for question in questions]
    alone = [Cell(stratum, item.cluster, item.alone) for stratum, item in zip(strata, questions, strict=True)]
    hybrid = [Cell(stratum, entry.cluster, entry.hybrid) for stratum, entry in zip(strata, questions, strict=True)]
    estimate = contrast("macro" if macro else "ratio", alone, hybrid)
    low, high = estimate["interval"]
    yield result("decomposition", "gain", "fraction", estimate["difference"], **of, low=low, high=high)
    yield share(
        result("decomposition", "accuracy alone", "fraction", None, **of, detail=True),
        questions,
        "accuracy alone",
        macro=macro,
    )
    for part in (
        ()
        if all(first_question.answered for first_question in questions)
        else ("gain by answering", "harm by no answer")
    ):
        ids = _ids_with_event(questions, part)
        yield share(result("decomposition", part, "fraction", None, **of, ids=ids), questions, part, macro=macro)
    seen = set()
    for part, (of_mass, call, became) in FACTORS.items():
        ids = _ids_with_event(questions, part)
        yield share(result("decomposition", part, "fraction", None, **of, ids=ids), questions, part, macro=macro)
        word = "call" if call else "no call"
        acted = f"{of_mass}, {word}"
        factors = {
            f"P({of_mass})": (of_mass, ""),
            f"P({word} | {of_mass})": (acted, of_mass),
            f"P({became} with tools | {word}, {of_mass})": (part, acted),
        }
        for name, (above, below) in factors.items():
            row = share(
                result("decomposition", name, "fraction", None, **of, detail=True), questions, above, below, macro=macro
            )
            if name not in seen and row["value"] is not None:
                seen.add(name)
                yield row


def _ids_with_event(questions: Sequence[Asked], part: str) -> list[str]:
    return [question.id for question in questions if question.events()[part] > 0]


def tool_only(runs: Runs) -> Iterator[JsonObject]:
    """Yield questions right only with tools, and questions right only without, in any repetition of the MLLM alone."""
    without = [ALONE, *sorted(name for name in runs.scores if name.startswith(f"{ALONE}@"))]
    aligned_rows = aligned(runs, (HYBRID, *without))
    total = sum(failed(row[0]) for row in aligned_rows)
    tasks = defaultdict(list)
    for row in aligned_rows:
        tasks[row[0]["task"]].append(row)
    for task, rows in itertools.chain([("", aligned_rows)], sorted(tasks.items())):
        values = [row for row in rows if not failed(row[0])]
        how_right = {row[0]["id"]: [rightness(item, runs.rule) for item in row] for row in values}
        of = {"a": ALONE, "b": HYBRID, "group": task, "none": runs.rule}
        if total and not task:
            of["note"] = f"left out: {total} that one of them failed"
        for quantity, luck, expected in (
            ("tool-only solved", "by luck", lambda first_item, others: first_item * _none(others)),
            ("tool-only lost", "lost by luck", lambda item_value, others: (1 - item_value) * (1 - _none(others))),
        ):
            by_value = {i: expected(current[0], current[1:]) for i, current in how_right.items()}
            ids = sorted(i for i, count in by_value.items() if count)
            yield result("tool_only", quantity, "questions", sum(by_value.values()), **of, n=len(values), ids=ids)
            new = [
                sum(expected(own_rows[k], [*own_rows[1:k], *own_rows[k + 1 :]]) for own_rows in how_right.values())
                for k in range(1, len(without) + 1)
            ]
            yield result("tool_only", luck, "questions", statistics.fmean(new), **of, n=len(values))
        cells = [
            Cell("", unit(row[0]), other_current[0] * (1 - _none(other_current[1:])), other_current[0])
            for row in values
            for other_current in (how_right[row[0]["id"]],)
            if other_current[0]
        ]
        if cells:
            row = measured(result("tool_only", "solved without tools too", "fraction", None, **of), ("ratio", cells))
            yield gated(row, withheld(aligned_rows, rows))


def _none(others: Sequence[float]) -> float:
    """Return the probability that none of these answers is right."""
    return math.prod(1 - other for other in others)


# By unit, the cost of an answer; no synthetic run has a price.
USAGE: Mapping[str, Callable[[JsonObject], float]] = {
    "seconds": lambda used: used["seconds"],
    "tokens": lambda used: used["input_tokens"] + used["output_tokens"],
}


def unchanged(runs: Runs) -> Iterator[JsonObject]:
    """Count equal answers after a tool call, and in each unit the extra cost of these questions with tools."""
    of, all_rows = {"a": ALONE, "b": HYBRID}, calls(runs, HYBRID)
    aligned_rows = aligned(runs, (ALONE, HYBRID), repeated=False)
    total = sum(failed(row[0]) for row in aligned_rows)
    by_value = {identity: [call for call in current if call["fault"] is None] for identity, current in all_rows.items()}
    ids = [row[0]["id"] for row in aligned_rows if not failed(row[0])]
    faults = sum(len(all_rows[identity]) - len(by_value[identity]) for identity in ids)
    for task, rows in itertools.chain([("", aligned_rows)], by_task(aligned_rows).items()):
        values = [row for row in rows if not failed(row[0]) and by_value[row[0]["id"]]]
        same = [row[0]["id"] for row in values if row[0]["answer"] == row[1]["answer"]]
        cells = [Cell("", unit(row[0]), float(row[0]["id"] in same)) for row in values]
        notes = [f"left out: {total} that one of them failed"] * bool(total)
        notes += [f"{faults} calls ended in faults, left out"] * bool(faults)
        note = "" if task else "; ".join(notes)
        row = result("unchanged", "same answer as alone", "fraction", None, **of, group=task, ids=same, note=note)
        yield gated(measured(row, ("ratio", cells)), withheld(aligned_rows, rows))
    selected = ids
    skip = {identity for identity in selected if by_value[identity] and _same(runs, identity)}
    spent = {name: _spent(runs, name) for name in (ALONE, HYBRID)}
    yield from _saved(of, "calls", {identity: float(len(by_value[identity])) for identity in selected}, skip)
    for name in USAGE:
        more = {identity: spent[HYBRID][identity, name] - spent[ALONE][identity, name] for identity in selected}
        yield from _saved(of, name, more, skip)
    note = f"USD of {ALONE} and {HYBRID} not recorded for {len(selected)} of {len(selected)} questions"
    yield result("unchanged", "USD that could have been skipped", "USD", None, **of, n=len(selected), note=note)
    yield result("unchanged", "share of USD", "fraction", None, **of, n=len(selected), note=note)


def _same(runs: Runs, identity: str) -> bool:
    previous, after = (runs.scores[name][identity]["answer"] for name in (ALONE, HYBRID))
    return bool(previous == after)


def _spent(runs: Runs, solver: str) -> dict[tuple[str, str], float]:
    return {
        (row["id"], name): sum(used(item["reply"]["usage"]) for item in row["exchanges"])
        for row in runs.attempts(solver)
        for name, used in USAGE.items()
    }


def _saved(of: JsonObject, name: str, more: Mapping[str, float], skip: set[str]) -> Iterator[JsonObject]:
    of, total, saved = {**of, "n": len(more)}, sum(more.values()), sum(more[identity] for identity in skip)
    yield result("unchanged", f"{name} that could have been skipped", name, saved, **of)
    cells = [Cell("", place, current if place in skip else 0.0, current) for place, current in more.items()]
    note = "" if total > 0 else f"no {name} more with tools than alone"
    if total > 0 and min(more.values()) < 0 and fieller(cells) is None:
        note = f"not given: the {name} that tools cost do not differ from 0 (95 %)"
    yield result("unchanged", f"share of {name}", "fraction", None if note else saved / total, **of, note=note)


def knowledge(runs: Runs) -> Iterator[JsonObject]:
    """Yield two shares: answers that only the specialist has right and the hybrid keeps, and answers that only the MLLM
    has right and the hybrid loses."""
    aligned_rows = aligned(runs, (HYBRID, ALONE, SPECIALIST))
    total = sum(failed(row[0]) for row in aligned_rows)
    for task, rows in itertools.chain([("", aligned_rows)], by_task(aligned_rows).items()):
        pairs = [
            (row[0]["id"], unit(row[0]), *(rightness(item, runs.rule) for item in row))
            for row in rows
            if not failed(row[0]) and row[2]["answer"] is not None
        ]
        taught = [(i, cluster, s * (1 - a), h) for i, cluster, h, a, s in pairs]
        against = [(i, cluster, (1 - s) * a, 1 - h) for i, cluster, h, a, s in pairs]
        for quantity, over in (
            ("right by the specialist only: share kept", taught),
            ("right by the model only: share lost", against),
        ):
            ids = [i for i, _, weight, counts in over if weight * counts]
            cells = [Cell("", cluster, weight * counts, weight) for _, cluster, weight, counts in over if weight]
            note = f"left out: {total} that one of them failed" if total and not task else ""
            of = {"a": SPECIALIST, "b": HYBRID, "group": task, "ids": ids, "note": note, "none": runs.rule}
            if cells:
                row = measured(result("knowledge", quantity, "fraction", None, **of), ("ratio", cells))
                yield gated(row, withheld(aligned_rows, rows))


def effects(runs: Runs) -> Iterator[JsonObject]:
    """Yield nothing: the synthetic runs have no cell of a study except controls. See
    tests/hybrid/scoring/sections/test_effects.py."""
    del runs
    return iter(())
