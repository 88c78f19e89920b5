"""The arbiter's rule, branch by branch, with a model and tools that say what the test puts in their queues."""

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs._model_and_specialist import ModelAndSpecialist, Proposal
from graphs.arbiter import SOLVER, ruling
from hybrid.answers.prior_accuracy import ABOVE_CHANCE, PriorAccuracy
from hybrid.errors import BudgetSpent, NotRecorded, Outage, ToolError
from hybrid.prompts import FORMAT_LINES
from hybrid.registry import load
from hybrid.solving.answer_confidence import AnswerConfidence, log_odds
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER, Control
from hybrid.solving.trust import MODEL, Curve, Measurement, Trust
from hybrid.tool.rules import SpecialistAnswer as Said
from hybrid.types import Box, Fault, Finding, Given, ImageRef, Json, Kind, Outcome, Prompt, Reply, StoredImage

CHOICES = ("the second image", "the third image")
BOXES = tuple(Box(10 * place, 0, 10 * place + 9, 9) for place in range(12))
IMAGES = tuple(ImageRef(f"img:{number}", StoredImage("0" * 64, 8, 8, "image/png")) for number in (1, 2, 3))
JIGSAW = Prompt(("Which image fits?", *IMAGES), Kind.CHOICE, CHOICES, route="Jigsaw")
BELIEVED = Trust({("jigsaw", "classical", "Jigsaw"): Measurement(980, 1000)})
DOUBTED = Trust({("jigsaw", "classical", "Jigsaw"): Measurement(20, 1000)})
CARD = Curve(load("tools", "jigsaw").card.backends[1].reliability)
BLINK, HVSBENCH = (load("hybrid.benchmarks", name).card.prior_accuracy for name in ("blink", "hvsbench"))
PRIOR_ACCURACY = PriorAccuracy({**BLINK.accuracy, **HVSBENCH.accuracy}, HVSBENCH.guessed)
"""Of the routes of both benchmarks."""


def finding(best: Json, confidence: float = 0.9, backend: str = "classical") -> Finding:
    return Finding("the seams say so", {"best": best}, confidence, backend, "1")


async def decided(fakes: Any, reply: Any, found: Any, trust: Trust, prompt: Prompt = JIGSAW) -> tuple[str, str, Any]:
    """The answer, the rule that fired and what it wrote down."""
    # An empty reply is asked for once more, and is empty again.
    ctx = fakes.context_of(prompt, [reply, reply], [found], trust, prior_accuracy=PRIOR_ACCURACY)
    answer = await SOLVER.ask(prompt, ctx)
    rules = [step for step in ctx.log.steps if step.kind == "rule"]
    return answer.text, rules[-1].name, rules[-1].data


async def reason(fakes: Any, reply: str, found: Any, trust: Trust, prompt: Prompt = JIGSAW) -> str:
    """The reason written down by the last rule."""
    ctx = fakes.context_of(prompt, [reply], [found], trust, prior_accuracy=PRIOR_ACCURACY)
    await SOLVER.ask(prompt, ctx)
    return str([step for step in ctx.log.steps if step.kind == "rule"][-1].text)


async def test_every_decision_says_why(fakes: Any) -> None:
    assert await reason(fakes, "(B)", finding(None), BELIEVED) == "the specialist gave no answer"
    assert await reason(fakes, "(A)", finding(0), BELIEVED) == "both say A"
    assert await reason(fakes, "(B)", finding(0), BELIEVED) == "jigsaw is worth 0.98, above the MLLM's 0.55"
    assert await reason(fakes, "(B)", finding(0), DOUBTED) == "jigsaw is worth 0.02, not above the MLLM's 0.55"
    assert await reason(fakes, "I see 7 things.", COUNTED, Trust(), COUNT) == (
        "saliency is worth 0.10, not above the MLLM's 0.38"
    )
    assert await reason(fakes, "Many.", COUNTED, Trust(), COUNT) == (
        "the proposal is no readable integer; saliency gives one"
    )


@pytest.mark.parametrize(("kind", "rule"), [("existence", "adopt"), ("counting", "keep")])
async def test_where_the_text_decides_the_rule_the_measurement_of_that_kind_counts(
    fakes: Any, kind: str, rule: str
) -> None:
    measured = {
        ("detection", "learned", "by_text/existence"): Measurement(99, 100, usually=2.0),
        (*MODEL, f"by_text/{kind}"): Measurement(1, 200),
        (*MODEL, "by_text"): Measurement(199, 200),
        (*MODEL, "by_text/counting" if kind == "existence" else "by_text/existence"): Measurement(199, 200),
    }
    one = Prompt(("Is there a cup in the image?", IMAGES[0]), Kind.YES_NO, route="by_text")
    found = Finding("", {"counts": {"cup": 0}, "boxes": []}, 0.6, "learned", "1")
    _, fired, data = await decided(fakes, "yes", found, Trust(measured), one)
    assert fired == rule
    assert data["tool"]["usually"] == 2.0
    assert (data["mllm"]["right"], data["mllm"]["n"]) == ((1, 200) if kind == "existence" else (199, 200))


@pytest.mark.parametrize(("told", "rule"), [("ABCDEFGHIJ", "adopt"), ("JIHGFEDCBA", "agree"), ("nothing", "keep")])
async def test_an_order_is_read_with_the_letters_of_its_choices(fakes: Any, told: str, rule: str) -> None:
    choices = tuple(f"thing {place}" for place in range(10))
    prompt = Prompt(("In which order?",), Kind.ORDER, choices, Given(boxes=BOXES[:10]), route="Q3")
    oracle = Finding("", {ORACLE_ANSWER: f"Answer: {told}"}, 1.0, ORACLE, ORACLE)
    reply = "J, I, H, G, F, E, D, C, B, A"
    text, fired, data = await decided(fakes, reply, oracle, Trust(), prompt)
    assert (fired, data["proposal"]) == (rule, "JIHGFEDCBA")
    assert text == (f"Answer: {told}" if rule == "adopt" else reply)


async def test_agreement_keeps_the_models_own_words(fakes: Any) -> None:
    text, rule, data = await decided(fakes, "I think it is (A).", finding(0), DOUBTED)
    assert (text, rule) == ("I think it is (A).", "agree")
    assert (data["proposal"], data["specialist_answer"]["letter"]) == ("A", "A")


async def test_a_tool_that_is_more_likely_right_is_adopted(fakes: Any) -> None:
    text, rule, data = await decided(fakes, "It is (B).", finding(0), BELIEVED)
    assert (text, rule) == ("Answer: (A)", "adopt")
    assert data["proposal"] == "B"
    assert data["tool"]["worth"] > 0.95 > data["mllm"]["worth"]
    assert data["specialist_answer"] == {
        "letter": "A",
        "answer": "Answer: (A)",
        "tool": "jigsaw",
        "backend": "classical",
        "confidence": 0.9,
        "on_card": True,
    }


async def test_a_reader_can_compute_the_decision_again(fakes: Any) -> None:
    """The formulas of docs/arbiter.md, from nothing but what the step holds."""
    measured = {
        ("jigsaw", "classical", "Jigsaw"): Measurement(30, 40, usually=1.2, slope=0.8),
        (*MODEL, "Jigsaw"): Measurement(30, 50),
        (*MODEL, "Relative_Depth"): Measurement(55, 60),
    }
    _, rule, data = await decided(fakes, "(B)", finding(0, 0.85), Trust(measured))
    tool, model = data["tool"], data["mllm"]

    def logit(p: float) -> float:
        return math.log(p / (1 - p))

    def worth(of: Any) -> float:
        usually = logit(of["rate"]) if of["usually"] is None else of["usually"]
        apart = 0.0 if of["said"] is None else logit(of["said"]) - usually
        return 1 / (1 + math.exp(-logit(of["rate"]) - of["slope"] * apart))

    assert (tool["said"], tool["usually"], tool["slope"]) == (CARD.at(0.85), 1.2, 0.8)
    assert tool["rate"] == pytest.approx((30 + 2 * CARD.rate) / (40 + 2))
    assert tool["worth"] == pytest.approx(worth(tool))
    usual = PRIOR_ACCURACY.accuracy["Jigsaw"]
    assert model["rate"] == pytest.approx((30 + 8 * usual) / (50 + 8))
    assert (model["usual"], model["right"], model["n"], model["said"]) == (
        PRIOR_ACCURACY.accuracy["Jigsaw"],
        30,
        50,
        None,
    )
    assert model["worth"] == pytest.approx(worth(model))
    assert rule == ("adopt" if worth(tool) > worth(model) else "keep")


async def test_where_neither_is_worth_a_guess_there_is_no_answer(fakes: Any) -> None:
    """Of four options, a tool right in 1 % of cases and an MLLM in 5 %: a guess is right in 25 %."""
    prompt = replace(JIGSAW, choices=("w", "x", "y", "z"))
    low = Trust({ROUTE: Measurement(10, 1000, slope=0.0), (*MODEL, "Jigsaw"): Measurement(50, 1000)})
    told = Said("Answer: (A)", "jigsaw", finding(0), 0, None, on_card=True)

    def rule(trust: Trust, said: str, of: Prompt = prompt) -> str:
        return ruling(of, trust, PRIOR_ACCURACY, Proposal(said), told).rule

    assert (rule(low, "(B)"), rule(low, "(A)")) == ("abstain", "agree")
    # One of two options is right where they differ, and one that is worth more is no guess.
    assert rule(low, "(B)", JIGSAW) == "keep"
    assert rule(Trust({**low.measured, (*MODEL, "Jigsaw"): Measurement(300, 1000)}), "(B)") == "keep"
    ctx = fakes.context_of(prompt, ["(B)"], [finding(0)], low)
    assert await SOLVER.decide(prompt, ctx, Proposal("(B)"), told) is None


class Silent(ModelAndSpecialist):
    """Never decides for either."""

    async def decide(self, prompt: Prompt, ctx: Any, proposal: Proposal, specialist_answer: Said | None) -> None:
        del prompt, ctx, proposal, specialist_answer


async def test_no_decision_is_an_abstention(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, ["(B)"], [finding(0)], DOUBTED)
    assert await Silent().ask(JIGSAW, ctx) == Reply("", Outcome.ABSTAINED)


async def test_a_tool_that_is_less_likely_right_is_not(fakes: Any) -> None:
    text, rule, _ = await decided(fakes, "It is (B).", finding(0), DOUBTED)
    assert (text, rule) == ("It is (B).", "keep")


async def test_a_model_that_was_measured_as_better_is_kept(fakes: Any) -> None:
    trust = Trust({**BELIEVED.measured, (*MODEL, "Jigsaw"): Measurement(99_990, 100_000)})
    text, rule, data = await decided(fakes, "It is (B).", finding(0, 0.1), trust)
    assert (text, rule) == ("It is (B).", "keep")
    assert data["mllm"]["worth"] == pytest.approx(0.9999, abs=1e-4)


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", "(A) or (B), who knows", "(A)/(B)"])
async def test_an_unreadable_proposal_never_beats_the_specialist(fakes: Any, reply: str) -> None:
    for trust in (BELIEVED, DOUBTED):
        text, rule, data = await decided(fakes, reply, finding(1), trust)
        assert (text, rule, data["proposal"]) == ("Answer: (B)", "adopt", None)


@pytest.mark.parametrize("found", [finding(None), Finding("nothing", {}, 0.0, "blank", "blank"), finding("first")])
async def test_a_finding_that_does_not_decide_leaves_the_proposal(fakes: Any, found: Finding) -> None:
    text, rule, _ = await decided(fakes, "It is (B).", found, BELIEVED)
    assert (text, rule) == ("It is (B).", "keep")


async def test_a_tool_that_fails_gives_no_answer(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, ["It is (B)."], [ToolError("too small", Fault.TIMEOUT)], BELIEVED)
    assert (await SOLVER.ask(JIGSAW, ctx)).text == "It is (B)."
    rules = [(step.name, step.fault) for step in ctx.log.steps if step.kind == "rule"]
    assert rules == [("no specialist answer", Fault.TIMEOUT), ("keep", None)]


async def test_a_route_without_a_rule_calls_no_tool(fakes: Any) -> None:
    prompt = Prompt(("Is it?",), Kind.CHOICE, ("yes", "no"), route="Spatial_Relation")
    ctx = fakes.context_of(prompt, ["Answer: (A)"])
    assert (await SOLVER.ask(prompt, ctx)).text == "Answer: (A)"
    assert ctx.tool.calls == []


async def test_a_choice_that_no_option_names_is_no_answer(fakes: Any) -> None:
    text, rule, _ = await decided(fakes, "(B)", finding(3), BELIEVED)
    assert (text, rule) == ("(B)", "keep")


async def test_the_model_reads_the_plain_question_and_nothing_of_the_tool(fakes: Any) -> None:
    ctx = fakes.context_of(JIGSAW, ["(B)"], [finding(0)], BELIEVED)
    await SOLVER.ask(JIGSAW, ctx)
    (((message,), tools, _),) = ctx.model.inner.calls
    assert tools == ()
    assert message.text == "Which image fits?\n" + FORMAT_LINES[Kind.CHOICE]
    assert ctx.tool.calls == [("jigsaw", ("img:1", "img:2", "img:3"), {})]


async def test_depth_asks_for_the_points_that_the_choices_name(fakes: Any) -> None:
    prompt = Prompt(("Nearer?",), Kind.CHOICE, ("A is closer", "B is closer"), route="Relative_Depth")
    ctx = fakes.context_of(prompt, ["(A)"], [Finding("B", {"nearer": "B"}, 0.9, "classical", "1")])
    assert (await SOLVER.ask(prompt, ctx)).text == "Answer: (B)"
    assert ctx.tool.calls == [("depth", (), {"labels": ["A", "B"]})]


@pytest.mark.parametrize("error", [Outage("away"), NotRecorded("no recording"), BudgetSpent("gone")])
async def test_a_model_that_cannot_answer_ends_the_ask(fakes: Any, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        await SOLVER.ask(JIGSAW, fakes.context_of(JIGSAW, [error], [finding(0)], BELIEVED))


CHANCES = st.floats(0.01, 0.99)
ROUTE = ("jigsaw", "classical", "Jigsaw")


def ruled(
    reply: str, best: int = 0, confidence: float = 0.9, trust: Trust | None = None, votes: float | None = None
) -> Any:
    """The ruling between a reply and a specialist's choice at a place."""
    specialist_answer = Said(f"Answer: ({'AB'[best]})", "jigsaw", finding(best, confidence), best, None, on_card=True)
    return ruling(JIGSAW, trust or Trust(), PRIOR_ACCURACY, Proposal(reply, votes), specialist_answer)


MANY = 10**7
"""So many cases that nothing else counts."""


def known(usually: float, slope: float, tool: float, right: int, n: int) -> Trust:
    """A tool that was measured as so often right, and a model with a skill."""
    of_tool = Measurement(tool * MANY, MANY, usually, slope)
    return Trust({ROUTE: of_tool, (*MODEL, "Jigsaw"): Measurement(right, n, usually, slope)})


TRUSTS = st.builds(
    lambda usually, slope, tool, right, wrong: known(usually, slope, tool, right, right + wrong),
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
    found = ruled(reply, best, confidence, trust, votes)
    if reply == f"({'AB'[best]})":
        assert found.rule == "agree"
    elif reply == "no idea":
        assert found.rule == "adopt"
    else:
        assert found.rule == ("adopt" if found.data["tool"]["worth"] > found.data["mllm"]["worth"] else "keep")


@given(p=CHANCES, m=CHANCES)
def test_in_expectation_no_less_than_the_better_of_two_calibrated_witnesses(p: float, m: float) -> None:
    """Independent, of two choices, right with p and m: the share of right answers of the rule."""
    counts = {(*MODEL, "Jigsaw"): Measurement(m * MANY, MANY), ROUTE: Measurement(p * MANY, MANY, slope=0.0)}
    found = ruled("(B)", 0, 0.9, Trust(counts))
    told = (found.data["tool"]["worth"], found.data["mllm"]["worth"])
    assert told == (pytest.approx(p, abs=1e-4), pytest.approx(m, abs=1e-4))
    both, tool_alone, model_alone = p * m, p * (1 - m), m * (1 - p)
    right = both + (tool_alone if found.rule == "adopt" else model_alone)
    assert right >= max(p, m) - 1e-4


@given(TRUSTS, st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 1))
def test_a_surer_tool_is_adopted_no_less(trust: Trust, one: float, other: float, votes: float | None) -> None:
    low, high = sorted((one, other))
    adopted = [ruled("(B)", 0, confidence, trust, votes).rule == "adopt" for confidence in (low, high)]
    assert adopted[0] <= adopted[1]


@given(TRUSTS, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_model_of_more_votes_is_kept_no_less(trust: Trust, confidence: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    kept = [ruled("(B)", 0, confidence, trust, votes).rule == "keep" for votes in (low, high)]
    assert kept[0] <= kept[1]


@given(TRUSTS, st.floats(0, 1), st.text(max_size=30))
def test_without_a_specialists_answer_the_models_words_are_not_touched(trust: Trust, votes: float, reply: str) -> None:
    assert ruling(JIGSAW, trust, PRIOR_ACCURACY, Proposal(reply, votes), None).rule == "keep"


@given(TRUSTS, st.floats(0, 1), st.permutations(range(4)), st.integers(0, 3), st.integers(0, 3))
def test_other_letters_for_the_same_choices_change_nothing(
    trust: Trust, confidence: float, order: list[int], own: int, told: int
) -> None:
    def ruled_in(places: list[int]) -> Any:
        prompt = replace(JIGSAW, choices=tuple(f"thing {places.index(place)}" for place in range(4)))
        letter = "ABCD"[places[told]]
        specialist_answer = Said(
            f"Answer: ({letter})", "jigsaw", finding(0, confidence), places[told], None, on_card=True
        )
        return ruling(prompt, trust, PRIOR_ACCURACY, Proposal(f"({'ABCD'[places[own]]})"), specialist_answer)

    plain, moved = ruled_in([0, 1, 2, 3]), ruled_in(order)
    assert (plain.rule, plain.data["tool"], plain.data["mllm"]) == (moved.rule, moved.data["tool"], moved.data["mllm"])


@given(st.floats(0, 1), st.floats(-3, 3), st.floats(0, 3), CHANCES)
def test_both_accuracies_are_computed_alike(said: float, usually: float, slope: float, right: float) -> None:
    """A tool and a model with equal counts and claims are worth the same."""
    one = Measurement(right * MANY, MANY, usually, slope)
    trust = Trust({ROUTE: one, (*MODEL, "Jigsaw"): one})
    tool = trust.tool(ROUTE, AnswerConfidence(0.5, said))
    model = trust.model("Jigsaw", 0.5, said)
    assert tool.worth == pytest.approx(model.worth, abs=1e-3)


def test_it_answers_recorded_models() -> None:
    assert (SOLVER.needs_model, SOLVER.needs_live) == (True, False)


COUNT = Prompt(("How many stand out?",), Kind.INTEGER, route="Q2")
COUNTED = Finding("", {"count": 3}, 0.9, "classical", "1")


def measured_on(tool: str, route: str, worth: float, backend: str = "classical") -> Trust:
    """A tool whose answers on a route were found to be worth so much, however sure it was."""
    return Trust({(tool, backend, route): Measurement(worth * MANY, MANY, slope=0.0)})


@pytest.mark.parametrize(
    ("reply", "worth", "answer", "rule"),
    [
        ("I see 7 things.", None, "I see 7 things.", "keep"),
        ("I see 7 things.", 0.3, "I see 7 things.", "keep"),
        ("I see 7 things.", 0.5, "Answer: 3", "adopt"),
        ("I see 3 things.", 0.5, "I see 3 things.", "agree"),
        ("Many.", 0.01, "Answer: 3", "adopt"),
    ],
)
async def test_a_number_is_weighed_too(fakes: Any, reply: str, worth: float | None, answer: str, rule: str) -> None:
    trust = Trust() if worth is None else measured_on("saliency", "Q2", worth)
    text, fired, data = await decided(fakes, reply, COUNTED, trust, COUNT)
    assert (text, fired) == (answer, rule)
    assert (data["specialist_answer"]["letter"], data["specialist_answer"]["answer"]) == (None, "Answer: 3")
    assert data["mllm"]["worth"] == PRIOR_ACCURACY.accuracy["Q2"]


PATH: dict[str, Json] = {"x_0_1": [0.5, 0.2], "y_0_1": [0.5, 0.1], "t_ms": [200, 300]}
DRAWN = "X = [0.5, 0.2]\nY = [0.5, 0.1]\nT = [200, 300]"
OTHER_PATH = "X = [0.1, 0.9]\nY = [0.5, 0.1]\nT = [200, 300]"


@pytest.mark.parametrize(
    ("reply", "worth", "rule"),
    [
        # A blind path of a person scores 0.61 there, the MLLMs of the table 0.53 on average.
        (OTHER_PATH, None, "adopt"),
        (OTHER_PATH, 0.5, "keep"),
        (OTHER_PATH, 0.7, "adopt"),
        (DRAWN, 0.7, "agree"),
        ("I look at the dog.", 0.01, "adopt"),
    ],
)
async def test_a_scanpath_is_weighed_by_its_expected_score(
    fakes: Any, reply: str, worth: float | None, rule: str
) -> None:
    prompt = Prompt(("Where?", IMAGES[0]), Kind.SCANPATH, given=Given(fixations=2), route="Q9")
    trust = Trust() if worth is None else measured_on("scanpath", "Q9", worth)
    text, fired, data = await decided(fakes, reply, Finding("", PATH, 0.3, "classical", "1"), trust, prompt)
    assert (text, fired) == (DRAWN if rule == "adopt" else reply, rule)
    assert data["tool"]["rate"] == pytest.approx(PRIOR_ACCURACY.guessed["Q9"] if worth is None else worth, abs=1e-3)
    assert data["tool"]["said"] is None
    assert data["mllm"]["worth"] == PRIOR_ACCURACY.accuracy["Q9"]


@pytest.mark.parametrize(("worth", "rule"), [(0.2, "keep"), (0.9, "adopt")])
async def test_an_order_is_weighed_too(fakes: Any, worth: float, rule: str) -> None:
    prompt = Prompt(("In which order?", IMAGES[0]), Kind.ORDER, ("a", "b", "c"), Given(boxes=BOXES[:3]), route="Q3")
    found = Finding("", {"objects": [{"label": label} for label in "201"]}, 0.9, "classical", "1")
    text, fired, _ = await decided(fakes, "Answer: ABC", found, measured_on("saliency", "Q3", worth), prompt)
    assert (text, fired) == ("Answer: CAB" if rule == "adopt" else "Answer: ABC", rule)


async def test_a_network_that_no_card_counts_is_believed_half(fakes: Any) -> None:
    """And a rule of thumb not at all."""
    prompt = Prompt(("Nearer?",), Kind.CHOICE, ("A is closer", "B is closer"), route="Relative_Depth")
    found = Finding("B", {"nearer": "B"}, 0.9, "learned", "1")
    text, _, data = await decided(fakes, "(A)", found, Trust(), prompt)
    assert text == "Answer: (B)"
    assert (data["tool"]["rate"], data["tool"]["said"], data["tool"]["worth"]) == (0.5, 0.9, pytest.approx(0.75))


async def test_more_options_than_usual_letters_are_weighed(fakes: Any) -> None:
    choices = tuple(f"box {place}" for place in range(12))
    prompt = Prompt(("Which?",), Kind.CHOICE, choices, Given(boxes=BOXES), route="Q1")
    objects: list[Json] = [{"label": str(place)} for place in (11, *range(11))]
    found = Finding("", {"objects": objects}, 0.9, "classical", "1")
    text, rule, data = await decided(fakes, "Answer: (K)", found, Trust(), prompt)
    assert (text, rule, data["proposal"]) == ("Answer: (K)", "keep", "K")
    trust = measured_on("saliency", "Q1", 0.9)
    text, rule, _ = await decided(fakes, "Answer: (K)", found, trust, prompt)
    assert (text, rule) == ("Answer: (L)", "adopt")


async def test_an_oracle_is_believed_before_the_best_of_models(fakes: Any) -> None:
    trust = Trust({(*MODEL, "Jigsaw"): Measurement(10**9, 10**9)})
    perfect = Finding("The evidence favours (A).", {ORACLE_ANSWER: "Answer: (A)"}, 1.0, ORACLE, ORACLE)
    assert (await decided(fakes, "It is (B).", perfect, trust))[:2] == ("Answer: (A)", "adopt")
    # Only an oracle is one: a tool that happens to write the same key is weighed as a tool.
    assert (await decided(fakes, "It is (B).", replace(perfect, backend="classical"), trust))[:2] == (
        "It is (B).",
        "keep",
    )


@dataclass(frozen=True)
class Losing(Control):
    """Every tool call ends in the fault."""

    fault: Fault = Fault.TIMEOUT

    async def find(self, *_: Any, **__: Any) -> Finding:
        raise ToolError("lost", self.fault)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.TOOL_ERROR])
async def test_an_answer_that_lost_a_tool_says_so(asker: Any, completion: Any, fault: Fault) -> None:
    reply = await asker(completion("(B)"), solver="arbiter", control=Losing(asker.service, fault=fault))
    assert (reply.text, reply.outcome, reply.usage.tool_faults) == ("(B)", Outcome.ANSWERED, 1)


async def test_a_tool_that_never_ran_leaves_the_question_open(asker: Any, completion: Any) -> None:
    asker.service.close()
    with pytest.raises(Outage, match="the tool service is closed"):
        await asker(completion("(B)"), solver="arbiter")


@pytest.mark.parametrize(
    ("replies", "votes", "confidence", "rule"),
    [
        # Against a tool that is right with 0.6: five alike votes are no evidence, unless they were measured to be some.
        ("BBBBB", None, 0.5 + ABOVE_CHANCE * 0.5, "adopt"),
        ("BBBBB", 1.0, 5.5 / 6, "keep"),
        ("BABAB", 1.0, 3.5 / 6, "adopt"),
        ("BBB??", 1.0, 4.5 / 6, "adopt"),
    ],
)
async def test_the_share_of_the_votes_is_the_models_confidence(
    fakes: Any, replies: str, votes: float | None, confidence: float, rule: str
) -> None:
    trust = measured_on("jigsaw", "Jigsaw", 0.6)
    if votes is not None:
        counted = Measurement(0.5 * MANY, MANY, log_odds(0.75), votes)
        trust = Trust({**trust.measured, (*MODEL, "Jigsaw"): counted})
    ctx = replace(
        fakes.context_of(JIGSAW, [f"({letter})" if letter != "?" else "?" for letter in replies], [finding(0)], trust),
        samples=5,
    )
    answer = await SOLVER.ask(JIGSAW, ctx)
    last = ctx.log.steps[-1]
    assert (last.name, last.data["mllm"]["said"]) == (rule, pytest.approx(confidence))
    assert answer.text == ("(B)" if rule == "keep" else "Answer: (A)")
    assert len([step for step in ctx.log.steps if step.name == "sample"]) == 5


async def test_the_model_is_sampled_and_the_tool_asked_once(asker: Any, completion: Any) -> None:
    reply = await asker(*(completion(f"({letter})") for letter in "BAB"), solver="arbiter", samples=3)
    asker.exact(reply)
    assert (reply.text, reply.usage.model_calls, reply.usage.tool_calls) == ("Answer: (A)", 3, 1)


async def test_the_controller_votes_over_whole_conversations(asker: Any, completion: Any, tool_call: Any) -> None:
    pieces = {"images": ["img:1", "img:2", "img:3"]}
    calls = [completion("", tool_call("jigsaw", pieces)), completion("(A)")]
    reply = await asker(*calls, completion("(B)"), *calls, samples=3)
    asker.exact(reply)
    assert (reply.text, reply.usage.model_calls, reply.usage.tool_calls) == ("(A)", 5, 2)
    # The second conversation begins anew: its pictures have the names of the first one's.
    made = [[ref.name for ref in step.images] for step in reply.steps if step.kind == "tool"]
    assert made[0] == made[1]
