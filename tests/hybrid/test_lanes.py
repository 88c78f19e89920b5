"""Lanes: how requests become batches, and that a full batch waits behind the one that runs."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.errors import HybridError, ToolError
from hybrid.lanes import Lane


class Doubling:
    """Gives twice each number, keeps its batches; 13 is an error of its own, 14 one of the whole batch."""

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


async def later(number: int, seconds: float) -> int:
    await asyncio.sleep(seconds)
    return number


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 8))
def test_everybody_gets_the_own_answer_in_batches_of_at_most_the_size(numbers: list[int], size: int) -> None:
    async def all_of_them() -> tuple[list[int], list[list[int]]]:
        run = Doubling()
        lane: Lane[int, int] = Lane(size, run)
        return list(await asyncio.gather(*(lane.submit(number) for number in numbers))), run.batches

    found, batches = asyncio.run(all_of_them())
    assert found == [2 * number for number in numbers]
    assert [number for batch in batches for number in batch] == numbers
    assert len(batches) == -(-len(numbers) // size)


async def test_a_batch_waits_for_those_that_are_on_their_way() -> None:
    run = Doubling()
    lane: Lane[int, int] = Lane(4, run)
    await asyncio.gather(*(lane.submit_coming(later(number, 0.01 * number)) for number in range(4)))
    assert run.batches == [[0, 1, 2, 3]]


async def test_nobody_waits_for_a_request_that_takes_too_long() -> None:
    run = Doubling()
    lane: Lane[int, int] = Lane(4, run)
    slow = asyncio.create_task(lane.submit_coming(later(9, 30)))
    await asyncio.sleep(0)
    assert await asyncio.wait_for(lane.submit(1), 10) == 2
    slow.cancel()


async def test_a_full_batch_is_handed_over_while_another_runs_and_one_that_is_not_grows() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run)
    asked = [asyncio.create_task(lane.submit(number)) for number in range(4)]
    while len(run.batches) < 2:
        await asyncio.sleep(0.001)
    asked.append(asyncio.create_task(lane.submit(4)))
    await asyncio.sleep(0.02)
    asked.append(asyncio.create_task(lane.submit(5)))
    run.open.set()
    assert await asyncio.gather(*asked) == [0, 2, 4, 6, 8, 10]
    assert run.batches == [[0, 1], [2, 3], [4, 5]]


async def test_an_error_is_that_of_the_item_or_of_its_whole_batch() -> None:
    lane: Lane[int, int] = Lane(4, Doubling())
    found = await asyncio.gather(*(lane.submit(number) for number in (1, 13)), return_exceptions=True)
    assert (found[0], str(found[1])) == (2, "13 is no number")
    with pytest.raises(ToolError, match="the tool could not be run: a defect"):
        await lane.submit(14)


async def test_one_that_cannot_be_made_is_not_waited_for() -> None:
    async def unmade() -> int:
        raise ToolError("no picture")

    run = Doubling()
    lane: Lane[int, int] = Lane(2, run)
    found = await asyncio.gather(lane.submit_coming(unmade()), lane.submit(3), return_exceptions=True)
    assert (str(found[0]), found[1]) == ("no picture", 6)


async def test_one_that_is_slow_to_make_keeps_only_one_batch_waiting() -> None:
    lane: Lane[int, int] = Lane(4, Doubling())
    slow = asyncio.create_task(lane.submit_coming(later(9, 30)))
    await asyncio.sleep(0)
    assert await lane.submit(0) == 0
    async with asyncio.timeout(1):
        assert [await lane.submit(number) for number in range(1, 10)] == [2 * number for number in range(1, 10)]
    slow.cancel()


async def test_a_batch_that_fills_up_while_another_runs_is_handed_over() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run)
    asked = [asyncio.create_task(lane.submit(0))]
    while not run.batches:
        await asyncio.sleep(0.001)
    for number in (1, 2):
        asked.append(asyncio.create_task(lane.submit(number)))
        await asyncio.sleep(0.02)
    assert run.batches == [[0], [1, 2]]
    run.open.set()
    assert await asyncio.gather(*asked) == [0, 2, 4]


async def test_nobody_waits_for_a_run_that_loses_a_result_or_is_cancelled() -> None:
    async def losing(items: Sequence[int]) -> list[int | HybridError]:
        if 1 in items:
            raise asyncio.CancelledError
        return list(items[1:])

    lane: Lane[int, int] = Lane(2, losing)
    with pytest.raises(ToolError, match="the tool gave 0 results for 1 requests"):
        await asyncio.wait_for(lane.submit(0), 10)
    with pytest.raises(ToolError, match="the tool could not be run: it was stopped"):
        await asyncio.wait_for(lane.submit(1), 10)
