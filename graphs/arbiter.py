"""The arbiter: the MLLM proposes, the specialist for the question testifies, an explicit rule decides.

    hybrid run blink --solver arbiter --model openai:gpt-4o [--trust trust.json] [--setting samples=5]

A LangGraph graph of three nodes; `propose` and `testify` run side by side. The rule (`decide`):

- Without a testimony that can be read the proposal stands as it is.
- A proposal that cannot be read never beats a testimony.
- Two that say the same keep the proposal, whose words they are.
- Of two independent witnesses who disagree, right with the probabilities p and m, the first is the right one with odds
  p (1 - m) : m (1 - p). So the larger probability is followed, and the proposal where both are the same. Answers that
  are graded (a scanpath) are compared by the score that is expected of them, on the same scale.

Both probabilities are reckoned alike (`hybrid/solving/witness.py`). A tool is known by the overall rate on its card and
says what the card's curve has at the confidence of this answer; an MLLM is known by its skill and says its share of the
votes, where it was asked several times. `--trust` recalibrates both on real cases and measures the skill. Every number
that was used is in the step of the trace, from which it can be reckoned again; `docs/statistics.md` has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from graphs._two_witnesses import Proposal, TwoWitnesses
from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.skill import PublishedSkill
from hybrid.solving.controls import ORACLE
from hybrid.solving.kit import Kit
from hybrid.solving.self_consistency import voted
from hybrid.solving.trust import Trust
from hybrid.solving.witness import Witness
from hybrid.types import Json, Prompt, Reply
from tools.rules import Testimony, claimed


class Arbiter(TwoWitnesses):
    """MLLM and specialist side by side, and a rule between them."""

    samples_itself = True

    async def propose(self, prompt: Prompt, kit: Kit) -> Proposal:
        """What the MLLM says, and with what share of the votes where it is asked several times."""

        async def once() -> Reply:
            return Reply((await super(Arbiter, self).propose(prompt, kit)).text)

        vote = await voted(prompt, kit.samples, once, kit.log)
        return Proposal(vote.reply.text, vote.confidence)

    async def decide(self, prompt: Prompt, kit: Kit, proposal: Proposal, testimony: Testimony | None) -> str:
        """Apply the rule of the module's docstring and write down why."""
        found = ruling(prompt, kit.trust, kit.skill, proposal, testimony)
        kit.rule(found.rule, found.reason, found.data)
        return kit.wording.written(testimony.answer) if testimony and found.rule == "adopt" else proposal.text


@dataclass(frozen=True)
class Ruling:
    """What was decided between two witnesses, and why."""

    rule: Literal["adopt", "agree", "keep"]
    """Only `adopt` answers as the specialist does."""
    reason: str
    data: Mapping[str, Json] = field(default_factory=dict)
    """Every number that was used."""


def ruling(
    prompt: Prompt, trust: Trust, skill: PublishedSkill, proposal: Proposal, testimony: Testimony | None
) -> Ruling:
    """The rule of the module's docstring. Calls no model and no tool."""
    if testimony is None:
        return Ruling("keep", "there is no testimony")
    said, told = _read(prompt, proposal.text), testimony.letter or _read(prompt, testimony.answer)
    specialist = tool_witness(prompt, trust, skill.guess(prompt), testimony)
    own = trust.skill(prompt.route, skill.usual(prompt))
    mllm = trust.model(prompt.route, own, proposal.confidence)
    data: dict[str, Json] = {
        "testimony": testimony.as_json(),
        "proposal": said,
        "tool": specialist.as_json(),
        "mllm": {**own.as_json(), **mllm.as_json()},
    }
    if told is None:
        return Ruling("keep", f"{testimony.tool} gives no readable {prompt.kind.value}", data)
    if said is None:
        why = f"the proposal is no readable {prompt.kind.value}; {testimony.tool} gives one"
        return Ruling("adopt", why, data)
    if said == told:
        return Ruling("agree", f"both say {said}", data)
    better = specialist.worth > mllm.worth or testimony.finding.backend == ORACLE
    above = "above" if better else "not above"
    why = f"{testimony.tool} is worth {specialist.worth:.2f}, {above} the MLLM's {mllm.worth:.2f}"
    return Ruling("adopt" if better else "keep", why, data)


def tool_witness(prompt: Prompt, trust: Trust, guess: float, testimony: Testimony) -> Witness:
    """The specialist as a witness: what its card claims, recalibrated where it was measured on this route.

    `guess` is what a guess at this prompt is worth, 0..1.
    """
    corrected = trust.recalibration(testimony.tool, testimony.finding.backend, prompt.route)
    return replace(claimed(testimony, prompt, guess), recalibration=corrected)


def _read(prompt: Prompt, text: str) -> Json:
    return as_json(parse(text, prompt.kind, prompt.choices).value)


SOLVER = Arbiter()
