"""Lanes: how requests become batches, and that a full batch waits for the running one."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.core.errors import HybridError, Outage, ToolError
from hybrid.serving.batching import MAX_OVERTAKEN, Lane


class Doubling:
    """Doubles each number and records its batches; 13 raises an error for that request, 14 for the whole batch."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, items: Sequence[int]) -> list[int | HybridError]:
        self.batches.append(list(items))
        await self.open.wait()
        if 14 in items:
            raise ZeroDivisionError("a defect")
        return [ToolError("13 is no number") if item == 13 else 2 * item for item in items]


# Longer than anything here takes, however busy the machine is.
PATIENCE_S = 600.0


async def return_number(number: int) -> int:
    """Return a number that is available immediately."""
    return number


async def when(gate: asyncio.Event, number: int) -> int:
    """Return a number that is computed when the event is set."""
    await gate.wait()
    return number


async def let_others_run() -> None:
    """Let all work finish that does not wait."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_nobody_waits_for_a_request_that_takes_too_long() -> None:
    run = Doubling()
    lane: Lane[int, int] = Lane(4, run, coming_s=0.01)
    slow = asyncio.create_task(lane.submit(when(asyncio.Event(), 9)))
    await asyncio.sleep(0)
    assert await lane.submit(return_number(1)) == 2
    slow.cancel()


async def test_an_error_is_that_of_the_item_or_of_its_whole_batch() -> None:
    lane: Lane[int, int] = Lane(4, Doubling())
    results = await asyncio.gather(*(lane.submit(return_number(number)) for number in (1, 13)), return_exceptions=True)
    assert (results[0], str(results[1])) == (2, "13 is no number")
    with pytest.raises(Outage, match="the tool could not be run: a defect"):
        await lane.submit(return_number(14))


async def test_nobody_waits_for_a_run_that_loses_a_result_or_is_cancelled() -> None:
    async def losing(items: Sequence[int]) -> list[int | HybridError]:
        if 1 in items:
            raise asyncio.CancelledError
        return list(items[1:])

    lane: Lane[int, int] = Lane(2, losing)
    with pytest.raises(ToolError, match="the tool returned 0 results for 1 requests"):
        await asyncio.wait_for(lane.submit(return_number(0)), PATIENCE_S)
    with pytest.raises(Outage, match="the tool could not be run: it was stopped"):
        await asyncio.wait_for(lane.submit(return_number(1)), PATIENCE_S)


def tens(number: int) -> int:
    """Return the group of a number: its tens."""
    return number // 10


@settings(max_examples=30)
@given(st.lists(st.integers(20, 69), min_size=1, max_size=60), st.integers(1, 8), st.booleans())
def test_a_batch_holds_one_form_in_the_order_of_arrival_and_everybody_is_answered(
    numbers: list[int], size: int, by_tens: bool
) -> None:
    def form(number: int) -> int:
        return tens(number) if by_tens else 0

    async def all_of_them() -> tuple[list[int], list[list[int]]]:
        run = Doubling()
        lane: Lane[int, int] = Lane(size, run, form=tens) if by_tens else Lane(size, run)
        return list(await asyncio.gather(*(lane.submit(return_number(number)) for number in numbers))), run.batches

    result, batches = asyncio.run(all_of_them())
    assert result == [2 * number for number in numbers]
    assert all(len(set(map(form, batch))) == 1 and len(batch) <= size for batch in batches)
    for current in set(map(form, numbers)):
        values = [number for number in numbers if form(number) == current]
        assert [number for batch in batches for number in batch if form(number) == current] == values
        # Requests that arrive together fill as few batches as possible.
        assert sum(form(batch[0]) == current for batch in batches) == -(-len(values) // size)


async def test_a_rare_form_is_overtaken_by_a_bounded_number_of_batches() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run, wait_s=0, form=tens)
    tasks = [asyncio.create_task(lane.submit(return_number(number))) for number in (20, 21)]
    await let_others_run()
    tasks += [
        asyncio.create_task(lane.submit(return_number(number))) for number in (99, *[30] * 2 * (MAX_OVERTAKEN + 5))
    ]
    await let_others_run()
    run.open.set()
    await asyncio.gather(*tasks)
    # When request 99 arrived, one earlier request had already started.
    assert run.batches.index([99]) == 1 + MAX_OVERTAKEN
