"""The second opinion on a jigsaw: used only if the seams do not decide; DINO on a small checkpoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError
from hybrid.serving.input_check import run_probes
from hybrid.serving.known_answers import run_checks
from hybrid.tool import Request
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.dense_features import DenseFeatures, feature_map
from tools.jigsaw import (
    DECIDED,
    OPINION_CERTAIN,
    TOOL,
    JigsawArgs,
    SecondOpinion,
    affinity,
    decide_by_features,
    report,
    solve,
    vote,
)
from tools.jigsaw.checks import CHECKS

REFERENCE, *PIECES = CHECKS[-1].pose().images
# No seam distinguishes these two pieces; the second, image 3, has the picture's pattern.
TIED = (REFERENCE, *PIECES[2:])


@pytest.fixture(scope="module")
def backend(things_checkpoint: Checkpoints) -> SecondOpinion:
    opinion = SecondOpinion()
    opinion.setup("cpu", str(things_checkpoint("dinov2")))
    return opinion


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=4))
def test_the_largest_cosine_wins_within_the_confidence_of_an_opinion(cosines: list[float]):
    opinion = decide_by_features(cosines)
    assert 1 / len(cosines) <= opinion.confidence <= max(OPINION_CERTAIN, 1 / len(cosines))
    if opinion.best is not None:
        assert cosines[opinion.best] == max(cosines)


def test_equal_features_leave_a_tie(backend: SecondOpinion):
    data = report(TIED, vote(TIED), decide_by_features([0.5, 0.5]))
    assert data.data["best"] is None
    assert data.confidence == 0.5
    assert data.pictures == ()
    (same,) = backend.run([Request((TIED[0], TIED[1], TIED[1]), JigsawArgs())])
    assert (same.data["best"], same.data["by"]) == (None, "seams")
    assert same.data["cosine"][0] == pytest.approx(same.data["cosine"][1], abs=1e-6)


def test_the_network_is_not_asked_about_pieces_that_show_nothing(backend: SecondOpinion):
    noise = np.random.default_rng(0).integers(0, 256, (3, *TIED[1].shape), dtype=np.uint8)
    level = [np.full(TIED[1].shape, grey, np.uint8) for grey in (90, 92)]
    for pieces in (noise[:2], level):
        (evidence,) = backend.run([Request((TIED[0], *pieces), JigsawArgs())])
        assert evidence.data["by"] == "seams"
        assert evidence.data["cosine"] is None


def test_the_network_is_asked_once_for_each_candidate_of_an_undecided_puzzle_only(backend: SecondOpinion):
    assert len(backend.prepare(Request(TIED, JigsawArgs())).wholes) == 2
    for index in range(2):
        images = item("Jigsaw", index, 3).images
        alone, request = solve(images), Request(images, JigsawArgs())
        assert alone.confidence >= DECIDED
        assert backend.prepare(request).wholes == ()
        result, tied = backend.run([request, Request(TIED, JigsawArgs())])
        assert result.data == {**alone.data, "by": "seams", "cosine": None}
        assert (result.text, result.confidence) == (alone.text, alone.confidence)
        assert tied.data["by"] == "features"


def test_whole_seams_need_no_network(backend: SecondOpinion):
    """Pieces with whole seams pass without the network. The pictures that reach it are correct; what it recognises
    depends on its weights."""
    answers = run_checks(TOOL, backend)
    (seen,) = run_probes(TOOL, backend)
    assert seen.wrong is None
    assert [answer.wrong for answer in answers if answer.series is None] == [None, None]
    assert len([entry for entry in answers if entry.series is not None]) == len(TOOL.checks) - 2
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+dinov2@")


def test_affinity_is_a_cosine_and_a_strip_is_refused(backend: SecondOpinion, things_checkpoint: Checkpoints):
    model = DenseFeatures(str(things_checkpoint("dinov3")), "cpu")
    prepared = model.prepare(np.random.default_rng(0).integers(0, 256, (90, 140, 3)).astype(np.uint8))
    first, second = (
        affinity(feature_map("jigsaw", prepared, entry), 70, 45) for entry in model.predict([prepared] * 2)
    )
    assert first == pytest.approx(second, abs=1e-6)
    assert -1 <= first <= 1
    # Equal pieces with a pattern, so that the seams tie and the network is asked.
    strip = np.full((40, 400, 3), 40, np.uint8)
    strip[:, np.arange(400) % 40 < 4] = 200
    piece = strip[20:, 200:].copy()
    strip[20:, 200:] = 0
    with pytest.raises(ToolError, match="jigsaw: an image of 400 x 40 px is too elongated"):
        backend.run([Request((strip, piece, piece), JigsawArgs())])
