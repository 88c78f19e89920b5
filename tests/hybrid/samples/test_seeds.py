"""Random streams by purpose: measured scenes differ from those used for fitting, and samples do not change."""

import ast
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.blink.sample import item, letter
from hybrid.samples.seeds import Purpose, generator

ROOT = Path(__file__).resolve().parents[3]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
OWN = [purpose for purpose in PURPOSES if purpose != "sample"]
NUMBERS = st.integers(0, 2**70)
KEYS = st.lists(NUMBERS, min_size=3, max_size=5).map(tuple)


def first(rng: np.random.Generator) -> tuple[int, ...]:
    """Return enough of a stream to distinguish it from others."""
    return tuple(int(value) for value in rng.integers(0, 2**63, 4))


@given(KEYS)
def test_purposes_never_share_a_stream(key: tuple[int, ...]) -> None:
    assert len({first(generator(purpose, *key)) for purpose in PURPOSES}) == len(PURPOSES)


@pytest.mark.parametrize("purpose", OWN)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.lists(NUMBERS, min_size=1, max_size=4))
def test_a_key_is_one_stream_and_two_never_share_it(purpose: Purpose, key: list[int], other_key: list[int]) -> None:
    assert first(generator(purpose, *key)) == first(generator(purpose, *key))
    assert (first(generator(purpose, *key)) == first(generator(purpose, *other_key))) == (key == other_key)


@given(KEYS)
def test_a_sample_is_what_it_was(key: tuple[int, ...]) -> None:
    assert first(generator("sample", *key)) == first(np.random.default_rng(list(key)))


@pytest.mark.parametrize("key", [(), (-1,), (3, -2, 1)])
@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_key_of_other_numbers_is_refused(purpose: Purpose, key: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="numbers of at least 0"):
        generator(purpose, *key)


@pytest.mark.parametrize("key", [(5,), (5, 6)])
def test_a_sample_needs_a_whole_key(key: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="seed, task and number"):
        generator("sample", *key)


@pytest.mark.system
@pytest.mark.parametrize("seed", [0, 1000])
def test_no_sample_shows_a_picture_that_was_fitted(seed: int) -> None:
    text, fitted = (
        [item("Relative_Reflectance", index, seed, purpose) for index in range(3)] for purpose in ("sample", "fit")
    )
    assert not any(np.array_equal(a.images[0], b.images[0]) for a in text for b in fitted)
    letters = [[letter("Relative_Reflectance", n, seed, purpose) for n in range(30)] for purpose in ("sample", "fit")]
    assert letters[0] != letters[1]
    assert sorted(letters[0]) == sorted(letters[1])


def _seeded(path: Path) -> list[str]:
    """Return the arguments of every call of `default_rng` in a file, as source text."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func).endswith("default_rng") and call.args]


# Files that make the generators, simulate statistics or measure time; they draw no scene.
NO_SCENES = (
    *("seeds.py", "coverage.py", "_grouped.py", "_loop_questions.py", "_large_run.py", "tool_worker.py", "cache.py"),
    "kappa.py",
    "decomposition.py",
    "sentences.py",
    "_sentence_worlds.py",
    "arbiter.py",
    "places.py",
)


def test_generators_and_benches_seed_by_purpose() -> None:
    """Generators and benches draw random numbers by purpose. Two exceptions derive a generator from a scene's own seed,
    and one samples pixels of measured frames."""
    by_line = {
        f"{path.parent.name}/{path.name}": seeded
        for folder in ("hybrid/samples", "bench")
        for path in sorted((ROOT / folder).glob("*.py"))
        if path.name not in NO_SCENES and (seeded := _seeded(path))
    }
    assert by_line == {
        # The generator of the purpose draws this seed, which the two pictures of a pair share.
        "samples/named.py": ["seed"],
        "samples/pop_out.py": ["self.seed"],
        "bench/saliency.py": ["scene.seed"],
        "bench/depth.py": ["(seed, 14)"],
    }
