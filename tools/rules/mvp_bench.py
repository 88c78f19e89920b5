"""MVP-Bench's rules: a statement against its denial, and options in words; by detection, ocr and attributes.

    hybrid run mvp_bench --data DIR --solver specialist --weights detection=DIR_OR_ID --weights attributes=DIR_OR_ID

They use only learned backends: without weights every rule abstains. The route "cross" asks what was changed between two
images, which none of these tools reports, so it has no rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hybrid.core.types import Json, Prompt
from hybrid.tool.finding_data import whole_number
from hybrid.tool.rules import Abstained, Rule, RuleContext, SpecialistAnswer, asks, image_names, say
from tools._shared.question_words import PEOPLE, named_things
from tools.detection.rules import count_of
from tools.rules._shared.options_in_words import MAX_CHARACTERS, looked_for, not_found, one_of, own_sentence

_ASKED: Final = re.compile(r"(?i)\b(?P<verb>is|are|was|were) (?P<subject>(?:the|an?|this|these|those|there)\b.*?)\s*\?")
_NOUN: Final = (
    rf"(?:{PEOPLE}|group|audience|subjects?|background|foreground|setting|scene|image|picture|photo|"
    r"photograph|gesture|expression|behaviou?r|emotion|role|identity|content|weather|lightness|style|atmosphere|"
    r"objects?)"
)
# A subject whose noun is typical of such questions, with its possessives: "the facial expression of the main subject",
# "the group of people in the image".
_SUBJECT: Final = re.compile(
    r"(?:the|an?|this|that|these|those)(?: (?!(?:in|on|of|with|by|an?|the)\b)[\w-]+){0,2}? "
    rf"{_NOUN}(?:'s? (?:facial )?{_NOUN})?"
    rf"(?: of (?:(?:the|an?) )?(?:[\w-]+ )??{_NOUN})?"
    r"(?: in (?:the|this) (?:image|picture|photo|photograph))?(?![\w'’-])",
    re.IGNORECASE,
)
# Words after a noun that still belong to it: "the man | in black holding a gun".
_GOES_ON: Final = re.compile(
    r"(?:held|displayed|depicted|shown|captured)\s+(?:by|on|in|an?|the)\b|(?:who|with|or)\b|"
    r"in (?:black|white|red|blue|green|pink|terms|the (?:given context|left|right|middle|image|picture) \w)|"
    r"on the (?:[\w-]+ )?(?:screen|monitor|left|right) \w",
    re.IGNORECASE,
)


@asks("attributes", "detection")
async def yes_no(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Decide whether the statement fits the image better than its negation."""
    question = own_sentence(prompt)
    statement = statement_of(question)
    if statement is None:
        raise Abstained("no statement", "the question's wording states nothing that could be compared with the image")
    missing, looked = await not_found(prompt, ctx, question)
    if looked is not None and statement[0].startswith("there "):
        if not missing and (unknown := [name for name in looked_for(question) if count_of(looked, name) is None]):
            raise Abstained("unknown", f"detection does not know {', '.join(unknown)}")
        return say("no" if missing else "yes", "detection", looked)
    if missing:
        raise Abstained("refuse", f"detection finds no {missing}")
    texts: list[Json] = [text[:MAX_CHARACTERS] for text in statement]
    finding = await ctx.tool("attributes", [image_names(prompt)[0]], {"texts": texts})
    best = whole_number(finding, "best", 2)
    return None if best is None else say(("yes", "no")[best], "attributes", finding)


# Rules by kind of question.
RULES: Mapping[str, Rule] = {"single": one_of, "yes_no": yes_no}


def statement_of(question: str) -> tuple[str, str] | None:
    """Return the statement that a yes-no question asks about, and its negation.

    "Is the man sitting on a chair?" gives "the man is sitting on a chair" and "the man is not sitting on a chair".
    Return None if the question does not start with a form of to be, if the end of its subject is unclear, or if it says
    nothing about the subject.
    """
    match = _ASKED.search(question)
    if match is None:
        return None
    verb, subject_text = match["verb"].lower(), " ".join(match["subject"].split())
    if subject_text.lower().startswith("there "):
        rest = subject_text[len("there ") :]
        bare = re.sub(r"^(?:an?|any|the)\s+", "", rest, flags=re.IGNORECASE)
        return f"there {verb} {rest}", f"there {verb} no {bare}"
    subject = _SUBJECT.match(subject_text)
    if subject is None and (names := named_things(subject_text)):
        # Use the first named object if the subject begins with it and its name is not part of a longer name.
        subject = re.match(rf"\w+\s+{re.escape(names[0])}\b", subject_text, re.IGNORECASE)
        if subject and re.match(
            r"\s+of\b|[\s'-]*[a-z]*ing\s+(?:room|area|table)\b|'s\b", subject_text[subject.end() :]
        ):
            subject = None
    if subject is None:
        return None
    end = subject.end()
    predicate = subject_text[end:].strip()
    if not predicate or _GOES_ON.match(predicate):
        return None
    return f"{subject_text[:end]} {verb} {predicate}", f"{subject_text[:end]} {verb} not {predicate}"
