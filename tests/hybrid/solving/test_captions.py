"""A caption is made once, when a prompt first needs it, is saved on disk, and does not depend on the question."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.mllm import Mllm
from hybrid.config import Limits, RunLimits
from hybrid.core.errors import Outage
from hybrid.core.messages import AssistantMessage
from hybrid.core.secrets import keep_secret
from hybrid.core.types import Kind, Outcome, Prompt, Reply, StoredImage
from hybrid.running.replies import RunReplies, read_captions
from hybrid.serving.service import CachedTools
from hybrid.solving.budgets import RunMeter
from hybrid.solving.captions import RunCaptions, captions_by
from hybrid.solving.controls import ToolCondition
from hybrid.solving.session import Session

SHA = "a" * 64


def image(number: int) -> StoredImage:
    return StoredImage(f"{number:064x}", 4, 4, "image/png")


async def test_where_one_fails_the_next_one_asks() -> None:
    book = RunCaptions()
    assert await book.take(image(1)) is None
    first, second, third = (asyncio.create_task(book.take(image(1))) for _ in range(3))
    await asyncio.sleep(0)
    second.cancel()
    await book.give_up(image(1))
    assert await first is None
    assert not third.done()
    await book.give_up(image(1))
    assert await third is None
    await book.give_up(image(1))
    # No caption is being made now, so the next request makes it.
    assert await book.take(image(1)) is None


async def test_a_turn_that_comes_as_it_is_cancelled_goes_to_the_next() -> None:
    book = RunCaptions()
    assert await book.take(image(1)) is None
    first, second = (asyncio.create_task(book.take(image(1))) for _ in range(2))
    await asyncio.sleep(0)
    await book.give_up(image(1))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second is None


@dataclass
class Opened:
    """The captions of a run, as a resumed command has them."""

    path: Path
    captioner: str = SHA

    def __post_init__(self) -> None:
        self.replies = RunReplies(self.path, lambda _: ())
        self.captions = RunCaptions(self.captioner, self.replies.captions, self.replies.keep_caption)

    def close(self) -> None:
        self.replies.close(lambda _: ())


def on_disk(path: Path) -> dict[str, str]:
    return captions_by(SHA, read_captions(path))


async def test_what_is_kept_is_read_by_the_next_run_of_the_same_captioner(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    first = Opened(path)
    assert await first.captions.take(image(1)) is None
    first.close()
    assert not path.exists()
    first = Opened(path)
    await first.captions.keep(image(1), "a cat")
    first.close()
    assert await Opened(path).captions.take(image(1)) == "a cat"
    assert await Opened(path, "b" * 64).captions.take(image(1)) is None


async def test_many_at_once_are_all_written_as_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    opened_file, numbers = Opened(path), range(20)
    book = opened_file.captions
    assert [await book.take(image(number)) for number in numbers] == [None] * 20
    await asyncio.gather(*(book.keep(image(number), f"picture {number}") for number in numbers))
    opened_file.close()
    assert on_disk(path) == {image(number).sha256: f"picture {number}" for number in numbers}
    # Nothing is written after the file was closed, because its descriptor may then belong to another file.
    with pytest.raises(OSError, match="Bad file descriptor"):
        await book.keep(image(99), "too late")
    assert image(99).sha256 not in on_disk(path)


@given(st.lists(st.tuples(st.integers(0, 9), st.text(st.characters(codec="utf-8"))), max_size=8))
def test_captions_come_back_as_they_were(tmp_path_factory: Any, captions: list[tuple[int, str]]) -> None:
    path = tmp_path_factory.mktemp("captions") / "replies.jsonl"

    async def write() -> dict[str, str]:
        opened_file = Opened(path)
        for number, text in captions:
            if await opened_file.captions.take(image(number)) is None:
                await opened_file.captions.keep(image(number), text)
        opened_file.close()
        return {image(number).sha256: await opened_file.captions.take(image(number)) or "" for number, _ in captions}

    result = asyncio.run(write())
    assert on_disk(path) == result


async def test_no_secret_is_kept_or_shown(tmp_path: Path) -> None:
    keep_secret("sk-very-secret-value")
    opened_file = Opened(tmp_path / "replies.jsonl")
    await opened_file.captions.take(image(1))
    text = await opened_file.captions.keep(image(1), "a sign: sk-very-secret-value")
    assert "sk-very-secret-value" not in text
    assert await opened_file.captions.take(image(1)) == text
    opened_file.close()
    assert b"sk-very" not in (tmp_path / "replies.jsonl").read_bytes()


# In a session.


Ask = Callable[..., Awaitable[Reply]]


@pytest.fixture
def ask(service: CachedTools, fakes: Any) -> Ask:
    """Ask the MLLM alone with captions; `number` is that of the question, and all questions show the same two
    images."""
    refs = fakes.refs(service.store, 1, 2)

    async def one(number: int = 1, **changes: Any) -> Reply:
        question = fakes.question(f"q{number}", images=tuple(ref.image for ref in refs))
        prompt = Prompt((question.text, *refs), Kind.CHOICE, question.choices)
        return await Session(
            question, Mllm("caption"), fakes.resources(**{"control": ToolCondition(service), **changes})
        ).ask(prompt)

    return one


async def test_an_image_is_described_once_for_all_questions_at_once(ask: Ask, fakes: Any) -> None:
    gate = asyncio.Event()
    captioner = fakes.QueueModel(["a cat", "a dog"], speaks=gate.wait)
    shared: dict[str, Any] = {"captioner": captioner, "captions": RunCaptions()}
    asks = [asyncio.create_task(ask(n, model=fakes.QueueModel(["Answer: (A)"]), **shared)) for n in range(4)]
    while not captioner.calls:
        await asyncio.sleep(0)
    gate.set()
    replies = await asyncio.gather(*asks)
    assert len(captioner.calls) == 2
    assert sorted(reply.usage.model_calls for reply in replies) == [1, 1, 1, 3]
    assert sum(step.data["made"] for reply in replies for step in reply.steps if step.name == "caption") == 2


async def test_an_outage_of_the_captioner_costs_the_question(ask: Ask, fakes: Any) -> None:
    shared: dict[str, Any] = {"captions": RunCaptions(), "model": fakes.QueueModel(["Answer: (A)"])}
    with pytest.raises(Outage):
        await ask(captioner=fakes.QueueModel([Outage("away")]), **shared)
    # Existing descriptions are kept, and the rest are requested again.
    assert (await ask(captioner=fakes.QueueModel(["a cat", "a dog"]), **shared)).outcome is Outcome.ANSWERED


async def test_budgets_hold_for_captions(ask: Ask, fakes: Any) -> None:
    captioner = fakes.QueueModel([fakes.message_with_usage("a cat", 90, 10), "never asked for"])
    reply = await ask(model=fakes.QueueModel(["never"]), captioner=captioner, limits=Limits(tokens=100))
    assert (reply.text, reply.outcome, captioner.replies) == ("", Outcome.BUDGET, ["never asked for"])
    meter = RunMeter(RunLimits(model_calls=1))
    captioner = fakes.QueueModel(["a cat", "never asked for"])
    with pytest.raises(Outage, match="1 model calls"):
        await ask(model=fakes.QueueModel(["never"]), captioner=captioner, run_meter=meter)
    assert meter.used.model_calls == 1


async def test_captions_are_words_where_answers_are_likelihoods(ask: Ask, fakes: Any) -> None:
    class Scorer(fakes.QueueModel):  # type: ignore[misc]
        async def likelihood(self, messages: Any, options: Any) -> AssistantMessage:
            return AssistantMessage("Answer: (B)", likelihood={"A": 0.2, "B": 0.8})

    model = Scorer(["a cat", "a dog"])
    assert ((await ask(model=model, answer="likelihood")).text, model.replies) == ("Answer: (B)", [])
