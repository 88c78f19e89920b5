"""Repetitions of a solver: `hybrid run blink --model openai:gpt-4o --model-arg temperature=1 --setting repeats=3`.

    repeated({"mllm": solver}, 3)               # mllm, mllm@2, mllm@3: one solver under three names
    word_of("mllm@2"), number_of("mllm@2")      # "mllm", 2
    seed_of_repetition(0, 2)                    # the seed of the second repetition in a run of seed 0

Each repetition is stored like a separate solver: folder, attempts, entry of the manifest, replies of the model. It
sends the same prompts with other seeds. Tools return the same output to each repetition: it does not depend on the
seed, and from the second repetition on it comes from the cache. Differences between repetitions are therefore due to
the model.

The number of repetitions is not part of the run's identity: a later command may ask for more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol, TypeVar

# Separates a solver's word from the number of its repetition: `mllm@2` is the second repetition of `mllm`.
REPEAT = "@"
# Upper bound of the seeds of later repetitions, which every provider accepts.
SEEDS = 2**31


class Repeatable(Protocol):
    """The attributes of a solver that decide whether it is repeated."""

    needs_model: bool
    seeded: bool


S = TypeVar("S", bound=Repeatable)


def name_of(word: str, number: int) -> str:
    """Return the name of a repetition (from 1); the first one has the solver's own name."""
    return word if number == 1 else f"{word}{REPEAT}{number}"


def word_of(name: str) -> str:
    """Return the word that selects a solver on the command line, given its name in a run."""
    return name.partition(REPEAT)[0]


def number_of(name: str) -> int:
    """Return the number of the repetition, from 1."""
    number = name.partition(REPEAT)[2]
    return int(number) if number.isascii() and number.isdecimal() else 1


def varies(solver: Repeatable) -> bool:
    """Return whether a solver may answer differently when repeated, because it asks a model or uses a seed."""
    return solver.needs_model or solver.seeded


def repeated(solvers: Mapping[str, S], times: int) -> dict[str, S]:
    """Repeat each solver whose answers may vary `times` times, and run the others once; repetitions come last."""
    return {
        name_of(word, number): solver
        for number in range(1, times + 1)
        for word, solver in solvers.items()
        if number == 1 or varies(solver)
    }


def notes_on_repeats(solvers: Mapping[str, Repeatable], times: int) -> tuple[str, ...]:
    """Return one line per solver that runs once although repetitions were requested."""
    if times == 1:
        return ()
    return tuple(
        f"{word} is asked once: it asks no model and draws no random numbers, so its answers would be the same again"
        for word, solver in solvers.items()
        if not varies(solver)
    )


def seed_of_repetition(seed: int, number: int) -> int:
    """Return the seed of a repetition: for the first the run's seed, for others a seed derived from it (0..2^31-1)."""
    if number == 1:
        return seed
    digest = hashlib.sha256(f"{seed}{REPEAT}{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % SEEDS
