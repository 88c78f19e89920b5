"""Budgets of a run: exact counts, however many requests are in flight."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import RunLimits
from hybrid.core.types import Usage
from hybrid.solving.budgets import RunBudgetSpent, RunMeter
from tests.tables import cases

ONE = Usage(model_calls=1, input_tokens=7, output_tokens=3, cost_usd=0.5)


async def crowd(meter: RunMeter, calls: int, fails: frozenset[int] = frozenset()) -> list[str]:
    """Run this many calls at once, each with a pause inside; return the outcome of each."""

    async def one(number: int) -> str:
        try:
            await meter.begin()
        except RunBudgetSpent:
            return "refused"
        used = Usage()
        try:
            await asyncio.sleep(0.001 * (number % 3))
            if number not in fails:
                used = ONE
        finally:
            meter.end(used)
        return "failed" if number in fails else "made"

    return list(await asyncio.gather(*(one(number) for number in range(calls))))


@given(st.integers(0, 40), st.integers(0, 40))
def test_exactly_as_many_calls_are_made_as_allowed(limit: int, calls: int) -> None:
    meter = RunMeter(RunLimits(model_calls=limit))
    assert asyncio.run(crowd(meter, calls)).count("made") == min(limit, calls)
    assert (meter.used.model_calls, meter.pending) == (min(limit, calls), 0)
    assert meter.used.input_tokens == 7 * min(limit, calls)


async def test_a_call_under_way_counts_as_made() -> None:
    meter = RunMeter(RunLimits(model_calls=1))
    await meter.begin()
    with pytest.raises(RunBudgetSpent, match=r"the run's budget of 1 model calls is spent"):
        await meter.begin()
    assert meter.pending == 1


@pytest.mark.parametrize(*cases(__file__, "test_each_budget_ends_a_run_by_name", limits=RunLimits))
async def test_each_budget_ends_a_run_by_name(limits: RunLimits, calls: int, name: str) -> None:
    meter = RunMeter(limits)
    for _ in range(calls):
        await meter.begin()
        meter.end(ONE)
    assert meter.spent() == name
