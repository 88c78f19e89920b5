"""A solver asked again: `hybrid run blink --model openai:gpt-4o --model-arg temperature=1 --setting repeats=3`.

    repeated({"mllm": solver}, 3)               # mllm, mllm@2, mllm@3: one solver under three names
    word_of("mllm@2"), number_of("mllm@2")      # "mllm", 2
    seed_of_repetition(0, 2)                    # the seed of the second repetition in a run of seed 0

A repetition is a solver of its own in all that is kept: folder, attempts, entry of the manifest, replies of the model.
It puts the same prompts with other seeds, and tools tell every repetition the same: no finding depends on the seed of
an ask, and the second time it comes from the cache. So what differs between repetitions is the model's own doing.

How many there are is no part of what a run is: a later command that asks for more of them adds the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol, TypeVar

# Between a solver's word and the number of its repetition: `mllm@2` is the second time that `mllm` was asked all.
REPEAT = "@"
# Seeds of later repetitions are below it: every provider takes such a number.
SEEDS = 2**31


class Repeatable(Protocol):
    """The attributes of a solver that decide whether it is repeated."""

    needs_model: bool
    seeded: bool


S = TypeVar("S", bound=Repeatable)


def name_of(word: str, number: int) -> str:
    """The name of a repetition, counted from 1; the first has the solver's own name."""
    return word if number == 1 else f"{word}{REPEAT}{number}"


def word_of(name: str) -> str:
    """The word on the command line behind a solver's name in a run."""
    return name.partition(REPEAT)[0]


def number_of(name: str) -> int:
    """The number of the repetition, from 1."""
    number = name.partition(REPEAT)[2]
    return int(number) if number.isascii() and number.isdecimal() else 1


def varies(solver: Repeatable) -> bool:
    """Whether a solver can answer otherwise when it is asked again: a model answers for it, or a seed decides."""
    return solver.needs_model or solver.seeded


def repeated(solvers: Mapping[str, S], times: int) -> dict[str, S]:
    """Every solver that varies so many times, the others once: all the first time, then those that vary again."""
    return {
        name_of(word, number): solver
        for number in range(1, times + 1)
        for word, solver in solvers.items()
        if number == 1 or varies(solver)
    }


def notes_on_repeats(solvers: Mapping[str, Repeatable], times: int) -> tuple[str, ...]:
    """A line for each solver that is asked once although repetitions were asked for."""
    if times == 1:
        return ()
    return tuple(
        f"{word} is asked once: it asks no model and draws nothing, so its answers would be the same again"
        for word, solver in solvers.items()
        if not varies(solver)
    )


def seed_of_repetition(seed: int, number: int) -> int:
    """The seed of a repetition in a run of that seed: the run's own for the first, then one of 0..2^31-1."""
    if number == 1:
        return seed
    digest = hashlib.sha256(f"{seed}{REPEAT}{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % SEEDS
