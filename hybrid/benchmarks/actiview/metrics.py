"""ActiView's verdicts and numbers: the released rule for answers, and recall of the chosen views, right and as printed.

The released code counts views from 0 while shifting and compares them with ground truth that counts from 1, so that
four views seen give 641 of 859 clue views, the 74.62 % of the paper's Table 13; `recall_shift` counts both from 1 and
`recall_shift_paper` does as the paper did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from hybrid.benchmarks._shared.scores import grouped, ratio
from hybrid.benchmarks.actiview.data import TASKS
from hybrid.benchmarks.actiview.settings import AVERAGED
from hybrid.benchmarks.base import metric_of, present
from hybrid.types import Cell, Metric, Score

CUE = "Answer:"
INDEX = "ABCDEFGHZ"


def official_answer(text: str, choices: Sequence[str], gold: str) -> str | None:
    """The option letter by the released `cal_acc`: a letter, or None where it cannot count as any answer.

    Text after "Answer:" where that stands; what is before the first full stop is looked up in "ABCDEFGHZ", otherwise
    the whole must equal the gold option's text (case and outer blanks apart). `gold` is its letter. As that look-up
    finds longer pieces too, "AB" is an A; an empty reply, which it would find at A as well, is no answer here.
    """
    answer = text.split(CUE, 1)[1].strip() if CUE in text else text.strip()
    head = answer.split(".", maxsplit=1)[0]
    at = INDEX.find(head) if head else -1
    if 0 <= at < len(choices):
        return INDEX[at]
    return gold if answer and answer.casefold() == choices[INDEX.index(gold)].strip().casefold() else None


def hits(shown: Collection[int], clues: Collection[int]) -> int:
    """How many of the views with clues were shown; both count from 1."""
    return len(set(shown) & set(clues))


def hits_as_printed(shown: Collection[int], clues: Collection[int]) -> int:
    """How many views with clues were shown, with shown views counted from 0 as in the shifting columns of Table 13."""
    return len({number - 1 for number in shown} & set(clues))


def summarise(scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Accuracies (all, by type, task and mode), Model AVG, recalls, views, zooms, shifts, declined, and chance."""
    scores = present(scores)
    modes = tuple(dict.fromkeys(score.groups.get("mode", "") for score in scores))
    name = accuracy_name(scores)
    metrics = [_accuracy(f"{name}.all", scores)]
    metrics += [
        _accuracy(f"{name}.type_{kind}", part) for kind, part in _by(scores, lambda s: s.groups.get("type", ""))
    ]
    metrics += [_accuracy(f"{name}.{task}", part) for task, part in _by(scores, lambda s: s.task)]
    metrics += [_accuracy(f"{name}.{mode}", part) for mode, part in _by(scores, lambda s: s.groups.get("mode", ""))]
    if set(AVERAGED) <= set(modes):
        five = [score for score in scores if score.groups.get("mode") in AVERAGED]
        label = name.removeprefix("accuracy")
        metrics.append(_accuracy(f"model_avg{label}", five, stratum=lambda s: s.groups["mode"]))
    metrics += _recalls(scores)
    for key in ("views", "zooms", "shifts", "declined"):
        known = [score for score in scores if key in score.values]
        if known:
            metrics.append(ratio(f"{key}.mean", known, key, share=key == "declined"))
    if scores:
        metrics.append(ratio("chance", [score for score in scores if "chance" in score.values], "chance"))
    return tuple(metrics)


def accuracy_name(scores: Sequence[Score]) -> str:
    """`accuracy`, or a name with what else was used: the gold answer (any view), the marked views (oracle)."""
    if any("any_view" in score.values for score in scores):
        return "accuracy_any_view_uses_gold"
    if any("oracle_views" in score.values for score in scores):
        return "accuracy_oracle_views"
    return "accuracy"


def _recalls(scores: Sequence[Score]) -> list[Metric]:
    metrics = []
    for mode in ("zoom", "shift", "mixed"):
        known = [
            score for score in scores if score.groups.get("mode", "").split("_")[0] == mode and "hits" in score.values
        ]
        if not known:
            continue
        metrics.append(ratio(f"recall_{mode}", known, "hits", "clues"))
        if mode == "shift":
            metrics.append(ratio("recall_shift_paper", known, "hits_as_printed", "clues"))
    return metrics


def _accuracy(name: str, scores: Sequence[Score], stratum: Callable[[Score], str] | None = None) -> Metric:
    cells = (
        Cell(stratum(score) if stratum else "", score.unit, score.correct, 1.0)
        for score in scores
        if score.correct is not None
    )
    return metric_of(name, cells, "mean_of_ratios" if stratum else "ratio")


def _by(scores: Sequence[Score], key: Callable[[Score], str]) -> list[tuple[str, list[Score]]]:
    order = {name: place for place, name in enumerate(TASKS)}
    return sorted(grouped(scores, key).items(), key=lambda item: (order.get(item[0], 0), item[0]))
