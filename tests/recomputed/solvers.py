"""The sections on single solvers once more: what a guess is worth, repetitions, and votes over samples."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from scipy.stats import t as student

from tests.recomputed.runs import (
    HEADLINE,
    JsonObject,
    Runs,
    accuracy,
    aligned,
    by_task,
    column,
    failed,
    lines,
    metrics,
)
from tests.recomputed.sums import interval, same, value

SHARES = ((0.0, 0.5), (0.5, 0.75), (0.75, 0.999), (0.999, 1.0))


def answers(question: JsonObject) -> list[str]:
    """All that can be answered to a question."""
    return list("ABCD"[: len(question["choices"])]) if question["choices"] else ["yes", "no"]


def key(question: JsonObject) -> str:
    """The right one of them."""
    return str(question["target"]).strip("()")


def floor(runs: Runs, records: Sequence[JsonObject]) -> None:
    """The guess by trying every answer, and the best constant answer by counting keys."""
    told = {(kind, record[kind]): record for record in records for kind in ("task", "metric") if kind in record}
    expected = {}
    for task in {row["task"] for row in runs.scores["mllm"].values()}:
        kept = {
            name: [row for row in rows.values() if row["task"] == task and not failed(row)]
            for name, rows in runs.scores.items()
        }
        asked = {row["id"] for rows in kept.values() for row in rows}
        keys = Counter(key(runs.questions[identity]) for identity in asked)
        often = min(keys, key=lambda answer: (-keys[answer], answer))
        expected["task", task] = {
            "task": task,
            "n": len(asked),
            **_exact(guess(runs, asked)),
            "most_frequent": {"answer": often, "share": keys[often] / len(asked)},
            "solvers": {
                name: _above("ratio", accuracy(rows, "chance"), guess(runs, (row["id"] for row in rows)))
                for name, rows in kept.items()
            },
        }
    for metric in metrics(runs.benchmark, list(runs.scores["mllm"].values()), "chance"):
        solvers = {}
        for name, rows in runs.scores.items():
            guessed = [{**row, "correct": guess(runs, [row["id"]]), "answer": "?"} for row in rows.values()]
            own, by_guess = (metrics(runs.benchmark, each, "chance")[metric] for each in (list(rows.values()), guessed))
            solvers[name] = _above(*own, value(*by_guess))
        most = max(solvers.values(), key=lambda each: each["n"])
        expected["metric", metric] = {
            "metric": metric,
            "n": most["n"],
            **_exact(most["guess"]),
            "most_frequent": None,
            "solvers": solvers,
        }
    assert len(told) == len(records)
    same(told, expected)


def guess(runs: Runs, ids: Iterable[str]) -> float:
    """The share of right ones among all answers, on average over questions."""
    asked = [runs.questions[identity] for identity in ids]
    return sum(sum(one == key(q) for one in answers(q)) / len(answers(q)) for q in asked) / len(asked)


def _exact(worth: float) -> JsonObject:
    return {"guess": worth, "exact": True, "standard_error": None}


def _above(how: str, cells: Sequence, worth: float) -> JsonObject:  # type: ignore[type-arg]
    found, (low, high) = value(how, cells), interval(how, cells)
    return {
        "n": len(cells),
        "value": found,
        "guess": worth,
        "difference": found - worth,
        "interval": [low, high],
        "excludes_guess": not low <= worth <= high,
    }


def spread(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Mean, standard deviation and Student's interval of the MLLM's repetitions, and whose verdict changed."""
    names = [name for name in runs.scores if name.startswith("mllm")]
    assert names == ["mllm", "mllm@2", "mllm@3"]
    whole = aligned(runs, names)
    kept = [row for row in whole if not failed(row[0])]
    changed = {row[0]["id"]: [one["correct"] for one in row] for row in kept}
    quantities = []
    for group, rows in {"": whole, **by_task(whole)}.items():
        sides = [
            ("ratio", accuracy(column(rows, place), "chance"))
            if group
            else metrics(runs.benchmark, column(rows, place), "chance")[HEADLINE[runs.benchmark]]
            for place in range(len(names))
        ]
        values = [value(*side) for side in sides]
        mean = sum(values) / len(values)
        sd = math.sqrt(sum((one - mean) ** 2 for one in values) / (len(values) - 1))
        half = float(student.ppf(0.975, len(values) - 1)) * sd / math.sqrt(len(values))
        judged = [row for row in rows if not failed(row[0])]
        quantities.append(
            {
                "metric": "accuracy" if group else HEADLINE[runs.benchmark],
                "group": group,
                "n": len(sides[0][1]),
                "values": values,
                "mean": mean,
                "sd": sd,
                "least": min(values),
                "greatest": max(values),
                "interval": [mean - half, mean + half],
                "changed": sum(len({one["correct"] for one in row}) > 1 for row in judged),
                "judged": len(judged),
            }
        )
    different = {identity: verdicts for identity, verdicts in changed.items() if len(set(verdicts)) > 1}
    assert different
    same(records, [{"solver": "mllm", "repetitions": names, "quantities": quantities, "changed": different}])


def sampling(runs: Runs, records: Sequence[JsonObject]) -> None:
    """Every sample read by a pattern and held against the key; shares of votes counted once more."""
    solvers = [name for name in runs.scores if name.startswith("mllm")]
    assert [record["solver"] for record in records] == solvers
    for name, record in zip(solvers, records, strict=True):
        same(record, {"solver": name, **_voted(runs, name)})


def _voted(runs: Runs, solver: str) -> JsonObject:
    rows = {identity: row for identity, row in runs.scores[solver].items() if not failed(row)}
    steps = {
        line["id"]: line["exchanges"][0]["reply"]["steps"]
        for line in lines(runs.folders[solver] / "attempts.jsonl")
        if line["id"] in rows
    }
    texts = {i: [step["text"] for step in own if step["name"] == "sample"] for i, own in steps.items()}
    votes = {i: next(step["data"] for step in own if step["name"] == "vote") for i, own in steps.items()}
    read = {i: [_read(text) for text in own] for i, own in texts.items()}
    verdicts = {i: [_worth(runs.questions[i], answer) for answer in own] for i, own in read.items()}
    drawn = sum(map(len, read.values()))
    counts = {i: Counter(answer for answer in own if answer is not None) for i, own in read.items()}
    share = {i: max(own.values()) / own.total() for i, own in counts.items() if own}
    return {
        "questions": len(rows),
        "samples": drawn,
        "refused": sum(vote["refused"] for vote in votes.values()),
        "unreadable_share": sum(answer is None for own in read.values() for answer in own) / drawn,
        "winner_share": statistics.mean(share.values()),
        "without_verdict": 0,
        "quantities": _vote_next_to_samples(runs, list(rows.values()), verdicts),
        "by_share": [bin_ for low, high in SHARES for bin_ in _bin(runs, solver, share, votes, (low, high))],
        "ids": {
            i: {"vote": float(rows[i]["correct"]), "single": sum(own) / len(own), "best": max(own)}
            for i, own in verdicts.items()
        },
    }


def _read(text: str) -> str | None:
    found = re.fullmatch(r"Answer: \(?(\w+)\)?", text)
    return found[1] if found else None


def _worth(question: JsonObject, answer: str | None) -> float:
    return 1 / len(answers(question)) if answer is None else float(answer == key(question))


def _vote_next_to_samples(runs: Runs, rows: Sequence[JsonObject], verdicts: dict[str, list[float]]) -> list[JsonObject]:
    head = HEADLINE[runs.benchmark]

    def headline(worth: Sequence[float]) -> float:
        changed = [{**row, "correct": one} for row, one in zip(rows, worth, strict=True)]
        return value(*metrics(runs.benchmark, changed, "chance")[head])

    count = len(next(iter(verdicts.values())))
    singles = [headline([verdicts[row["id"]][number] for row in rows]) for number in range(count)]
    found = [
        {
            "metric": head,
            "group": "",
            "n": len(metrics(runs.benchmark, rows, "chance")[head][1]),
            "vote": headline([row["correct"] for row in rows]),
            "single_sample": sum(singles) / count,
            "best": headline([max(verdicts[row["id"]]) for row in rows]),
        }
    ]
    for task, own in by_task([(row,) for row in rows]).items():
        inside = column(own, 0)
        found.append(
            {
                "metric": "accuracy",
                "group": task,
                "n": len(inside),
                "vote": sum(row["correct"] for row in inside) / len(inside),
                "single_sample": sum(sum(verdicts[row["id"]]) for row in inside) / (count * len(inside)),
                "best": sum(max(verdicts[row["id"]]) for row in inside) / len(inside),
            }
        )
    return found


def _bin(
    runs: Runs, solver: str, share: dict[str, float], votes: dict[str, JsonObject], ends: tuple[float, float]
) -> list[JsonObject]:
    inside = [i for i, one in share.items() if ends[0] < one <= ends[1]]
    if not inside:
        return []
    cells = accuracy([runs.scores[solver][i] for i in inside], "chance")
    return [
        {
            "above": ends[0],
            "to": ends[1],
            "n": len(inside),
            "share": sum(share[i] for i in inside) / len(inside),
            "claimed": sum(votes[i]["confidence"] for i in inside) / len(inside),
            "accuracy": value("ratio", cells),
            "interval": interval("ratio", cells),
        }
    ]
