"""The arbiter: the MLLM proposes, the specialist for the question testifies, an explicit rule decides.

    hybrid run blink --solver arbiter --model openai:gpt-4o [--trust trust.json]

A LangGraph graph of three nodes; `propose` and `testify` run side by side. The rule (`decide`) adopts a testimony that
contradicts the proposal only when it is more likely right than an MLLM: with two independent witnesses of accuracy p
and m who disagree between two options, the first is right with odds p(1-m) : m(1-p), so the larger accuracy wins. p is
the tool's reliability at the finding's own confidence, from `--trust` or the tool's card; m is the model's own, from
`--trust` or `model_prior`. An answer that is no choice (a number, an order, a scanpath, yes or no) is not weighed: the
proposal is kept, unless it cannot be read.
"""

from __future__ import annotations

from graphs._two_witnesses import TwoWitnesses
from hybrid.answers import Answer, parse
from hybrid.solving.kit import Kit
from hybrid.types import Json, Prompt
from tools.rules import Testimony, card_curve

MODEL_SKILL = 0.145
"""How far between chance and certainty an MLLM is placed where nothing was measured. It is the mean of the five models
that BLINK's repository prints task by task (GPT-4V, GPT-4 Turbo, GPT-4o, Gemini Pro, Claude 3 Opus) on Relative_Depth
and Jigsaw: 0.573 of two choices. On the three correspondence tasks, of four choices, both it and the five say 0.36."""


def model_prior(choices: int) -> float:
    """Accuracy an MLLM is credited with on a question of so many choices, without a measurement."""
    chance = 1 / choices
    return chance + MODEL_SKILL * (1 - chance)


def weigh_form(prompt: Prompt, kit: Kit, proposal: str, testimony: Testimony) -> str:
    """Without choices there are no two accuracies to compare: the testimony stands in for an unreadable proposal."""
    readable = _parsed(proposal, prompt).value is not None
    contest: dict[str, Json] = {"testimony": testimony.as_json(), "readable": readable}
    kind = prompt.kind.value
    if readable:
        kit.rule("keep", f"the testimony names no choice; the proposal is a readable {kind}", contest)
        return proposal
    kit.rule("adopt", f"the proposal is no readable {kind}; {testimony.tool} gives one", contest)
    return kit.wording.written(testimony.answer)


def weigh_choice(prompt: Prompt, kit: Kit, proposal: str, testimony: Testimony) -> str:
    """The rule of the module's docstring, for a testimony that names a choice."""
    letter = _parsed(proposal, prompt).value
    curve = card_curve(testimony, len(prompt.choices))
    backend, confidence = testimony.finding.backend, testimony.confidence
    reliability = kit.trust.reliability(testimony.tool, backend, prompt.route, confidence, curve)
    believed = kit.trust.model(prompt.route, model_prior(len(prompt.choices)))
    contest: dict[str, Json] = {
        "testimony": testimony.as_json(),
        "proposal": letter if isinstance(letter, str) else None,
        "reliability": reliability,
        "model": believed,
    }
    if letter == testimony.letter:
        kit.rule("agree", f"both say {letter}", contest)
        return proposal
    # Without a readable proposal the testimony only has to beat a guess.
    bar = believed if letter else 1 / len(prompt.choices)
    if reliability > bar:
        kit.rule("adopt", f"{testimony.tool} is right with {reliability:.2f}, above {bar:.2f}", contest)
        return kit.wording.written(testimony.answer)
    kit.rule("keep", f"{testimony.tool} is right with {reliability:.2f}, not above {bar:.2f}", contest)
    return proposal


def _parsed(proposal: str, prompt: Prompt) -> Answer:
    """The proposal as its kind reads it."""
    return parse(proposal, prompt.kind, prompt.choices)


class Arbiter(TwoWitnesses):
    """MLLM and specialist side by side, and a rule between them."""

    async def decide(self, prompt: Prompt, kit: Kit, proposal: str, testimony: Testimony | None) -> str:
        """Apply the rule of the module's docstring and write down why."""
        if testimony is None:
            kit.rule("keep", "there is no testimony")
            return proposal
        weigh = weigh_form if testimony.letter is None else weigh_choice
        return weigh(prompt, kit, proposal, testimony)


SOLVER = Arbiter()
