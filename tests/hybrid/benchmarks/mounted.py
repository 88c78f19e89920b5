"""Questions of a benchmark as a run loads them, and a dialogue over queued replies."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.core.images import ImageStore
from hybrid.core.types import BrokenQuestion, Exchange, Prompt, Question, Reply
from hybrid.running.data import mount, questions


def read_questions(benchmark: Any, folder: Path, place: Path, **settings: str) -> tuple[Question | BrokenQuestion, ...]:
    """Return every question of a folder; pictures go to a store at the given place."""
    store = ImageStore(place / "store")
    mounted = mount(benchmark, str(folder), split=None, tasks=(), settings=settings, store=store)
    return questions(benchmark, mounted.source, None)


def sound(benchmark: Any, folder: Path, place: Path, **settings: str) -> tuple[Question, ...]:
    """Return every question of a folder, after checking that none is broken."""
    result = read_questions(benchmark, folder, place, **settings)
    assert all(isinstance(question, Question) for question in result), result
    return tuple(question for question in result if isinstance(question, Question))


def hold_dialogue(benchmark: Any, question: Question, replies: Sequence[str]) -> tuple[Exchange, ...]:
    """Run the dialogue with these replies in order; the last one is repeated."""
    waiting = list(replies)

    async def ask(prompt: Prompt) -> Reply:
        return Reply(waiting.pop(0) if len(waiting) > 1 else waiting[0])

    return asyncio.run(benchmark.dialogue(question.without_target(), ask))
