"""The simulation behind the coverage of the decomposition: its truths, and a few seeds that guard the intervals."""

from collections import Counter

import numpy as np
import pytest

from bench import decomposition as bench
from hybrid.scoring.sections.decomposition import GAIN, PARTS, SIGNS, TERMS


@pytest.mark.parametrize("name", bench.MODELS)
def test_the_truths_add_up_and_multiply_as_the_estimates_do(name: str):
    known = {name: one.value for name, one in bench.truths(bench.MODELS[name], blocks=1).items()}
    assert sum(sign * known[part] for part, sign in zip(PARTS, SIGNS, strict=True)) == pytest.approx(known[GAIN])
    for term in TERMS:
        assert known[term.mass] * known[term.policy] * known[term.quality] == pytest.approx(known[term.part])
    for part in bench.BY_TOOL:
        assert sum(known[f"{part}, {tools[0]}"] for tools in bench.TOOLS) == pytest.approx(known[part])


@pytest.mark.parametrize("design", bench.DESIGNS, ids=lambda design: design.name)
def test_questions_are_drawn_as_the_design_says(design: bench.Design):
    questions = bench.drawn(np.random.default_rng(0), bench.copying, design)
    assert len(questions) == design.questions
    assert tuple(Counter(one.task for one in questions).values()) == design.sizes
    assert len({one.cluster for one in questions}) == design.questions // design.rows


@pytest.mark.system
def test_the_intervals_of_regular_estimates_hold_the_truth():
    held = []
    for model in bench.MODELS.values():
        known = bench.truths(model, blocks=3)
        for design in bench.DESIGNS:
            shares = bench.coverage(model, known, design, simulations=6, seed=1)
            held += [share for name, share in shares.items() if known[name].regular(design)]
    assert len(held) > 80
    # Intervals of a nominal 90 % are below, of 99 % above.
    assert 0.93 <= np.mean(held) <= 0.97
