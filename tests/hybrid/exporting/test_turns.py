"""The turns of a question: every tool output follows the call that it answers."""

from hybrid.core.types import Attempt, Exchange, Fault, Kind, Prompt, Reply, Step
from hybrid.exporting._turns import turns


def test_findings_answer_the_call_of_their_tool_and_calls_of_two_asks_are_not_one() -> None:
    rows: list[dict[str, object]] = [{"tool": "jigsaw", "args": {"a": 1}}, {"tool": "depth", "args": {}}]
    steps = (
        Step("model", "m", "I look.", data={"tool_calls": rows}),
        # Concurrent calls finish in another order than they were made in. The last step is a call by a rule.
        *(Step("tool", name, f"{name} says", data={"args": {}}) for name in ("depth", "jigsaw", "crop")),
    )
    ask = Exchange(Prompt(("Which?", ""), Kind.CHOICE, ("A", "B")), Reply("(A)", steps=steps))
    items = list(turns(Attempt("q", (ask, ask), 0.1)))
    assert [turn.role for turn in items[:7]] == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    pairs = [(turn.answers.tool, turn.text) for turn in items if turn.answers]
    assert pairs == [(name, f"{name} says") for name in ("depth", "jigsaw", "crop")] * 2
    calls = [call for turn in items for call in turn.calls]
    assert [call.tool for call in calls] == ["jigsaw", "depth", "crop"] * 2
    assert len({call.id for call in calls}) == 6
    assert {turn.answers.id for turn in items if turn.answers} == {call.id for call in calls}
    assert (items[0].parts, items[6].text, items[6].calls) == (("Which?",), "(A)", ())


def test_a_turn_holds_no_path_of_the_machine() -> None:
    calls = {"tool_calls": [{"tool": "depth", "args": {}}]}
    error = Step("tool", "depth", "cannot open /mnt/x/w", fault=Fault.TOOL_ERROR, data={"args": {}})
    steps = (Step("model", "replay:/mnt/x/alpha", "", data=calls), error)
    ask = Exchange(Prompt(("Which?",), Kind.CHOICE, ("A", "B")), Reply("(A)", steps=steps))
    items = list(turns(Attempt("q", (ask,), 0.1)))
    assert "/mnt/x" not in repr([(turn.parts, turn.step) for turn in items])
