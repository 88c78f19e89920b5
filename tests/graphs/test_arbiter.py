"""The arbiter's rule, branch by branch, with a model and tools that say what the test puts in their queues."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.arbiter import MODEL_SKILL, SOLVER, model_prior
from hybrid.errors import BudgetSpent, NotRecorded, Outage, ToolError
from hybrid.prompts import FORMAT_LINES
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER, Control
from hybrid.solving.trust import MODEL, Curve, Trust
from hybrid.tool import Bin
from hybrid.types import Box, Fault, Finding, Given, ImageRef, Json, Kind, Outcome, Prompt, StoredImage

CHOICES = ("the second image", "the third image")
IMAGES = tuple(ImageRef(f"img:{number}", StoredImage("0" * 64, 8, 8, "image/png")) for number in (1, 2, 3))
JIGSAW = Prompt(("Which image fits?", *IMAGES), Kind.CHOICE, CHOICES, route="Jigsaw")
BELIEVED = Trust({("jigsaw", "classical", "Jigsaw"): Curve((Bin(0.0, 980, 1000),))})
DOUBTED = Trust({("jigsaw", "classical", "Jigsaw"): Curve((Bin(0.0, 20, 1000),))})


def finding(best: Json, confidence: float = 0.9, backend: str = "classical") -> Finding:
    return Finding("the seams say so", {"best": best}, confidence, backend, "1")


async def decided(fakes: Any, reply: Any, found: Any, trust: Trust, prompt: Prompt = JIGSAW) -> tuple[str, str, Any]:
    """The answer, the rule that fired and what it wrote down."""
    # An empty reply is asked for once more, and is empty again.
    kit = fakes.kit_of(prompt, [reply, reply], [found], trust)
    answer = await SOLVER.ask(prompt, kit)
    rules = [step for step in kit.log.steps if step.kind == "rule"]
    return answer.text, rules[-1].name, rules[-1].data


async def reason(fakes: Any, reply: str, found: Any, trust: Trust, prompt: Prompt = JIGSAW) -> str:
    """What the last rule wrote down for people."""
    kit = fakes.kit_of(prompt, [reply], [found], trust)
    await SOLVER.ask(prompt, kit)
    return str([step for step in kit.log.steps if step.kind == "rule"][-1].text)


async def test_every_decision_says_why(fakes: Any) -> None:
    assert await reason(fakes, "(B)", finding(None), BELIEVED) == "there is no testimony"
    assert await reason(fakes, "(A)", finding(0), BELIEVED) == "both say A"
    assert await reason(fakes, "(B)", finding(0), BELIEVED) == "jigsaw is right with 0.98, above 0.57"
    assert await reason(fakes, "(B)", finding(0), DOUBTED) == "jigsaw is right with 0.03, not above 0.57"
    kept = await reason(fakes, "I see 7 things.", COUNTED, Trust(), COUNT)
    assert kept == "the testimony names no choice; the proposal is a readable integer"
    assert await reason(fakes, "Many.", COUNTED, Trust(), COUNT) == (
        "the proposal is no readable integer; saliency gives one"
    )


async def test_an_order_is_read_with_the_words_and_letters_of_its_choices(fakes: Any) -> None:
    choices = tuple(f"thing {place}" for place in range(10))
    prompt = Prompt(("In which order?",), Kind.ORDER, choices, route="Q13")
    found = Finding("", {"order": list("BACDEFGHIJ")}, 0.9, "classical", "1")
    oracle = Finding("", {ORACLE_ANSWER: "Answer: B, A"}, 1.0, ORACLE, ORACLE)
    for reply in ("J, I, H, G, F, E, D, C, B, A", ", ".join(reversed(choices))):
        for testimony in (found, oracle):
            text, _, data = await decided(fakes, reply, testimony, Trust(), prompt)
            assert text == reply, data


async def test_agreement_keeps_the_models_own_words(fakes: Any) -> None:
    text, rule, data = await decided(fakes, "I think it is (A).", finding(0), DOUBTED)
    assert (text, rule) == ("I think it is (A).", "agree")
    assert (data["proposal"], data["testimony"]["letter"]) == ("A", "A")


async def test_a_tool_that_is_more_likely_right_is_adopted(fakes: Any) -> None:
    text, rule, data = await decided(fakes, "It is (B).", finding(0), BELIEVED)
    assert (text, rule) == ("Answer: (A)", "adopt")
    assert data["proposal"] == "B"
    assert data["reliability"] > 0.95 > data["model"]
    assert data["testimony"] == {
        "letter": "A",
        "answer": "Answer: (A)",
        "tool": "jigsaw",
        "backend": "classical",
        "confidence": 0.9,
    }


async def test_a_tool_that_is_less_likely_right_is_not(fakes: Any) -> None:
    text, rule, _ = await decided(fakes, "It is (B).", finding(0), DOUBTED)
    assert (text, rule) == ("It is (B).", "keep")


async def test_a_model_that_was_measured_as_better_is_kept(fakes: Any) -> None:
    trust = Trust({**BELIEVED.curves, (*MODEL, "Jigsaw"): Curve((Bin(0.9, 2000, 2000),))})
    text, rule, data = await decided(fakes, "It is (B).", finding(0), trust)
    assert (text, rule) == ("It is (B).", "keep")
    assert data["model"] == pytest.approx(2001 / 2002)


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", "(A) or (B), who knows", "(A)/(B)"])
async def test_without_a_readable_proposal_a_testimony_has_to_beat_a_guess(fakes: Any, reply: str) -> None:
    text, rule, data = await decided(fakes, reply, finding(1), BELIEVED)
    assert (text, rule, data["proposal"]) == ("Answer: (B)", "adopt", None)
    text, rule, _ = await decided(fakes, reply, finding(1), DOUBTED)
    assert (text, rule) == (reply, "keep")


@pytest.mark.parametrize("found", [finding(None), Finding("nothing", {}, 0.0, "blank", "blank"), finding("first")])
async def test_a_finding_that_does_not_decide_leaves_the_proposal(fakes: Any, found: Finding) -> None:
    text, rule, _ = await decided(fakes, "It is (B).", found, BELIEVED)
    assert (text, rule) == ("It is (B).", "keep")


async def test_a_tool_that_fails_does_not_testify(fakes: Any) -> None:
    kit = fakes.kit_of(JIGSAW, ["It is (B)."], [ToolError("too small", Fault.TIMEOUT)], BELIEVED)
    assert (await SOLVER.ask(JIGSAW, kit)).text == "It is (B)."
    rules = [(step.name, step.fault) for step in kit.log.steps if step.kind == "rule"]
    assert rules == [("no testimony", Fault.TIMEOUT), ("keep", None)]


async def test_a_route_without_a_rule_calls_no_tool(fakes: Any) -> None:
    prompt = Prompt(("Is it?",), Kind.CHOICE, ("yes", "no"), route="Spatial_Relation")
    kit = fakes.kit_of(prompt, ["Answer: (A)"])
    assert (await SOLVER.ask(prompt, kit)).text == "Answer: (A)"
    assert kit.tool.calls == []


async def test_a_choice_that_no_option_names_is_no_testimony(fakes: Any) -> None:
    text, rule, _ = await decided(fakes, "(B)", finding(3), BELIEVED)
    assert (text, rule) == ("(B)", "keep")


async def test_the_model_reads_the_plain_question_and_nothing_of_the_tool(fakes: Any) -> None:
    kit = fakes.kit_of(JIGSAW, ["(B)"], [finding(0)], BELIEVED)
    await SOLVER.ask(JIGSAW, kit)
    (((message,), tools, _),) = kit.model.inner.calls
    assert tools == ()
    assert message.text == "Which image fits?\n" + FORMAT_LINES[Kind.CHOICE]
    assert kit.tool.calls == [("jigsaw", ("img:1", "img:2", "img:3"), {})]


async def test_depth_asks_for_the_points_that_the_choices_name(fakes: Any) -> None:
    prompt = Prompt(("Nearer?",), Kind.CHOICE, ("A is closer", "B is closer"), route="Relative_Depth")
    trust = Trust({("depth", "classical", "Relative_Depth"): Curve((Bin(0.0, 980, 1000),))})
    kit = fakes.kit_of(prompt, ["(A)"], [Finding("B", {"nearer": "B"}, 0.9, "classical", "1")], trust)
    assert (await SOLVER.ask(prompt, kit)).text == "Answer: (B)"
    assert kit.tool.calls == [("depth", (), {"labels": ["A", "B"]})]


@pytest.mark.parametrize("error", [Outage("away"), NotRecorded("no recording"), BudgetSpent("gone")])
async def test_a_model_that_cannot_answer_ends_the_ask(fakes: Any, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        await SOLVER.ask(JIGSAW, fakes.kit_of(JIGSAW, [error], [finding(0)], BELIEVED))


@settings(max_examples=40)
@given(
    right=st.integers(0, 1000),
    skilled=st.integers(0, 1000),
    best=st.integers(0, 1),
    reply=st.sampled_from(["(A)", "(B)", "no idea"]),
)
async def test_the_more_likely_witness_is_followed(fakes: Any, right: int, skilled: int, best: int, reply: str) -> None:
    curves = {
        ("jigsaw", "classical", "Jigsaw"): Curve((Bin(0.0, right, 1000),)),
        (*MODEL, "Jigsaw"): Curve((Bin(0.9, skilled, 1000),)),
    }
    text, rule, data = await decided(fakes, reply, finding(best), Trust(curves))
    letter = "AB"[best]
    if reply == f"({letter})":
        assert (text, rule) == (reply, "agree")
        return
    bar = 0.5 if reply == "no idea" else data["model"]
    assert rule == ("adopt" if data["reliability"] > bar else "keep")
    assert text == (f"Answer: ({letter})" if rule == "adopt" else reply)


@given(st.integers(2, 26))
def test_an_unmeasured_model_stands_between_chance_and_certainty(choices: int) -> None:
    assert 1 / choices < model_prior(choices) < 1
    assert model_prior(2) == pytest.approx(0.5 + MODEL_SKILL / 2)


def test_it_answers_recorded_models() -> None:
    assert (SOLVER.needs_model, SOLVER.needs_live) == (True, False)


COUNT = Prompt(("How many stand out?",), Kind.INTEGER, route="Q2")
COUNTED = Finding("", {"count": 3}, 0.9, "classical", "1")


@pytest.mark.parametrize(
    ("reply", "answer", "rule"), [("I see 7 things.", "I see 7 things.", "keep"), ("Many.", "Answer: 3", "adopt")]
)
async def test_an_answer_without_a_letter_only_stands_in_for_an_unreadable_one(
    fakes: Any, reply: str, answer: str, rule: str
) -> None:
    text, fired, data = await decided(fakes, reply, COUNTED, Trust(), COUNT)
    assert (text, fired) == (answer, rule)
    assert (data["testimony"]["letter"], data["testimony"]["answer"]) == (None, "Answer: 3")
    assert data["readable"] is (rule == "keep")


async def test_more_options_than_usual_letters_are_weighed(fakes: Any) -> None:
    boxes = tuple(Box(10 * place, 0, 10 * place + 9, 9) for place in range(12))
    choices = tuple(f"box {place}" for place in range(12))
    prompt = Prompt(("Which?",), Kind.CHOICE, choices, Given(boxes=boxes), route="Q1")
    objects: list[Json] = [{"label": str(place)} for place in (11, *range(11))]
    found = Finding("", {"objects": objects}, 0.9, "classical", "1")
    text, rule, data = await decided(fakes, "Answer: (K)", found, Trust(), prompt)
    assert (text, rule, data["proposal"]) == ("Answer: (K)", "keep", "K")
    trust = Trust({("saliency", "classical", "Q1"): Curve((Bin(0.0, 900, 1000),))})
    text, rule, _ = await decided(fakes, "Answer: (K)", found, trust, prompt)
    assert (text, rule) == ("Answer: (L)", "adopt")


async def test_an_oracle_is_believed_before_the_best_of_models(fakes: Any) -> None:
    trust = Trust({(*MODEL, "Jigsaw"): Curve((Bin(0.0, 9999, 9999),))})
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

    async def find(self, *_: Any) -> Finding:
        raise ToolError("lost", self.fault)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.TOOL_ERROR])
async def test_an_answer_that_lost_a_tool_says_so(asker: Any, completion: Any, fault: Fault) -> None:
    reply = await asker(completion("(B)"), solver="arbiter", control=Losing(asker.service, fault=fault))
    assert (reply.text, reply.outcome, reply.usage.tool_faults) == ("(B)", Outcome.ANSWERED, 1)


async def test_a_tool_that_never_ran_leaves_the_question_open(asker: Any, completion: Any) -> None:
    asker.service.close()
    with pytest.raises(Outage, match="the tool service is closed"):
        await asker(completion("(B)"), solver="arbiter")
