"""Every printed metric has a card, and every card describes a printed metric."""

import asyncio
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench._review_worlds import DrawnSolver, annotated_questions, box_around, comparison_of, random_box
from hybrid.benchmarks.actiview.data import TASKS as ACTIVIEW
from hybrid.benchmarks.base import Benchmark, ScoreOptions, Source
from hybrid.benchmarks.card import MetricCard
from hybrid.core.images import ImageStore
from hybrid.core.types import Box, Prompt, Question, Reply, Score
from hybrid.plugins.registry import load, names
from hybrid.scoring.compare import Comparison
from hybrid.scoring.metric_cards import FURTHER
from hybrid.scoring.predicted import score_predictions
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections import places, sections
from tests.tables import cases

BENCHMARKS = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_tasks]
# Benchmarks that the default selection tests.
MANY_METRICS = ("hvsbench", "mm_sap", "mvp_bench")
# Settings that together print every metric, by benchmark; a benchmark without an entry has its defaults.
SETTINGS: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "actiview": (
        *({"mode": mode} for mode in ("full", "single", "shift", "mixed", "average", "commonsense", "guess")),
        *({"mode": "single", "start": start} for start in "EMH"),
        {"views": "oracle"},
        {"images": "any_view"},
        {"mode": "average", "images": "any_view"},
    ),
    "mvp_bench": ({"mcq": "both"},),
}

# Benchmarks whose questions take long to generate, with the number of tasks to generate.
FEW = {"actiview": 1, "blink": 2}
# The benchmark whose metrics combine several questions of a task.
TWICE = "hvsbench"


def printed(name: str, data: Path, store: Path) -> frozenset[str]:
    """Return the metric names of generated questions, some answered correctly, under every setting above."""
    benchmark: Benchmark = load("hybrid.benchmarks", name)
    tasks = benchmark.card.sample_tasks[: FEW.get(name)]
    lines: set[str] = set()
    for settings in SETTINGS.get(name, ({},)):
        source = Source(data, ImageStore(store), benchmark.card.splits[0], tasks, settings)
        questions = [item for item in benchmark.questions(source) if isinstance(item, Question)]
        scores = [scored(benchmark, question, place) for place, question in enumerate(questions)]
        lines |= {metric.name for metric in benchmark.summarise([*scores, *not_generated(name, scores)])}
    return frozenset(lines)


def not_generated(name: str, scores: Sequence[Score]) -> Iterator[Score]:
    """Yield the verdicts once more, with tasks and groups that occur only in published data."""
    if name == "actiview":
        for score in scores:
            for task, facts in ACTIVIEW.items():
                yield replace(score, id=f"{task} {score.id}", task=task, groups={**score.groups, "type": facts["type"]})
    if name == "mvp_bench":
        for score in scores:
            groups = {**score.groups, "category": "B1", "question": f"B1 {score.groups['question']}"}
            if score.task == "yes_no":
                yield replace(score, id=f"B1 {score.id}", groups=groups)


def scored(benchmark: Benchmark, question: Question, place: int) -> Score:
    async def ask(prompt: Prompt) -> Reply:
        right = benchmark.oracle_answer(question, prompt)
        return Reply(right if right is not None and place % 2 else "Answer: (A)")

    exchanges = asyncio.run(collected(benchmark, question, ask))
    return benchmark.score(question, exchanges, ScoreOptions())


async def collected(benchmark: Benchmark, question: Question, ask: Any) -> Any:
    return await benchmark.dialogue(question.without_target(), ask)


def spelled_out(cards: Iterable[MetricCard]) -> Iterator[str]:
    """Yield every name of the cards as a pattern: `<word>` is any text."""
    for card in cards:
        parts = re.split(r"<([^>]+)>", card.name)
        choices = [
            (re.escape(part),) if place % 2 == 0 else tuple(map(re.escape, part.split("|"))) if "|" in part else (".+",)
            for place, part in enumerate(parts)
        ]
        yield from ("".join(words) for words in itertools.product(*choices))


def unused(cards: Iterable[MetricCard], seen: Iterable[str]) -> list[str]:
    seen = tuple(seen)
    return [pattern for pattern in spelled_out(cards) if not any(re.fullmatch(pattern, name) for name in seen)]


def undescribed(cards: Sequence[MetricCard], seen: Iterable[str]) -> list[str]:
    return sorted(name for name in set(seen) if not any(card.describes(name) for card in cards))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in MANY_METRICS else pytest.mark.system) for name in BENCHMARKS]
)
def test_every_metric_has_a_card_and_every_card_a_metric(
    name: str, folders: Callable[[str, int], Path], tmp_path: Path
) -> None:
    cards = load("hybrid.benchmarks", name).card.metrics
    seen = printed(name, folders(name, 2 if name == TWICE else 1), tmp_path)
    assert undescribed(cards, seen) == []
    assert unused(cards, seen) == []


@pytest.mark.system
@pytest.mark.shared_data
@pytest.mark.parametrize(*cases(__file__, "test_published_predictions_print_what_cards_describe"))
def test_published_predictions_print_what_cards_describe(name: str, model: str, shared_data: Path) -> None:
    benchmark: Benchmark = load("hybrid.benchmarks", name)
    data = str(shared_data / "mvp_bench") if name == "mvp_bench" else None
    metrics = score_predictions(shared_data / model, benchmark, "text", ScoreOptions(), data).counted["wrong"].metrics
    assert len(metrics) >= len(benchmark.card.metrics)
    assert undescribed((*benchmark.card.metrics, *FURTHER), [metric.name for metric in metrics]) == []


@pytest.fixture(scope="module")
def quantities(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> dict[str, set[str]]:
    """Return, by section, the quantities in comparisons with controls, failures, repetitions, samples and two
    models."""
    results: dict[str, set[str]] = {}
    folder = tmp_path_factory.mktemp("runs")
    values = [
        synthetic_runs.write(folder / str(place), "blink", size=6, **selected).paths
        for place, selected in enumerate(({"failed": 1}, {"repeats": 3}, {"samples": 3}, {"model": "made:other"}))
    ]
    by_name = {name: {"Jigsaw": "rw"} for name in ("controller", "mllm", "result_only")}
    with_picture = synthetic_runs.with_picture
    study = [synthetic_runs.from_letters(folder / "study", by_name, "real", "both", with_picture).path]
    for output, show in (("oracle", "both"), ("real", "text"), ("real", "image")):
        path = folder / f"{output}-{show}"
        letters = {"controller": by_name["controller"]}
        study.append(synthetic_runs.from_letters(path, letters, output, show, with_picture).path)
    for paths in (*values[:3], (values[0][0], values[3][0]), study):
        for row in compare_paths(paths, allow_failed=True).results:
            results.setdefault(row.section, set()).add(row.quantity)
    # Only annotated questions have rows of `places`.
    results["places"] = {row.quantity for row in places.rows(_annotated(folder / "annotated"))}
    return results


def _annotated(folder: Path) -> Comparison:
    """Return a run in which every second call looks at the annotated box."""
    rng, count = np.random.default_rng(0), 12
    request = annotated_questions(rng, count)
    targets = [question.evidence[0].place for question in request]
    boxes = [
        [box_around(place) if number % 2 else random_box(rng, 50, 200)]
        for number, place in enumerate(targets)
        if isinstance(place, Box)
    ]
    flags = np.arange(count) % 3 > 0
    solvers = {"controller": DrawnSolver(flags, np.ones(count, bool), boxes=boxes), "mllm": DrawnSolver(~flags)}
    return comparison_of(folder, request, real=solvers)


@pytest.mark.system
def test_every_quantity_of_a_comparison_has_a_card(quantities: dict[str, set[str]]) -> None:
    cards = {section.name: section.quantities for section in sections()}
    assert set(quantities) == set(cards)
    for section, seen in quantities.items():
        assert undescribed(cards[section], seen) == [], section


@given(st.text("abAB._", min_size=1, max_size=6))
def test_a_name_without_brackets_describes_itself_alone(name: str) -> None:
    card = MetricCard(name, "", "", "")
    assert card.describes(name)
    assert not card.describes(f"{name}x")
    assert not card.describes(name[1:])
