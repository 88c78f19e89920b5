"""The rule for options in words: by count, by written text, else by the option that fits the image best.

It uses only learned backends: without weights it abstains. If detection does not find an object that the question
names, the answer is the choice that refuses, or an abstention if there is none.
"""

from __future__ import annotations

import re
from typing import Final

from hybrid.core.types import Box, Finding, Json, Prompt
from hybrid.tool.finding_data import rows_of, whole_number
from hybrid.tool.rules import Abstained, RuleContext, SpecialistAnswer, ask_tool, asks, choose, image_names
from tools._shared.question_words import MAX_NAMES, asked_question, asks_for_text, counted_thing, named_things, singular
from tools.detection.rules import count_of, counted_choice

# Phrases by which an option says that the image does not show the answer.
REFUSES: Final = re.compile(r"(?i)\bsorry\b|\b(?:can(?:no|')?t|cannot|unable to) (?:help|answer|tell|know)\b")
# Largest number of texts that the attributes tool compares in one call.
MAX_TEXTS: Final = 16
# Largest length of one text for the attributes tool, in characters.
MAX_CHARACTERS: Final = 300


@asks("attributes", "detection", "ocr")
async def one_of(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Choose an option in words: by count, by written text, else the option that fits the image best."""
    question = own_sentence(prompt)
    missing, looked = await not_found(prompt, ctx, question)
    if missing is not None and looked is not None:
        ctx.rule("refuse", f"detection finds no {missing}")
        return choose(refusing(prompt.choices), "detection", looked)
    if (name := counted_thing(question)) is not None:
        if looked is None:
            return None
        if (place := counted_choice(prompt, looked, name)) is None:
            raise Abstained("no count", f"no choice, or more than one, states {count_of(looked, name)} x {name}")
        return choose(place, "detection", looked)
    if re.search(r"(?i)\bhow many\b", question):
        raise Abstained(
            "no count",
            "the question counts only some objects of a kind, and detection by name cannot tell these from the others",
        )
    if asks_for_text(question) and (read := await ask_tool(ctx, "ocr", image_names(prompt)[0], {})) is not None:
        choice = written_choice(prompt.choices, str(read.data.get("text", "")))
        if choice is not None:
            return choose(choice, "ocr", read)
    # If no option fits, choose the one that refuses, if any.
    refusal = refusing(prompt.choices)
    places = [place for place in range(len(prompt.choices)) if place != refusal]
    texts = [f"{question} {prompt.choices[place]}"[:MAX_CHARACTERS] for place in places]
    best, finding = await best_fitting(prompt, ctx, texts)
    rows = rows_of(finding, "scores")
    scored = finding.data.get("compares") is False and len(rows) == len(texts)
    unfit = scored and not any(row.get("fits") is True for row in rows)
    return choose(refusal if unfit and refusal is not None else places[best], "attributes", finding)


def own_sentence(prompt: Prompt) -> str:
    """Return the question itself: the line `Question: ...`, else the first line that ends in a question mark."""
    expected = asked_question(prompt.text)
    if expected is not None:
        return expected
    lines = [line.strip() for line in prompt.text.splitlines() if line.strip().endswith("?")]
    return lines[0] if lines else prompt.text


def looked_for(question: str) -> list[str]:
    """List the objects that a question names, once each and in the singular; for a count, only the counted one."""
    counted_name = counted_thing(question)
    return list(dict.fromkeys([counted_name] if counted_name else [singular(name) for name in named_things(question)]))


async def not_found(prompt: Prompt, ctx: RuleContext, question: str) -> tuple[str | None, Finding | None]:
    """Return the first named object that is not in the image, or None; and detection's output, None if not called."""
    target = looked_for(question)
    if not target:
        ctx.rule("no name", "the question names no object to look for")
        return None, None
    finding = await ask_tool(ctx, "detection", image_names(prompt)[0], {"names": target[:MAX_NAMES]})
    if finding is None:
        return None, None
    return next((name for name in target if count_of(finding, name) == 0), None), finding


def written_choice(choices: tuple[str, ...], text: str) -> int | None:
    """Return the index of the only choice whose words are in the text, in order; None if there is none or several."""
    read = f" {_words(text)} "
    fits = [place for place, choice in enumerate(choices) if _words(choice) and f" {_words(choice)} " in read]
    return fits[0] if len(fits) == 1 else None


def refusing(choices: tuple[str, ...]) -> int | None:
    """Return the index of the only choice that refuses, or None."""
    fits = [place for place, choice in enumerate(choices) if REFUSES.search(choice)]
    return fits[0] if len(fits) == 1 else None


async def best_fitting(
    prompt: Prompt, ctx: RuleContext, texts: list[str], box: Box | None = None
) -> tuple[int, Finding]:
    """Return the index of the text that fits the image, or a region of it, best, and the output of the attributes tool.

    Raises `Abstained` if the tool cannot compare the texts, or does not decide.
    """
    # The tool merges equal texts, so its `best` would be an index into a shorter list.
    if not 2 <= len(texts) <= MAX_TEXTS or len(set(texts)) < len(texts):
        raise Abstained("no texts", "the options are not between 2 and 16 different texts")
    args: dict[str, Json] = {"texts": [*texts]}
    if box is not None:
        args["box"] = {"x0": box.x0, "y0": box.y0, "x1": box.x1, "y1": box.y1}
    finding = await ctx.tool("attributes", [image_names(prompt)[0]], args)
    if (best := whole_number(finding, "best", len(texts))) is None:
        raise Abstained
    return best, finding


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
