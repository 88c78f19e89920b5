"""The one sentence that asks, out of a prompt's text: without its options, and without requests for a form of reply.

    sentence_of(prompt)      # "How many cars are there", or an `Unclear`

A sentence beside it that is not known to change nothing ("I am standing at the red mark.") makes the question unclear.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hybrid.types import LETTERS, Prompt

# How questions call the image.
PICTURE: Final = r"(?:the|this|that) (?:given |provided )?(?:image|picture|photo|photograph|scene|shot)(?: provided)?"

# Sentences that ask for a form of reply, or say what is drawn: they change nothing about what is asked.
_REQUEST: Final = re.compile(
    r"(?:please )?(?:directly )?(?:answer|respond|reply|select|choose|pick|output|give|provide|use)\b[^?]*|"
    rf"(?:please )?(?:look (?:carefully )?at|examine|observe) {PICTURE}(?: carefully)?|"
    r"estimate the real-world distances(?: between objects in this image)?|"
    r"(?:two|three|four|several|multiple) points are (?:circled|marked|annotated|labell?ed|drawn)\b[^?]*|"
    r"(?:the )?(?:options|choices)(?: are)?",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(r"(?:please )?count\b[^?]*", re.IGNORECASE)
_HEADING: Final = re.compile(r"^(?:the )?(?:question|hint|options|choices)(?: is| are)?:\s*", re.IGNORECASE)
_VIEWER: Final = (
    r"from (?:the )?(?:camera|viewer|observer|photographer)(?:'s|’s)? (?:perspective|point of view|viewpoint)"
)
_PREFACE: Final = re.compile(
    rf"(?:please )?(?:considering the relative positions of .+? in {PICTURE}, |{_VIEWER}, |"
    rf"(?:in|based on|according to|looking at|given) {PICTURE}, |estimate .{{0,60}}distances[^,]*, )?",
    re.IGNORECASE,
)
# A thing with its mark in a preface, which the question itself may name without.
_WITH_MARK: Final = re.compile(r"\b(the (?:(?!the )[a-z -])+?) (\([^()]+\))", re.IGNORECASE)
_CLOSING: Final = re.compile(rf",? (?:as seen )?{_VIEWER}$", re.IGNORECASE)
# Words that turn a question round, or put it at another time, place or pair of eyes.
_CHANGES: Final = re.compile(
    r"\b(?:not|never|no|nor|neither|without|except|besides|apart|instead|if|would|could|should|will|suppose|imagine|"
    r"assume|after|before|i|my|mine|me|your|was|were|had|did)\b|n['’]t\b",
    re.IGNORECASE,
)


class Unclear(NamedTuple):
    """Why a question is not answered by its text."""

    reason: str


def sentence_of(prompt: Prompt) -> str | Unclear:
    """The sentence that asks, without its question mark and without a preface that changes nothing."""
    asking = [one for one in _sentences(_without_options(prompt)) if not _REQUEST.fullmatch(one.rstrip(" .:"))]
    if len(asking) > 1 and any("?" in one for one in asking):
        asking = [one for one in asking if not _COUNT.fullmatch(one)]
    if not asking:
        return Unclear("the text holds no question")
    if len(asking) > 1:
        return Unclear("the text holds more than one sentence, which may change what is asked")
    sentence = asking[0].strip().rstrip("?. ")
    if (changes := _CHANGES.search(sentence)) is not None:
        return Unclear(f"the word {changes[0]!r} may change what is asked")
    preface = _PREFACE.match(sentence)
    told, rest = (preface[0], sentence[preface.end() :]) if preface else ("", sentence)
    for name, mark in _WITH_MARK.findall(told):
        rest = re.sub(rf"\b{re.escape(name)}\b(?! \()", f"{name} {mark}", rest)
    return _CLOSING.sub("", rest)


def _without_options(prompt: Prompt) -> str:
    """The text without the options that the prompt also holds as choices."""
    text = prompt.text
    for letter, choice in zip(LETTERS, prompt.choices, strict=False):
        option = rf"^\s*\(?{letter}[).:]\s*{re.escape(choice.strip())}\s*$|\({letter}\)\s*{re.escape(choice.strip())}"
        text = re.sub(option, "\n", text, count=1, flags=re.MULTILINE)
    return text


def _sentences(text: str) -> list[str]:
    parts = (_HEADING.sub("", part.strip()) for part in re.split(r"\n+|(?<=[.?!])\s+", text))
    return [part for part in parts if re.search(r"\w", part)]
