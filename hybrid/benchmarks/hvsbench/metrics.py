"""HVSBench's metrics: similarity of scanpaths to human scanpaths, and aggregates of scores.

    compare(path, human_paths, Rules())      # {"m_shape": ..., "m_dir": ..., "m_len": ..., "m_pos": ...}

The paper (section 3.3) follows the code of the scanpath model HAT. Coordinates are in pixels of a fixed screen, and all
durations are 1. A predicted path is cut to six fixations; a path with fewer than three is padded with points (1, 1) in
pixels. The similarity is the mean over the human paths of the image. Direction and position depend on the shape of the
screen, which is a setting.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hybrid.benchmarks.base import accuracy
from hybrid.benchmarks.card import metric_of
from hybrid.benchmarks.hvsbench.multimatch import MIN_FIXATIONS, multimatch
from hybrid.core.types import Cell, Combine, Metric, Scanpath, Score

FACTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
FIELDS: Final[Mapping[str, Sequence[str]]] = FACTS["fields"]
SCANPATH_TASKS: Final = ("Q9", "Q12")

# The first four columns of MultiMatch under the names of the metrics; the paper prints m_dir and m_pos.
DIMENSIONS: Final = ("m_shape", "m_dir", "m_len", "m_pos")

# Ends of the rescaled range, for some dimensions, by question type: the scores of a random guess and of people.
PUBLISHED_ENDS: Final[Mapping[str, Mapping[str, Sequence[float]]]] = FACTS["published_ends"]

# Mean true count of Q2, which replaces a reply without a number (section 3.3).
FALLBACK_COUNT: Final = 3.2116
# Replaces a reply without the three lists (Table 7).
FALLBACK_PATH: Final = Scanpath((0.5,), (0.5,), (0.0,))

PADDING_PX: Final = 1.0
CROP: Final = 6


@dataclass(frozen=True)
class Rules:
    """Parameters of the similarity of two scanpaths."""

    # Width and height in pixels; HAT resizes the images of COCO-Search18 and COCO-FreeView to this size.
    screen: tuple[int, int] = (512, 320)
    # Number of fixations to which a prediction is cut.
    crop: int = CROP
    # Whether human paths are cut too, as in one loader of HAT; the paper cuts only predictions.
    crop_truth: bool = False


def compare(path: Scanpath, humans: Sequence[Scanpath], rules: Rules) -> dict[str, float]:
    """Return the mean similarity of a predicted path to the human paths, by dimension.

    The similarity in a dimension is at most 1 and may be negative.

    A predicted point outside the image counts as the nearest point inside.
    """
    paths = [_predicted(path, rules), *(_true(human, rules) for human in humans)]
    table = multimatch(paths, [(0, place) for place in range(1, len(paths))], rules.screen)
    return dict(zip(DIMENSIONS, table.mean(axis=0).tolist(), strict=False))


@lru_cache(maxsize=2048)  # the result is the same for every solver, and computing it takes most of the scoring time
def references(humans: tuple[Scanpath, ...], other: Scanpath | None, rules: Rules) -> Mapping[str, float]:
    """Return `compare` for people and for a random guess, as `m_dir_human`, `m_dir_random` and so on.

    Human: each subject's path against those of the others, then the mean over subjects (leave one out); needs two
        paths.
    Random: `other`, a human path of another image.
    """
    pairs = [(a, b) for a in range(len(humans)) for b in range(len(humans)) if a != b]
    similarities: dict[str, float] = {}
    if pairs:
        paths = [make(human, rules) for make in (_predicted, _true) for human in humans]
        means = multimatch(paths, [(a, len(humans) + b) for a, b in pairs], rules.screen).mean(axis=0)
        similarities |= {f"{name}_human": float(mean) for name, mean in zip(DIMENSIONS, means, strict=False)}
    if other is not None:
        similarities |= {f"{name}_random": value for name, value in compare(other, humans, rules).items()}
    return similarities


def _predicted(path: Scanpath, rules: Rules) -> NDArray[np.float64]:
    points = np.clip(np.array([path.x, path.y], np.float64).T[: rules.crop], 0.0, 1.0)
    return _on_screen(points, rules)


def _true(path: Scanpath, rules: Rules) -> NDArray[np.float64]:
    points = np.array([path.x, path.y], np.float64).T
    return _on_screen(points[: rules.crop] if rules.crop_truth else points, rules)


def _on_screen(points: NDArray[np.float64], rules: Rules) -> NDArray[np.float64]:
    """Return rows of x and y in pixels and duration 1, padded to as many rows as MultiMatch needs."""
    table = np.full((max(len(points), MIN_FIXATIONS), 3), PADDING_PX)
    table[: len(points), :2] = points * rules.screen
    return table


def summarise(scores: Sequence[Score]) -> tuple[Metric, ...]:
    """Compute the metrics of `hvsbench` for which there are questions; `DIM` is one of `DIMENSIONS`, `q` q9 or q12.

    `overall_accuracy` (micro, without Q9 and Q12), `accuracy.FIELD`, `mae`, `rmse`, `DIM.q`; the references
    `DIM_human.q` and `DIM_random.q`; for m_dir and m_pos `DIM_rescaled_published.q` and `DIM_rescaled_measured.q`.

    Failed questions are left out of everything, including `n`.
    """
    judged = [score for score in scores if score.task not in SCANPATH_TASKS]
    metrics = [accuracy("overall_accuracy", judged)]
    for field, tasks in FIELDS.items():
        if members := [score for score in judged if score.task in tasks]:
            metrics.append(accuracy(f"accuracy.{field}", members))
    errors = [score for score in scores if "error" in score.values]
    if errors:
        metrics.append(_mean("mae", errors, lambda score: abs(score.values["error"])))
        metrics.append(_mean("rmse", errors, lambda score: score.values["error"] ** 2, "root_of_ratio"))
    for task in SCANPATH_TASKS:
        paths = [score for score in scores if score.task == task and "m_dir" in score.values]
        for name in DIMENSIONS if paths else ():
            metrics += _dimension(name, task, paths)
    return tuple(metrics)


def _dimension(name: str, task: str, paths: Sequence[Score]) -> list[Metric]:
    """Return the means of a dimension of MultiMatch over scanpaths, its references, and its rescaled means."""
    metrics, means = list[Metric](), dict[str, float]()
    for key in (name, f"{name}_human", f"{name}_random"):
        if scored := [score for score in paths if key in score.values]:
            metric = _mean(f"{key}.{task.lower()}", scored, lambda score: score.values[key], share=True)  # noqa: B023
            metrics.append(metric)
            if metric.value is not None and len(scored) == len(paths):
                means[key] = metric.value
    return [*metrics, *_rescaled(name, task, paths, means)]


def _rescaled(name: str, task: str, scores: Sequence[Score], means: Mapping[str, float]) -> list[Metric]:
    """Rescale M-Dir and M-Pos so that a random path has 0 and a human path 1.

    The ends of the scale are those of Table 3 in one metric, and those measured on these questions in the other.

    The measured ends need both references on every question; each question is compared with its own random path, and
    the span from random to human is treated as fixed in resampling.
    """
    metrics: list[Metric] = []
    if name not in PUBLISHED_ENDS[task]:
        return metrics
    low, high = PUBLISHED_ENDS[task][name]
    published = f"{name}_rescaled_published.{task.lower()}"
    metrics.append(_mean(published, scores, lambda score: (score.values[name] - low) / (high - low)))
    has_both = means.keys() >= {f"{name}_human", f"{name}_random"}
    span = means[f"{name}_human"] - means[f"{name}_random"] if has_both else 0.0
    if span > 0:
        measured = f"{name}_rescaled_measured.{task.lower()}"
        metrics.append(_mean(measured, scores, lambda s: (s.values[name] - s.values[f"{name}_random"]) / span))
    return metrics


def _mean(
    name: str,
    scores: Sequence[Score],
    value: Callable[[Score], float],
    combination: Combine = "ratio",
    *,
    share: bool = False,
) -> Metric:
    # `share` is False for errors and for rescaled similarities, which may be outside 0 to 1.
    return metric_of(name, (Cell("", score.unit, value(score), 1.0) for score in scores), combination, share=share)
