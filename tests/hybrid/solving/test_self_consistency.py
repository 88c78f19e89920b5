"""Self-consistency: who wins the vote, what is recorded, how budgets count it, and that it is part of a run's
identity."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import BudgetSpent, Outage
from hybrid.core.types import Fault, Kind, Prompt, Reply, Step
from hybrid.solving.self_consistency import Vote, confidence_in, entropy_bits, voted
from hybrid.solving.solver import Log

CHOICES = ("left", "right")
SIDE = Prompt(("Which side?",), Kind.CHOICE, CHOICES, route="none")


async def elected(prompt: Prompt, replies: Sequence[str | Exception], samples: int = 0) -> tuple[Vote, list[Step]]:
    """Return the vote over queued replies, and the steps."""
    queue, log = list(replies), Log()

    async def once() -> Reply:
        value = queue.pop(0)
        if isinstance(value, Exception):
            raise value
        return Reply(value)

    return await voted(prompt, samples or len(replies), once, log), log.steps


async def test_without_a_readable_sample_the_first_reply_stands() -> None:
    vote, steps = await elected(SIDE, ["", "who knows"])
    assert (vote.reply.text, vote.confidence) == ("", None)
    assert (steps[-1].text, confidence_in(steps)) == ("no sample can be read", None)


def path(*x: float) -> str:
    return f"X = {list(x)}\nY = {[0.5] * len(x)}\nT = {[200] * len(x)}"


async def test_a_single_scanpath_and_none_at_all() -> None:
    location = Prompt(("Where?",), Kind.SCANPATH)
    vote, _ = await elected(location, ["nowhere", path(0.1, 0.2)])
    assert vote.reply.text == path(0.1, 0.2)
    assert (await elected(location, ["nowhere", "there"]))[0].reply.text == "nowhere"


async def test_a_budget_ends_the_sampling_and_those_that_there_are_elect() -> None:
    vote, steps = await elected(SIDE, ["(B)", "(B)", BudgetSpent("the budget is spent")], 5)
    assert (vote.reply.text, vote.confidence) == ("(B)", pytest.approx(2.5 / 3))
    assert (steps[2].fault, steps[2].text) == (Fault.BUDGET, "the budget is spent: 2 of 5 samples")
    assert (steps[3].data["asked"], steps[3].data["samples"]) == (5, 2)
    with pytest.raises(BudgetSpent):
        await elected(SIDE, [BudgetSpent("at once")], 5)
    with pytest.raises(Outage):
        await elected(SIDE, ["(A)", Outage("away")], 5)


@given(st.lists(st.sampled_from(["(A)", "(B)", "no idea"]), min_size=2, max_size=9))
async def test_the_winner_has_most_votes_and_a_share_between_a_guess_and_certainty(replies: list[str]) -> None:
    vote, steps = await elected(SIDE, replies)
    votes = {text: replies.count(text) for text in ("(A)", "(B)")}
    readable = sum(votes.values())
    assert steps[-1].data["readable"] == readable
    if readable:
        assert votes[vote.reply.text] == max(votes.values())
        assert vote.confidence is not None
        assert 0.5 <= vote.confidence < 1
    else:
        assert vote == Vote(Reply("no idea"))


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), max_size=6))
def test_votes_spread_by_no_more_than_their_number_of_answers(votes: dict[str, int]) -> None:
    assert 0 <= 2 ** entropy_bits(votes) <= max(1, len(votes)) + 1e-9
