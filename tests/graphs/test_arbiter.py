"""The arbiter's rule, branch by branch, with a model and tools that return queued replies."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs._model_and_specialist import ModelAndSpecialist, Proposal
from graphs.arbiter import SOLVER, ruling
from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.core.errors import ToolError
from hybrid.core.format_lines import FORMAT_LINES
from hybrid.core.types import (
    Box,
    Fault,
    Finding,
    ImageRef,
    Json,
    Kind,
    Outcome,
    Prompt,
    PromptFacts,
    Reply,
    StoredImage,
)
from hybrid.plugins.registry import load
from hybrid.solving.answer_confidence import AnswerConfidence
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER, ToolCondition
from hybrid.solving.trust import MODEL, Measurement, Trust
from hybrid.tool.rules import SpecialistAnswer as Said

CHOICES = ("the second image", "the third image")
BOXES = tuple(Box(10 * place, 0, 10 * place + 9, 9) for place in range(12))
IMAGES = tuple(ImageRef(f"img:{number}", StoredImage("0" * 64, 8, 8, "image/png")) for number in (1, 2, 3))
JIGSAW = Prompt(("Which image fits?", *IMAGES), Kind.CHOICE, CHOICES, route="Jigsaw")


BELIEVED = Trust({("jigsaw", "classical", "Jigsaw"): Measurement(980, 1000)})


BLINK, HVSBENCH = (load("hybrid.benchmarks", name).card.prior_accuracy for name in ("blink", "hvsbench"))
# Prior accuracies for the routes of BLINK and HVSBench.
PRIOR_ACCURACY = PriorAccuracy({**BLINK.accuracy, **HVSBENCH.accuracy}, HVSBENCH.guessed)


def finding(best: Json, confidence: float = 0.9, backend: str = "classical") -> Finding:
    return Finding("the seams say so", {"best": best}, confidence, backend, "1")


async def decided(fakes: Any, reply: Any, result: Any, trust: Trust, prompt: Prompt = JIGSAW) -> tuple[str, str, Any]:
    """Return the answer, the rule that decided and its note."""
    # The reply is queued twice: after an empty reply the model is asked once more, and its second reply is empty too.
    ctx = fakes.context_of(prompt, [reply, reply], [result], trust, prior_accuracy=PRIOR_ACCURACY)
    answer = await SOLVER.ask(prompt, ctx)
    rules = [step for step in ctx.log.steps if step.kind == "rule"]
    return answer.text, rules[-1].name, rules[-1].data


@pytest.mark.parametrize(("message", "rule"), [("ABCDEFGHIJ", "adopt"), ("JIHGFEDCBA", "agree"), ("nothing", "keep")])
async def test_an_order_is_read_with_the_letters_of_its_choices(fakes: Any, message: str, rule: str) -> None:
    choices = tuple(f"thing {place}" for place in range(10))
    prompt = Prompt(("In which order?",), Kind.ORDER, choices, PromptFacts(boxes=BOXES[:10]), route="Q3")
    oracle = Finding("", {ORACLE_ANSWER: f"Answer: {message}"}, 1.0, ORACLE, ORACLE)
    reply = "J, I, H, G, F, E, D, C, B, A"
    text, fired, data = await decided(fakes, reply, oracle, Trust(), prompt)
    assert (fired, data["proposal"]) == (rule, "JIHGFEDCBA")
    assert text == (f"Answer: {message}" if rule == "adopt" else reply)


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", "(A) or (B), who knows", "(A)/(B)"])
async def test_an_unreadable_proposal_never_beats_the_specialist(fakes: Any, reply: str) -> None:
    for trust in (BELIEVED, Trust({("jigsaw", "classical", "Jigsaw"): Measurement(20, 1000)})):
        text, rule, data = await decided(fakes, reply, finding(1), trust)
        assert (text, rule, data["proposal"]) == ("Answer: (B)", "adopt", None)


async def test_the_model_reads_the_plain_question_and_nothing_of_the_tool(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, ["(B)"], [finding(0)], BELIEVED)
    await SOLVER.ask(JIGSAW, ctx)
    (((message,), tools, _),) = ctx.model.inner.calls
    assert tools == ()
    assert message.text == "Which image fits?\n" + FORMAT_LINES[Kind.CHOICE]
    assert ctx.tool.calls == [("jigsaw", ("img:1", "img:2", "img:3"), {})]


async def test_where_neither_is_worth_a_guess_there_is_no_answer(fakes: Any) -> None:
    """With four options, a guess is right in 25 % of cases: more often than this tool (1 %) and this MLLM (5 %)."""
    prompt = replace(JIGSAW, choices=("w", "x", "y", "z"))
    low = Trust({ROUTE: Measurement(10, 1000, slope=0.0), (*MODEL, "Jigsaw"): Measurement(50, 1000)})
    text = Said("Answer: (A)", "jigsaw", finding(0), 0, None, on_card=True)

    def rule(trust: Trust, message: str, of: Prompt = prompt) -> str:
        return ruling(of, trust, PRIOR_ACCURACY, Proposal(message), text).rule

    assert (rule(low, "(B)"), rule(low, "(A)")) == ("abstain", "agree")
    # With two options, one of two differing answers is right, so the one with more weight is better than a guess.
    assert rule(low, "(B)", JIGSAW) == "keep"
    assert rule(Trust({**low.measured, (*MODEL, "Jigsaw"): Measurement(300, 1000)}), "(B)") == "keep"
    ctx = fakes.context_of(prompt, ["(B)"], [finding(0)], low)
    assert await SOLVER.decide(prompt, ctx, Proposal("(B)"), text) is None


class Silent(ModelAndSpecialist):
    """A solver that never decides for either side."""

    async def decide(self, prompt: Prompt, ctx: Any, proposal: Proposal, specialist_answer: Said | None) -> None:
        del prompt, ctx, proposal, specialist_answer


async def test_no_decision_is_an_abstention(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, ["(B)"], [finding(0)])
    assert await Silent().ask(JIGSAW, ctx) == Reply("", Outcome.ABSTAINED)


CHANCES = st.floats(0.01, 0.99)
ROUTE = ("jigsaw", "classical", "Jigsaw")


def ruled(
    reply: str, best: int = 0, confidence: float = 0.9, trust: Trust | None = None, votes: float | None = None
) -> Any:
    """Return the decision between a reply and a specialist's choice."""
    specialist_answer = Said(f"Answer: ({'AB'[best]})", "jigsaw", finding(best, confidence), best, None, on_card=True)
    return ruling(JIGSAW, trust or Trust(), PRIOR_ACCURACY, Proposal(reply, votes), specialist_answer)


# A number of cases at which priors no longer matter.
MANY = 10**7


def measured_trust(usually: float, slope: float, tool: float, right: int, n: int) -> Trust:
    """Return the trust in a tool of this measured accuracy and a model that was right on `right` of `n` questions."""
    of_tool = Measurement(tool * MANY, MANY, usually, slope)
    return Trust({ROUTE: of_tool, (*MODEL, "Jigsaw"): Measurement(right, n, usually, slope)})


TRUSTS = st.builds(
    lambda usually, slope, tool, right, wrong: measured_trust(usually, slope, tool, right, right + wrong),
    st.floats(-6, 6),
    st.floats(0, 3),
    st.floats(0, 1),
    st.integers(0, 500),
    st.integers(0, 500),
)


@given(
    TRUSTS, st.floats(0, 1), st.none() | st.floats(0, 1), st.integers(0, 1), st.sampled_from(["(A)", "(B)", "no idea"])
)
def test_the_witness_who_is_more_likely_right_is_followed(
    trust: Trust, confidence: float, votes: float | None, best: int, reply: str
) -> None:
    result = ruled(reply, best, confidence, trust, votes)
    if reply == f"({'AB'[best]})":
        assert result.rule == "agree"
    elif reply == "no idea":
        assert result.rule == "adopt"
    else:
        lead = result.data["tool"]["worth"] - result.data["mllm"]["worth"]
        assert lead >= 0 if result.rule == "adopt" else lead <= 0 or "not clearly above" in result.reason


@given(p=CHANCES, m=CHANCES)
def test_in_expectation_no_less_than_the_better_of_two_calibrated_witnesses(p: float, m: float) -> None:
    """If independent answers of tool and model are right with the probabilities p and m, the rule's answer is right
    with at least the larger one. The question has two choices."""
    counts = {(*MODEL, "Jigsaw"): Measurement(m * MANY, MANY), ROUTE: Measurement(p * MANY, MANY, slope=0.0)}
    result = ruled("(B)", 0, 0.9, Trust(counts))
    values = (result.data["tool"]["worth"], result.data["mllm"]["worth"])
    assert values == (pytest.approx(p, abs=1e-4), pytest.approx(m, abs=1e-4))
    pair, tool_alone, model_alone = p * m, p * (1 - m), m * (1 - p)
    assert pair + (tool_alone if result.rule == "adopt" else model_alone) >= max(p, m) - 1e-4


@given(TRUSTS, st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 1))
def test_a_surer_tool_is_adopted_no_less(
    trust: Trust, some_confidence: float, other_confidence: float, votes: float | None
) -> None:
    less, more = (
        ruled("(B)", 0, confidence, trust, votes).rule for confidence in sorted((some_confidence, other_confidence))
    )
    assert more == "adopt" or less != "adopt"


@given(TRUSTS, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_model_of_more_votes_is_kept_no_less(
    trust: Trust, confidence: float, some_votes: float, other_votes: float
) -> None:
    less, more = (ruled("(B)", 0, confidence, trust, votes).rule for votes in sorted((some_votes, other_votes)))
    assert more == "keep" or less != "keep"


@given(TRUSTS, st.floats(0, 1), st.text(max_size=30))
def test_without_a_specialists_answer_the_models_words_are_not_touched(trust: Trust, votes: float, reply: str) -> None:
    assert ruling(JIGSAW, trust, PRIOR_ACCURACY, Proposal(reply, votes), None).rule == "keep"


@given(TRUSTS, st.floats(0, 1), st.permutations(range(4)), st.integers(0, 3), st.integers(0, 3))
def test_other_letters_for_the_same_choices_change_nothing(
    trust: Trust, confidence: float, order: list[int], model_option: int, tool_option: int
) -> None:
    def ruled_in(places: list[int]) -> Any:
        prompt = replace(JIGSAW, choices=tuple(f"thing {places.index(place)}" for place in range(4)))
        letter = "ABCD"[places[tool_option]]
        specialist_answer = Said(
            f"Answer: ({letter})", "jigsaw", finding(0, confidence), places[tool_option], None, on_card=True
        )
        return ruling(prompt, trust, PRIOR_ACCURACY, Proposal(f"({'ABCD'[places[model_option]]})"), specialist_answer)

    plain, moved = ruled_in([0, 1, 2, 3]), ruled_in(order)
    assert (plain.rule, plain.data["tool"], plain.data["mllm"]) == (moved.rule, moved.data["tool"], moved.data["mllm"])


@given(st.floats(0, 1), st.floats(-3, 3), st.floats(0, 3), CHANCES)
def test_both_accuracies_are_computed_alike(confidence: float, usually: float, slope: float, right: float) -> None:
    """A tool and a model with equal counts and confidence have the same weight."""
    measurement = Measurement(right * MANY, MANY, usually, slope)
    trust = Trust({ROUTE: measurement, (*MODEL, "Jigsaw"): measurement})
    tool = trust.tool(ROUTE, AnswerConfidence(0.5, confidence))
    assert tool.worth == pytest.approx(trust.model("Jigsaw", 0.5, confidence).worth, abs=1e-3)


def test_it_answers_recorded_models() -> None:
    assert (SOLVER.needs_model, SOLVER.needs_live) == (True, False)


@dataclass(frozen=True)
class Losing(ToolCondition):
    """Makes every tool call end in this fault."""

    fault: Fault = Fault.TIMEOUT

    async def find(self, *_: Any, **__: Any) -> Finding:
        raise ToolError("lost", self.fault)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.TOOL_ERROR])
async def test_an_answer_that_lost_a_tool_says_so(asker: Any, completion: Any, fault: Fault) -> None:
    reply = await asker(completion("(B)"), solver="arbiter", control=Losing(asker.service, fault=fault))
    assert (reply.text, reply.outcome, reply.usage.tool_faults) == ("(B)", Outcome.ANSWERED, 1)
