"""The computed accuracy of guessing equals that of the solver `chance` in long seeded runs, and values computed by
hand."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from baselines import chance
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Kind, Outcome, Prompt, Question, Reply, Score
from hybrid.plugins.registry import load, names
from hybrid.running.data import mount, questions
from hybrid.running.generated import generate
from hybrid.scoring.chance_baseline import ChanceEnd, Guess, Guesser, at_once, metrics_of_a_guess

BENCHMARKS = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.sample_tasks]
RUNS = 150
SETTINGS = {"actiview": {"mode": "shift"}, "mvp_bench": {"mcq": "both"}, "mm_sap": {"shuffles": "2"}}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Question, ...]]:
    """Return two generated questions of each task, with all their variants."""
    home = tmp_path_factory.mktemp("generated")
    store = ImageStore(home / "images")
    results = {}
    for name in BENCHMARKS:
        bench: Benchmark = load("hybrid.benchmarks", name)
        folder = generate(bench, home / "samples", bench.card.sample_tasks, 2, 0)
        mounted = mount(bench, str(folder), split=None, tasks=(), settings=SETTINGS.get(name, {}), store=store)
        request = questions(bench, mounted.source, None)
        results[name] = tuple(item for item in request if isinstance(item, Question))
    return results


def simulated(bench: Benchmark, request: Sequence[Question], fakes: Any, run: int) -> list[Score]:
    """Return the scores of `baselines/chance.py` for all questions; each run has its own seed."""

    def once(question: Question) -> Score:
        rng = random.Random(f"{run}/{question.id}")

        async def ask(prompt: Prompt) -> Reply:
            return await chance.SOLVER.ask(prompt, fakes.context_of(prompt, seed=rng.getrandbits(60)))

        return bench.score(question, at_once(bench.dialogue(question.without_target(), ask)), AS_PAPERS)

    return [once(question) for question in request]


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_guess_comes_to_what_the_solver_chance_does(
    name: str, generated: dict[str, tuple[Question, ...]], fakes: Any
) -> None:
    bench: Benchmark = load("hybrid.benchmarks", name)
    request = generated[name]
    guesser = Guesser(bench, AS_PAPERS, draws=24)
    guesses = [guesser.of(question) for question in request]
    runs = [simulated(bench, request, fakes, run) for run in range(RUNS)]
    for task in {question.task for question in request}:
        places = [place for place, question in enumerate(request) if question.task == task]
        if guesses[places[0]].correct is None:
            continue
        assert all(guesses[place].exact for place in places)
        guessed = fmean(guesses[place].correct or 0.0 for place in places)
        rates = [fmean(run[place].correct or 0.0 for place in places) for run in runs]
        # The tolerance is four standard errors of the simulated rate, and not less than those of the computed rate.
        error = max(stdev(rates), math.sqrt(guessed * (1 - guessed) / len(places))) / math.sqrt(RUNS)
        assert fmean(rates) == pytest.approx(guessed, abs=4 * error), task
    measured: dict[str, list[float]] = {}
    for run in runs:
        for metric in bench.summarise(run):
            if metric.value is not None and metric.cells:
                measured.setdefault(metric.name, []).append(metric.value)
    value = metrics_of_a_guess(bench, request, guesses, tuple(measured))
    assert set(bench.card.headline) & set(measured) <= set(value)
    for metric_name, result in value.items():
        values = measured[metric_name]
        if len(values) < RUNS:
            continue
        # A unit of several questions is rarely right, so its standard error is that of a rare event.
        rare = math.sqrt(abs(result.value * (1 - result.value))) if 0 <= result.value <= 1 else 0.0
        error = math.hypot(max(stdev(values), rare * 0.5) / math.sqrt(RUNS), result.error or 0.0)
        assert fmean(values) == pytest.approx(result.value, abs=4.5 * error + 1e-9), metric_name


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_questions_that_are_followed_once_for_all_come_to_the_same(
    name: str, generated: dict[str, tuple[Question, ...]]
) -> None:
    bench: Benchmark = load("hybrid.benchmarks", name)
    shared = Guesser(bench, AS_PAPERS, draws=2)
    for question in generated[name]:
        current = Guesser(bench, AS_PAPERS, draws=2).of(question)
        expected = shared.of(question).expected
        of_other = {"id": expected.id, "groups": expected.groups, "cluster": expected.cluster}
        assert replace(current.expected, **of_other) == expected
        assert shared.of(question).by_answer == current.by_answer


@pytest.mark.slow
def test_the_two_parses_read_a_guess_alike(generated: dict[str, tuple[Question, ...]]) -> None:
    for name in BENCHMARKS:
        bench: Benchmark = load("hybrid.benchmarks", name)
        strict, official = (Guesser(bench, ScoreOptions(parse), 2) for parse in ("strict", "official"))
        for question in generated[name]:
            assert strict.of(question).correct == pytest.approx(official.of(question).correct), question.id


@pytest.mark.slow
def test_exact_values_by_hand(generated: dict[str, tuple[Question, ...]]) -> None:
    def worth(name: str, metrics: tuple[str, ...]) -> dict[str, Any]:
        bench: Benchmark = load("hybrid.benchmarks", name)
        guesser = Guesser(bench, AS_PAPERS, 2)
        request = generated[name]
        return metrics_of_a_guess(bench, request, [guesser.of(item) for item in request], metrics)

    # A unit is right if all its rows are right: two pictures of a yes/no question, three questions of a picture, six
    # rows of a pair, or five rotations of five options.
    pairs = worth("mvp_bench", ("qAcc.multi", "iAcc.all", "mAcc", "circular.single", "vanilla.single"))
    expected = {
        "qAcc.multi": 1 / 4,
        "iAcc.all": 1 / 8,
        "mAcc": 1 / 64,
        "circular.single": 5**-5,
        "vanilla.single": 1 / 5,
    }
    assert {name: pair.value for name, pair in pairs.items()} == pytest.approx(expected)
    assert all(result.error is None for result in pairs.values())
    # With five options the guess is right in 1/5; on KnowVisQA it refuses (1/5) and then picks a wrong one of the other
    # four (3/4).
    aware = worth("mm_sap", ("score_sa.total", "score_ku.KnowVisQA", "unknown_knowns_rate"))
    assert aware["score_ku.KnowVisQA"].value == pytest.approx(1 / 5 * 3 / 4)
    assert aware["score_sa.total"].value == pytest.approx((1 / 5 + (1 / 5 + 3 / 20) + 1 / 5) / 3)
    assert aware["score_sa.total"].error is None
    # Simulation, which has an error, is needed if both sums of a ratio depend on the draws, for metrics of deviations,
    # and if answers cannot be listed.
    assert aware["unknown_knowns_rate"].error is not None
    people = worth("hvsbench", ("overall_accuracy", "mae", "rmse", "m_dir.q9"))
    assert people["overall_accuracy"].error is None
    assert None not in (people["mae"].error, people["rmse"].error, people["m_dir.q9"].error)


def make_guess(*parts: tuple[float, float | None, str | None], exact: bool = True) -> Guess:
    return Guess(
        tuple(ChanceEnd(p, Score("q", "T", correct, Outcome.ANSWERED, answer)) for p, correct, answer in parts), exact
    )


def test_the_parts_of_a_guess_by_hand() -> None:
    guess = make_guess((0.5, 1.0, "A"), (0.25, 0.0, "B"), (0.25, 1.0, "B"))
    assert guess.correct == 0.75
    assert guess.by_answer == {"A": 1.0, "B": 0.5}
    assert guess.variance == 0.0
    assert make_guess((0.5, None, "path"), (0.5, None, "path")).correct is None
    sample = make_guess((0.25, 1.0, "A"), (0.25, 0.0, "B"), (0.25, 0.0, "B"), (0.25, 0.0, "B"), exact=False)
    # Sample variance 1/4 over four draws.
    assert (sample.correct, sample.variance, sample.by_answer) == (0.25, 0.0625, {})


@pytest.mark.slow
def test_a_dialogue_of_too_many_ends_is_drawn_and_says_so(generated: dict[str, tuple[Question, ...]]) -> None:
    bench: Benchmark = load("hybrid.benchmarks", "hvsbench")
    order = next(question for question in generated["hvsbench"] if question.kind is Kind.ORDER)
    many = replace(order, choices=tuple(f"box {n}" for n in range(6)), target="ABCDEF")
    guess = Guesser(bench, AS_PAPERS, draws=5).of(many)
    assert (guess.exact, len(guess.ends)) == (False, 5)
    assert guess == Guesser(bench, AS_PAPERS, draws=5).of(many)


def test_a_dialogue_that_waits_for_something_else_is_an_error() -> None:
    class Pause:
        def __await__(self) -> Any:
            yield None

    async def waits() -> int:
        await Pause()
        return 1

    with pytest.raises(RuntimeError, match="waited"):
        at_once(waits())
