"""The sections on single solvers, recomputed: values, ends and cost, value of a guess, repetitions, votes."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hybrid.core.types import Outcome
from tests.recomputed.rows import Side, measured, result
from tests.recomputed.runs import (
    HEADLINE,
    JsonObject,
    Runs,
    accuracy,
    aligned,
    by_task,
    column,
    failed,
    metrics,
    tasks_of,
    with_failed,
)
from tests.recomputed.sums import t_quantile, value

# Bins of the winner's share of votes.
BINS = {
    (0.0, 0.5): "above 0% to 50%",
    (0.5, 0.75): "above 50% to 75%",
    (0.75, 0.999): "above 75%, not all",
    (0.999, 1.0): "all agree",
}


def answers(question: JsonObject) -> list[str]:
    """Return all possible answers to a question."""
    return list("ABCD"[: len(question["choices"])]) if question["choices"] else ["yes", "no"]


def key(question: JsonObject) -> str:
    """Return the right answer."""
    return str(question["target"]).strip("()")


def each_metric(runs: Runs) -> Iterator[JsonObject]:
    """Yield section `metrics`: every metric, and every metric again with failed questions counted as wrong."""
    head = HEADLINE[runs.benchmark]
    for name, scores in runs.scores.items():
        rows = list(scores.values())
        present = [row for row in rows if not failed(row)]
        values = [row for row in rows if failed(row) or row["answer"] is not None]
        if name == "specialist" and 0 < sum(row["answer"] is not None for row in present) < len(present):
            of = {"a": name, "metric": head}
            side = metrics(runs.benchmark, values, runs.rule)[head]
            yield measured(result("metrics", "value where answered", "fraction", None, **of), side)
            share = sum(not failed(row) for row in values) / len(present)
            yield result("metrics", "coverage", "fraction", share, **of, n=len(present))
        counts = {"": rows} | ({"with_failed.": with_failed(rows)} if any(map(failed, rows)) else {})
        for prefix, current in counts.items():
            for metric, side in metrics(runs.benchmark, current, runs.rule).items():
                of = {"a": name, "metric": f"{prefix}{metric}", "none": runs.rule}
                of |= {"detail": True} if prefix and metric != head else {}
                yield measured(result("metrics", "value", "fraction", None, **of), side)


def tasks(runs: Runs) -> Iterator[JsonObject]:
    """Yield each solver's accuracy by task."""
    for name, scores in runs.scores.items():
        for task, rows in tasks_of(scores.values()).items():
            of = {"a": name, "group": task, "none": runs.rule}
            yield measured(result("tasks", "accuracy", "fraction", None, **of), ("ratio", accuracy(rows, runs.rule)))
            values = [row for row in rows if not failed(row)]
            items = [row for row in values if row["answer"] is not None]
            if name == "specialist" and 0 < len(items) < len(values):
                of |= {"none": ""}
                side: Side = ("ratio", accuracy(items, runs.rule))
                yield measured(result("tasks", "accuracy where answered", "fraction", None, **of), side)
            none = sum(row["answer"] is None for row in values)
            yield result("tasks", "none", "questions", none, a=name, group=task, n=len(values))


def models(runs: Runs) -> Iterator[JsonObject]:
    """Yield nothing for one model; else a row for each solver with a model, and each task."""
    asking = [name for name in runs.scores if runs.model(name) is not None]
    if len({runs.model(name) for name in asking}) < 2:
        return
    for name in asking:
        rows = list(runs.scores[name].values())
        sides: dict[str, Side] = {
            HEADLINE[runs.benchmark]: metrics(runs.benchmark, rows, runs.rule)[HEADLINE[runs.benchmark]]
        }
        sides |= {task: ("ratio", accuracy(current, runs.rule)) for task, current in tasks_of(rows).items()}
        for quantity, side in sides.items():
            yield result("models", quantity, "fraction", value(*side), a=name, n=len(side[1]), none=runs.rule)


def outcomes(runs: Runs) -> Iterator[JsonObject]:
    """Count how questions ended, and sum the costs of attempts."""
    for name, scores in runs.scores.items():
        count, of = Counter(row["outcome"] for row in scores.values()), {"a": name, "n": len(scores)}
        for outcome in Outcome:
            some = count[outcome.value]
            yield result("outcomes", outcome.value, "questions", some, **of, detail=not some)
        attempts = runs.attempts(name)
        used = _usage(attempts)
        steps = [step for row in attempts for item in row["exchanges"] for step in item["reply"]["steps"]]
        rows = [
            ("(no such tool)" if s["fault"] == "unknown_tool" else s["name"], s) for s in steps if s["kind"] == "tool"
        ]
        for tool, fault in {(tool, step["fault"]) for tool, step in rows if step["fault"]}:
            quantity = f"calls that ended in faults: {fault.replace('_', ' ')}"
            values = [step for other, step in rows if other == tool]
            count = sum(step["fault"] == fault for step in values)
            dead = all(step["fault"] for step in values) and {"tool_error", "timeout"} & {
                step["fault"] for step in values
            }
            row = result("outcomes", quantity, "calls", count, a=name, metric=tool, n=len(values))
            yield {**row, "note": next(step["text"] for step in values if step["fault"])} if dead else row
        assert all(attempt["started"] == place for place, attempt in enumerate(attempts) if name != "controller")
        spent: dict[tuple[str, str], float | None] = {
            ("model calls", "calls"): used["model_calls"],
            ("tool calls", "calls"): used["tool_calls"],
            ("lost", "calls"): used["tool_faults"],
            ("tokens in", "tokens"): used["input_tokens"],
            ("tokens out", "tokens"): used["output_tokens"],
            ("busy", "seconds"): used["seconds"],
            # Each attempt began a second after the previous one, and took half a second.
            ("wall", "seconds"): sum(entry["seconds"] for entry in attempts),
            ("cost", "USD"): None,
        }
        for (quantity, kind), number in spent.items():
            yield result("outcomes", quantity, kind, number, **of)


def _usage(attempts: Iterable[JsonObject]) -> Mapping[str, float]:
    total: Counter[str] = Counter()
    for attempt in attempts:
        for exchange in attempt["exchanges"]:
            total.update({key: item for key, item in exchange["reply"]["usage"].items() if item is not None})
    return total


def cost(runs: Runs) -> Iterator[JsonObject]:
    """Yield tokens per question, as no price is known, next to the headline metric."""
    head = HEADLINE[runs.benchmark]
    for name, scores in runs.scores.items():
        rows, used = list(scores.values()), _usage(runs.attempts(name))
        total = sum(row["outcome"] not in ("outage", "broken") for row in rows)
        spent = (used["input_tokens"] + used["output_tokens"]) / total
        yield result("cost", "tokens per question", "tokens", spent, a=name, metric=head, n=total)
        row = result("cost", "value", "fraction", None, a=name, metric=head)
        yield measured(row, metrics(runs.benchmark, rows, runs.rule)[head])


def chance(runs: Runs) -> Iterator[JsonObject]:
    """Compute the guess by trying every answer, and the best constant answer by counting keys."""
    for task in sorted({row["task"] for row in runs.scores["mllm"].values()}):
        by_score = {
            name: [row for row in rows.values() if row["task"] == task and not failed(row)]
            for name, rows in runs.scores.items()
        }
        ids = {row["id"] for rows in by_score.values() for row in rows}
        keys = Counter(key(runs.questions[identity]) for identity in ids)
        often = min(keys, key=lambda answer: (-keys[answer], answer))
        of = {"metric": "accuracy", "group": task}
        yield result("chance", "guess", "fraction", guess(runs, ids), **of, n=len(ids))
        note = f"always {often}, chosen by the answer key: an upper bound for a constant answer"
        share = keys[often] / len(ids)
        yield result("chance", "most frequent answer", "fraction", share, **of, n=len(ids), note=note)
        for name, rows in by_score.items():
            yield _above(name, ("ratio", accuracy(rows, runs.rule)), guess(runs, (row["id"] for row in rows)), **of)
    for metric in metrics(runs.benchmark, list(runs.scores["mllm"].values()), runs.rule):
        sides = {}
        for name, scores in runs.scores.items():
            guessed = [{**row, "correct": guess(runs, [row["id"]]), "answer": "?"} for row in scores.values()]
            current, by_guess = (
                metrics(runs.benchmark, item, runs.rule)[metric] for item in (list(scores.values()), guessed)
            )
            sides[name] = (current, value(*by_guess))
            yield _above(name, current, value(*by_guess), metric=metric)
        (_, cells), weight = max(sides.values(), key=lambda other_item: len(other_item[0][1]))
        yield result("chance", "guess", "fraction", weight, metric=metric, n=len(cells))


def _above(name: str, side: Side, weight: float, **of: str) -> JsonObject:
    row = measured(result("chance", "above guess", "fraction", None, a=name, **of), side)
    return {**row, **{key: row[key] - weight for key in ("value", "low", "high")}}


def guess(runs: Runs, ids: Iterable[str]) -> float:
    """Return the share of right answers among all possible answers, averaged over questions."""
    values = [runs.questions[identity] for identity in ids]
    return sum(sum(answer == key(q) for answer in answers(q)) / len(answers(q)) for q in values) / len(values)


def spread(runs: Runs) -> Iterator[JsonObject]:
    """Yield mean, standard deviation and Student's interval of the MLLM's repetitions, and the changed verdicts."""
    names = [name for name in runs.scores if name.startswith("mllm")]
    assert names == ["mllm", "mllm@2", "mllm@3"]
    aligned_rows = aligned(runs, names)
    for task, rows in {"": aligned_rows, **by_task(aligned_rows)}.items():
        sides: list[Side] = [
            ("ratio", accuracy(column(rows, place), runs.rule))
            if task
            else metrics(runs.benchmark, column(rows, place), runs.rule)[HEADLINE[runs.benchmark]]
            for place in range(len(names))
        ]
        values = [value(*side) for side in sides]
        mean, sd = statistics.mean(values), statistics.stdev(values)
        half = t_quantile(len(values) - 1) * sd / math.sqrt(len(values))
        of = {"metric": "accuracy" if task else HEADLINE[runs.benchmark], "group": task, "n": len(sides[0][1])}
        for name, item in zip(names, values, strict=True):
            yield result("spread", "value", "fraction", item, **of, a=name)
        ends = {"low": mean - half, "high": mean + half}
        yield result("spread", "mean over repetitions", "fraction", mean, **of, a=names[0], **ends)
        yield result("spread", "standard deviation over repetitions", "fraction", sd, **of, a=names[0])
        judged = [row for row in rows if not failed(row[0])]
        changed = [row[0]["id"] for row in judged if len({entry["correct"] for entry in row}) > 1]
        assert changed
        of |= {"n": len(judged), "a": names[0]}
        yield result("spread", "share of changed verdicts", "fraction", len(changed) / len(judged), **of, ids=changed)


def sampling(runs: Runs) -> Iterator[JsonObject]:
    """Read every sample with a pattern and compare it with the key; count shares of votes again."""
    for name in runs.scores:
        if name.startswith("mllm"):
            yield from _voted(runs, name)


def _voted(runs: Runs, solver: str) -> Iterator[JsonObject]:
    rows = {identity: row for identity, row in runs.scores[solver].items() if not failed(row)}
    steps = {
        attempt["id"]: attempt["exchanges"][0]["reply"]["steps"]
        for attempt in runs.attempts(solver)
        if attempt["id"] in rows
    }
    texts = {i: [step["text"] for step in current if step["name"] == "sample"] for i, current in steps.items()}
    votes = {i: next(step["data"] for step in own_rows if step["name"] == "vote") for i, own_rows in steps.items()}
    read = {i: [_read(text) for text in other_text] for i, other_text in texts.items()}
    verdicts = {
        i: [_worth(runs.questions[i], answer, runs.rule) for answer in other_value] for i, other_value in read.items()
    }
    yield from _next_to_samples(runs, solver, list(rows.values()), verdicts)
    total = sum(map(len, read.values()))
    counts = {i: Counter(answer for answer in value_value if answer is not None) for i, value_value in read.items()}
    share = {i: max(count.values()) / count.total() for i, count in counts.items() if count}
    shares = {
        "share of refusals": sum(vote["refused"] for vote in votes.values()) / total,
        "share of unreadable samples": sum(
            answer is None for other_current in read.values() for answer in other_current
        )
        / total,
        "mean share of the winner": statistics.mean(share.values()),
    }
    for quantity, item in shares.items():
        yield result("sampling", quantity, "fraction", item, a=solver, n=total)
    for (low, high), name in BINS.items():
        inside = [i for i, entry in share.items() if low < entry <= high]
        if inside:
            row = result("sampling", "accuracy by share of the winner", "fraction", None, a=solver, metric="accuracy")
            row["group"] = name
            yield measured(row, ("ratio", accuracy([rows[i] for i in inside], runs.rule)))
            claimed = statistics.mean(votes[i]["confidence"] for i in inside)
            row |= {"quantity": "claimed by share of the winner", "value": claimed, "n": len(inside), "detail": True}
            yield row


def _read(text: str) -> str | None:
    match = re.fullmatch(r"Answer: \(?(\w+)\)?", text)
    return match[1] if match else None


def _worth(question: JsonObject, answer: str | None, rule: str) -> float:
    if answer is None:
        return 1 / len(answers(question)) if rule == "guess" else 0.0
    return float(answer == key(question))


def _next_to_samples(
    runs: Runs, solver: str, rows: Sequence[JsonObject], verdicts: Mapping[str, Sequence[float]]
) -> Iterator[JsonObject]:
    head, count = HEADLINE[runs.benchmark], len(next(iter(verdicts.values())))

    def of(members: Sequence[JsonObject], values: Sequence[float], task: str) -> Side:
        changed = [{**row, "correct": item} for row, item in zip(members, values, strict=True)]
        return ("ratio", accuracy(changed, runs.rule)) if task else metrics(runs.benchmark, changed, runs.rule)[head]

    for task, current in {"": rows, **tasks_of(rows)}.items():
        vote = of(current, [row["correct"] for row in current], task)
        singles = [
            value(*of(current, [verdicts[row["id"]][number] for row in current], task)) for number in range(count)
        ]
        best = value(*of(current, [max(verdicts[row["id"]]) for row in current], task))
        of_all = {"vote": value(*vote), "single sample": statistics.mean(singles), "best of samples": best}
        for quantity, entry in of_all.items():
            place = {"metric": "accuracy" if task else head, "group": task, "n": len(vote[1])}
            yield result("sampling", quantity, "fraction", entry, a=solver, **place)
