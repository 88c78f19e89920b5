"""The rules over what is in a picture, in words: MVP-Bench and MM-SAP, by the tools detection, ocr and attributes.

A library of `tools/rules/`. All of it is learned: without weights every rule abstains. A thing that the question
names and detection does not find is a refusal: the choice that refuses where one is offered, else an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hybrid.solving.kit import Kit
from hybrid.types import Finding, Prompt
from tools.rules.testimony import Rule, Testimony, choose, heard, names, number_of, rows_of, say
from tools.rules.wording import counted_thing, number_in, singular
from tools.rules.words_asked import MOST_NAMES, asked_question, asks_for_text, named_things, statement_of

REFUSES: Final = re.compile(r"(?i)\bsorry\b|\b(?:can(?:no|')?t|cannot|unable to) (?:help|answer|tell|know)\b")
"""How an option says that the picture does not tell."""
MOST_TEXTS: Final = 16
MOST_CHARACTERS: Final = 300


async def yes_no(prompt: Prompt, kit: Kit) -> Testimony | None:
    """MVP-Bench, yes or no: whether the statement fits the image better than its denial."""
    question = _question(prompt)
    asked = statement_of(question)
    if asked is None:
        kit.rule("no statement", "the question's wording states nothing that could be compared with the image")
        return None
    missing, looked = await _not_found(prompt, kit, question)
    if looked is not None and asked[0].startswith("there "):
        return say("no" if missing else "yes", "detection", looked)
    if missing:
        kit.rule("refuse", f"detection finds no {missing}")
        return None
    finding = await heard(kit, "attributes", names(prompt)[0], {"texts": [text[:MOST_CHARACTERS] for text in asked]})
    if finding is None:
        return None
    best = finding.data.get("best")
    if not isinstance(best, int) or isinstance(best, bool) or best not in (0, 1):
        return None
    return say(("yes", "no")[best], "attributes", finding)


async def one_of(prompt: Prompt, kit: Kit) -> Testimony | None:
    """A choice in words: by count, by what is written, else by the option that fits the image best."""
    question = _question(prompt)
    missing, looked = await _not_found(prompt, kit, question)
    if missing is not None and looked is not None:
        return _refusal(prompt, kit, missing, looked)
    if (name := counted_thing(question)) is not None:
        return None if looked is None else _counted(prompt, kit, name, looked)
    if re.search(r"(?i)\bhow many\b", question):
        kit.rule("no count", "the question counts some of a kind, which detection by name does not tell apart")
        return None
    if asks_for_text(question) and (read := await heard(kit, "ocr", names(prompt)[0], {})) is not None:
        written = written_choice(prompt.choices, str(read.data.get("text", "")))
        if written is not None:
            return choose(written, "ocr", read, on_card=False)
    return await _fitting(prompt, kit, question)


WORDS: Mapping[str, Rule] = {
    # ActiView and MM-SAP call every ask for a letter "choice"; "single" is MVP-Bench's. Its "cross" asks what was
    # changed between two pictures, which none of these tools says: it has no rule.
    "choice": one_of,
    "single": one_of,
    "yes_no": yes_no,
}


def written_choice(choices: tuple[str, ...], text: str) -> int | None:
    """The place of the one choice whose words all stand in a text in a row; None for none or several."""
    read = f" {_words(text)} "
    fits = [place for place, choice in enumerate(choices) if _words(choice) and f" {_words(choice)} " in read]
    return fits[0] if len(fits) == 1 else None


def refusing(choices: tuple[str, ...]) -> int | None:
    """The place of the one choice that refuses, or None."""
    fits = [place for place, choice in enumerate(choices) if REFUSES.search(choice)]
    return fits[0] if len(fits) == 1 else None


def _question(prompt: Prompt) -> str:
    """The question's own sentence: the line `Question: ...`, else the first line that ends in a question mark."""
    asked = asked_question(prompt.text)
    if asked is not None:
        return asked
    lines = [line.strip() for line in prompt.text.splitlines() if line.strip().endswith("?")]
    return lines[0] if lines else prompt.text


async def _not_found(prompt: Prompt, kit: Kit, question: str) -> tuple[str | None, Finding | None]:
    """The first named thing that is not in the image, and what detection said; no finding where nothing was asked."""
    counted = counted_thing(question)
    wanted = list(dict.fromkeys([counted] if counted else [singular(name) for name in named_things(question)]))
    if not wanted:
        kit.rule("no name", "the question names no thing to look for")
        return None, None
    finding = await heard(kit, "detection", names(prompt)[0], {"names": wanted[:MOST_NAMES]})
    if finding is None:
        return None, None
    counts = finding.data.get("counts")
    known = counts if isinstance(counts, Mapping) else {}
    # A name that a closed-set detector does not know is not in the counts: nothing is said about it.
    return next((name for name in wanted if known.get(name) == 0), None), finding


def _refusal(prompt: Prompt, kit: Kit, missing: str, finding: Finding) -> Testimony | None:
    place = refusing(prompt.choices)
    kit.rule("refuse", f"detection finds no {missing}")
    return None if place is None else choose(place, "detection", finding, on_card=False)


def _counted(prompt: Prompt, kit: Kit, name: str, finding: Finding) -> Testimony | None:
    counts = finding.data.get("counts")
    count = counts.get(name) if isinstance(counts, Mapping) else None
    fits = [place for place, choice in enumerate(prompt.choices) if count is not None and number_in(choice) == count]
    if len(fits) != 1:
        kit.rule("no count", f"no choice, or more than one, states {count} x {name}")
        return None
    return choose(fits[0], "detection", finding, on_card=False)


async def _fitting(prompt: Prompt, kit: Kit, question: str) -> Testimony | None:
    """The option that fits the image best; none of them fitting is a refusal where one is offered."""
    refusal = refusing(prompt.choices)
    places = [place for place in range(len(prompt.choices)) if place != refusal]
    texts = [f"{question} {prompt.choices[place]}"[:MOST_CHARACTERS] for place in places]
    # Equal texts are one to the tool, and its `best` would count them differently.
    if not 2 <= len(texts) <= MOST_TEXTS or len(set(texts)) < len(texts):
        kit.rule("no texts", "the options are not between 2 and 16 different texts")
        return None
    finding = await heard(kit, "attributes", names(prompt)[0], {"texts": texts})
    best = finding.data.get("best") if finding is not None else None
    if finding is None or not isinstance(best, int) or isinstance(best, bool) or not 0 <= best < len(places):
        return None
    scores = [number_of(row, "score_0_1") for row in rows_of(finding, "scores")]
    unfit = (
        finding.data.get("compares") is False
        and len(scores) == len(texts)
        and not any(row.get("fits") is True for row in rows_of(finding, "scores"))
    )
    if unfit and refusal is not None:
        return choose(refusal, "attributes", finding, on_card=False)
    return choose(places[best], "attributes", finding, on_card=False)


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
