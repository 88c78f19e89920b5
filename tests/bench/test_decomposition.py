"""The simulation of the decomposition's coverage: the true values add up, and intervals of a few seeds contain them."""

from collections import Counter

import numpy as np
import pytest

from bench import decomposition as bench
from hybrid.scoring.sections.decomposition import GAIN, PARTS, SIGNS, TERMS


@pytest.mark.parametrize("name", bench.MODELS)
def test_the_truths_add_up_and_multiply_as_the_estimates_do(name: str):
    by_truth = {name: truth.value for name, truth in bench.truths(bench.MODELS[name], blocks=1).items()}
    assert sum(sign * by_truth[part] for part, sign in zip(PARTS, SIGNS, strict=True)) == pytest.approx(by_truth[GAIN])
    for term in TERMS:
        assert by_truth[term.mass] * by_truth[term.policy] * by_truth[term.quality] == pytest.approx(
            by_truth[term.part]
        )
    for part in bench.BY_TOOL:
        assert sum(by_truth[f"{part}, {tools[0]}"] for tools in bench.TOOLS) == pytest.approx(by_truth[part])


@pytest.mark.parametrize("design", bench.DESIGNS, ids=lambda design: design.name)
def test_questions_are_drawn_as_the_design_says(design: bench.Design):
    questions = bench.draw_questions(np.random.default_rng(0), bench.copying, design)
    assert len(questions) == design.questions
    assert tuple(Counter(question.task for question in questions).values()) == design.sizes
    assert len({item.cluster for item in questions}) == design.questions // design.rows


@pytest.mark.system
def test_the_intervals_of_regular_estimates_hold_the_truth():
    results = []
    for model in bench.MODELS.values():
        expected_values = bench.truths(model, blocks=3)
        for design in bench.DESIGNS:
            shares = bench.coverage(model, expected_values, design, simulations=6, seed=1)
            results += [share for name, share in shares.items() if expected_values[name].regular(design)]
    assert len(results) > 80
    # Intervals with a nominal level of 90 % would have a coverage below this range, and intervals of 99 % one above it.
    assert 0.93 <= np.mean(results) <= 0.97
