"""Repetitions of a solver: names, seeds, requests that are made once, and refusals."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.repetitions import name_of, notes_on_repeats, number_of, repeated, seed_of_repetition, word_of
from hybrid.models.options import options_of_repetition
from hybrid.plugins.registry import solver_names


@dataclass
class Named:
    needs_model: bool = False
    seeded: bool = False


@given(st.sampled_from(solver_names()), st.integers(1, 10**6))
def test_a_name_says_word_and_number(word: str, number: int) -> None:
    name = name_of(word, number)
    assert (word_of(name), number_of(name)) == (word, number)


def test_what_can_vary_is_asked_again_round_by_round() -> None:
    solvers = {"mllm": Named(needs_model=True), "specialist": Named(), "chance": Named(seeded=True)}
    result = repeated(solvers, 3)
    assert list(result) == ["mllm", "specialist", "chance", "mllm@2", "chance@2", "mllm@3", "chance@3"]
    assert result["mllm@3"] is solvers["mllm"]
    assert repeated(solvers, 1) == solvers
    (line,) = notes_on_repeats(solvers, 3)
    assert line.startswith("specialist is asked once: ")
    assert notes_on_repeats(solvers, 1) == ()


@given(st.integers(0, 2**40), st.integers(2, 50), st.integers(2, 50))
def test_seeds_differ_by_repetition_and_come_again(seed: int, first: int, other: int) -> None:
    assert seed_of_repetition(seed, 1) == seed
    result = seed_of_repetition(seed, first)
    assert result == seed_of_repetition(seed, first)
    assert 0 <= result < 2**31
    assert (result == seed_of_repetition(seed, other)) == (first == other)
    # A repetition's seed is neither the run's own seed nor one with which a neighbouring run may start.
    assert result not in (seed, seed + 1, seed + first - 1) or seed >= 2**31


def test_a_server_is_sent_another_seed_and_nothing_else() -> None:
    options = {"temperature": 1.0, "seed": 0}
    assert options_of_repetition(options, 1) is options
    assert options_of_repetition(options, 2) == {"temperature": 1.0, "seed": seed_of_repetition(0, 2)}
    assert options_of_repetition({"temperature": 1.0}, 2) == {"temperature": 1.0}
