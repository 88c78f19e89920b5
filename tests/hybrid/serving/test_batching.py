"""Lanes: how requests become batches, and that a full batch waits behind the one that runs."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.errors import HybridError, Outage, ToolError, WeightsError
from hybrid.serving.batching import MIXED_ROOM, MOST_OVERTAKEN, Lane


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


PATIENCE_S = 60.0
"""Longer than anything here takes, however busy the machine is."""


async def made(number: int) -> int:
    """A number that is there at once."""
    return number


async def when(opened: asyncio.Event, number: int) -> int:
    """A number that is made when the event is set."""
    await opened.wait()
    return number


async def let_others_run() -> None:
    """Give everything that needs no time the time that it needs."""
    for _ in range(50):
        await asyncio.sleep(0)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 8))
def test_everybody_gets_the_own_answer_in_batches_of_at_most_the_size(numbers: list[int], size: int) -> None:
    async def all_of_them() -> tuple[list[int], list[list[int]]]:
        run = Doubling()
        lane: Lane[int, int] = Lane(size, run)
        return list(await asyncio.gather(*(lane.submit(made(number)) for number in numbers))), run.batches

    found, batches = asyncio.run(all_of_them())
    assert found == [2 * number for number in numbers]
    assert [number for batch in batches for number in batch] == numbers
    assert len(batches) == -(-len(numbers) // size)


async def test_a_batch_waits_for_those_that_are_on_their_way() -> None:
    run = Doubling()
    lane: Lane[int, int] = Lane(4, run, wait_s=0, coming_s=PATIENCE_S)
    opened = [asyncio.Event() for _ in range(4)]
    asked = [asyncio.create_task(lane.submit(when(event, number))) for number, event in enumerate(opened)]
    for event in opened:
        assert run.batches == []
        event.set()
        await let_others_run()
    assert await asyncio.gather(*asked) == [0, 2, 4, 6]
    assert run.batches == [[0, 1, 2, 3]]


async def test_nobody_waits_for_a_request_that_takes_too_long() -> None:
    run = Doubling()
    lane: Lane[int, int] = Lane(4, run, coming_s=0.01)
    slow = asyncio.create_task(lane.submit(when(asyncio.Event(), 9)))
    await asyncio.sleep(0)
    assert await lane.submit(made(1)) == 2
    slow.cancel()


async def test_a_full_batch_is_handed_over_while_another_runs_and_one_that_is_not_grows() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run, wait_s=0)
    asked = [asyncio.create_task(lane.submit(made(number))) for number in range(4)]
    while len(run.batches) < 2:
        await asyncio.sleep(0)
    asked.append(asyncio.create_task(lane.submit(made(4))))
    await let_others_run()
    asked.append(asyncio.create_task(lane.submit(made(5))))
    run.open.set()
    assert await asyncio.gather(*asked) == [0, 2, 4, 6, 8, 10]
    assert run.batches == [[0, 1], [2, 3], [4, 5]]


async def test_as_many_batches_run_at_once_as_there_are_workers_and_one_more_waits() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run, wait_s=0, workers=2)
    asked = [asyncio.create_task(lane.submit(made(number))) for number in range(3)]
    await let_others_run()
    assert run.batches == [[0, 1], [2]]
    asked += [asyncio.create_task(lane.submit(made(number))) for number in range(3, 8)]
    await let_others_run()
    assert run.batches == [[0, 1], [2], [3, 4]]
    run.open.set()
    assert await asyncio.gather(*asked) == [2 * number for number in range(8)]


async def test_an_error_is_that_of_the_item_or_of_its_whole_batch() -> None:
    lane: Lane[int, int] = Lane(4, Doubling())
    found = await asyncio.gather(*(lane.submit(made(number)) for number in (1, 13)), return_exceptions=True)
    assert (found[0], str(found[1])) == (2, "13 is no number")
    with pytest.raises(Outage, match="the tool could not be run: a defect"):
        await lane.submit(made(14))


async def test_one_that_cannot_be_made_is_not_waited_for() -> None:
    async def unmade() -> int:
        raise ToolError("no picture")

    run = Doubling()
    lane: Lane[int, int] = Lane(2, run)
    found = await asyncio.gather(lane.submit(unmade()), lane.submit(made(3)), return_exceptions=True)
    assert (str(found[0]), found[1]) == ("no picture", 6)


async def test_one_that_is_slow_to_make_keeps_only_one_batch_waiting() -> None:
    lane: Lane[int, int] = Lane(4, Doubling(), wait_s=0, coming_s=0.05)
    slow = asyncio.create_task(lane.submit(when(asyncio.Event(), 9)))
    await asyncio.sleep(0)
    assert await lane.submit(made(0)) == 0
    for number in range(1, 10):
        asked = asyncio.create_task(lane.submit(made(number)))
        await let_others_run()
        assert asked.done()
    slow.cancel()


async def test_a_batch_that_fills_up_while_another_runs_is_handed_over() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run, wait_s=0)
    asked = []
    for number in (0, 1, 2):
        asked.append(asyncio.create_task(lane.submit(made(number))))
        await let_others_run()
    assert run.batches == [[0], [1, 2]]
    run.open.set()
    assert await asyncio.gather(*asked) == [0, 2, 4]


async def test_an_error_of_ours_that_ends_a_batch_is_everybodys() -> None:
    async def failing(items: Sequence[int]) -> list[int | HybridError]:
        raise WeightsError("they do not load")

    lane: Lane[int, int] = Lane(2, failing)
    found = await asyncio.gather(lane.submit(made(0)), lane.submit(made(1)), return_exceptions=True)
    assert [(type(one), str(one)) for one in found] == [(WeightsError, "they do not load")] * 2


async def test_nobody_waits_for_a_run_that_loses_a_result_or_is_cancelled() -> None:
    async def losing(items: Sequence[int]) -> list[int | HybridError]:
        if 1 in items:
            raise asyncio.CancelledError
        return list(items[1:])

    lane: Lane[int, int] = Lane(2, losing)
    with pytest.raises(ToolError, match="the tool gave 0 results for 1 requests"):
        await asyncio.wait_for(lane.submit(made(0)), PATIENCE_S)
    with pytest.raises(Outage, match="the tool could not be run: it was stopped"):
        await asyncio.wait_for(lane.submit(made(1)), PATIENCE_S)


def tens(number: int) -> int:
    """The form of a number: its tens."""
    return number // 10


@settings(max_examples=30)
@given(st.lists(st.integers(20, 69), min_size=1, max_size=60), st.integers(1, 8))
def test_a_batch_holds_one_form_in_the_order_of_arrival_and_everybody_is_answered(
    numbers: list[int], size: int
) -> None:
    async def all_of_them() -> tuple[list[int], list[list[int]]]:
        run = Doubling()
        lane: Lane[int, int] = Lane(size, run, form=tens)
        return list(await asyncio.gather(*(lane.submit(made(number)) for number in numbers))), run.batches

    found, batches = asyncio.run(all_of_them())
    assert found == [2 * number for number in numbers]
    assert all(len({tens(number) for number in batch}) == 1 and len(batch) <= size for batch in batches)
    for form in {tens(number) for number in numbers}:
        alike = [number for number in numbers if tens(number) == form]
        assert [number for batch in batches for number in batch if tens(number) == form] == alike
        # Whatever comes at once fills as few batches as it can.
        assert sum(tens(batch[0]) == form for batch in batches) == -(-len(alike) // size)


async def test_the_form_that_fills_a_batch_goes_first_and_the_earlier_one_of_two() -> None:
    run = Doubling()
    lane: Lane[int, int] = Lane(3, run, wait_s=0, form=tens)
    numbers = (20, 30, 40, 31, 41, 50, 42, 32, 21)
    assert await asyncio.gather(*(lane.submit(made(number)) for number in numbers)) == [2 * one for one in numbers]
    assert run.batches == [[30, 31, 32], [40, 41, 42], [20, 21], [50]]


async def test_a_rare_form_is_overtaken_by_a_bounded_number_of_batches() -> None:
    run = Doubling()
    run.open.clear()
    lane: Lane[int, int] = Lane(2, run, wait_s=0, form=tens)
    asked = [asyncio.create_task(lane.submit(made(number))) for number in (20, 21)]
    await let_others_run()
    asked += [asyncio.create_task(lane.submit(made(number))) for number in (99, *[30] * 2 * (MOST_OVERTAKEN + 5))]
    await let_others_run()
    run.open.set()
    await asyncio.gather(*asked)
    # One of those that went before it had gone when it came.
    assert run.batches.index([99]) == 1 + MOST_OVERTAKEN


async def test_only_a_lane_of_several_forms_holds_more_than_a_few_batches() -> None:
    async def held(numbers: Sequence[int]) -> int:
        run, inside = Doubling(), 0
        run.open.clear()
        lane: Lane[int, int] = Lane(4, run, wait_s=0, form=tens)

        async def ask(number: int) -> None:
            nonlocal inside
            async with lane.room:
                inside += 1
                await lane.submit(made(number))

        asked = [asyncio.create_task(ask(number)) for number in numbers]
        await let_others_run()
        most = inside
        run.open.set()
        await asyncio.gather(*asked)
        return most

    assert await held([20] * 100) == 12
    assert await held([20, 30, 40, 50] * 25) == MIXED_ROOM
