"""Verify: the MLLM proposes, the specialist for the question is heard, the MLLM sees the evidence and decides.

    hybrid run blink --solver verify --model openai:gpt-4o

One round at a fixed cost: two model calls and the tool calls of one rule. Where no rule or tool has anything to say,
the proposal stands and the second call is not made.
"""

from __future__ import annotations

from types import MappingProxyType

from graphs._image_sizes import image_sizes
from graphs._two_witnesses import Proposal, TwoWitnesses
from hybrid.messages import finding_parts, shortened
from hybrid.solving.empty_replies import words_of
from hybrid.solving.kit import Kit, Limits
from hybrid.solving.outlook import Course, Outlook, certain
from hybrid.types import ImageRef, Prompt
from tools.rules import Testimony, has_rule

EVIDENCE = "A specialist tool looked at the image{plural}: {sizes}. What it found:"
DECIDE = "Before you saw this, your answer was: {proposal}\nDecide anew. The tool can be wrong, and so could you."
SHARE_WITH_EVIDENCE = 0.5
"""Asks, of 1, in which a specialist with a rule for the question is assumed to find something. With the weight-free
backends alone it did so in 59 of 80 generated questions of BLINK and HVSBench, and in none of MVP-Bench and MM-SAP."""
ASSUMED = "where a specialist has a rule for the question, it finds something in half of the asks: a second call"


class Verify(TwoWitnesses):
    """An MLLM that is shown evidence once."""

    needs_live = True
    names_images = True
    texts = MappingProxyType({**TwoWitnesses.texts, "evidence": EVIDENCE, "decide": DECIDE})

    def outlook(self, prompt: Prompt, limits: Limits) -> Outlook:
        """The proposal, and where a specialist has a rule for the prompt a second call that shows one finding."""
        low, usual = Course(1), Course(2, findings=1)
        return Outlook(low, usual, usual, SHARE_WITH_EVIDENCE, ASSUMED) if has_rule(prompt) else certain(low)

    async def decide(self, prompt: Prompt, kit: Kit, proposal: Proposal, testimony: Testimony | None) -> str:
        """Show the evidence with the first answer and ask again; without evidence the proposal stands."""
        if testimony is None:
            kit.rule("keep", "there is no evidence to show")
            return proposal.text
        kit.rule("evidence", f"{testimony.tool} says {testimony.answer}", {"testimony": testimony.as_json()})
        images = [image.name for image in prompt.images]
        sizes = image_sizes(prompt.images, kit.frame)
        evidence: list[str | ImageRef] = [EVIDENCE.format(plural="s" if len(images) > 1 else "", sizes=sizes)]
        shown = finding_parts(testimony.finding, images, kit.show)
        evidence += [part if isinstance(part, str) else part.ref for part in shown]
        message = kit.message(prompt, *evidence, DECIDE.format(proposal=shortened(proposal.text)))
        return await words_of(kit.model, [message], kit.log)


SOLVER = Verify()
