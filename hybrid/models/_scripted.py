"""How the embedded stand-in answers: what a finding says, else a seeded guess, in the form that a prompt asks for."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence

from hybrid.prompts import FORMAT_LINES, bare
from hybrid.types import LETTERS, Kind

# After these words a finding names its choice; around those it is said of what stands before them.
_NAMES = re.compile(
    r"\b(?:favou?rs?|best|answer|likely|match(?:es)?|fits?|corresponds? to|chosen|top)\b", re.IGNORECASE
)
_COMPARES = re.compile(r"\b(?:nearer|nearest|closer|closest|darker|brighter|larger|highest|most)\b", re.I)
_OPTION = re.compile(r"\(([A-H])\)[ \t]*([^\n(]*)")
_BRACKETED = re.compile(r"\[([A-Z])\][ \t]*([^\n\[]*)")
_DOTTED = re.compile(r"(?:^|[\n;:])[ \t]*([A-H])[.:)][ \t]+([^\n;]+)")
_ORDINAL = re.compile(r"\b(candidate|option|choice|image|part)\s+#?(\d+)\b", re.IGNORECASE)
_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth")
_COUNT = re.compile(
    r"\b(?:count(?:ed)?|found|there (?:are|is)|number)\D{0,20}?(\d+)\b|\b(\d+)\s+(?:are|were|is)\b", re.I
)
_COUNTED = re.compile(r"(?<![\d.])(\d+)\s+(?:[a-z]+\s+){0,2}(?:objects?|things?|items?)\b", re.I)
_VERDICT = re.compile(r"(?:^|\n|[:.?!] |\b(?:favou?rs|answer is) )(yes|no)(?=[,.;:!]|\s*(?:\n|$))", re.I)
_UNDECIDED = re.compile(r"\b(?:undecided|equally)\b", re.I)
_SEEN_PARTS = re.compile(r"\bparts? (\d+(?:(?:, | and )\d+)*)", re.I)
_ASKS: Mapping[Kind, str] = {
    Kind.VIEWS: r"\bnumbers only\b",
    Kind.YES_NO: r"\byes\b.{0,12}\bno\b",
    Kind.SCANPATH: r"\bX = \[",
    Kind.INTEGER: r"\bhow many\b",
}
_SEQUENCE = re.compile(r"\b[A-H](?:\s*(?:,|>|-|->)?\s*[A-H]){2,}\b")


def options(question: str) -> dict[str, str]:
    """Letters and texts of the options that a question's text shows, in order."""
    found = _OPTION.findall(question) or _BRACKETED.findall(question) or _DOTTED.findall(question)
    return {letter: text.strip().rstrip(".;,") for letter, text in found}


def kind_of(question: str) -> Kind:
    """The form of reply asked for: by our own format line, else by what the text shows."""
    if (kind := _line_of(question)) is not None:
        return kind
    if re.search(r"\bJSON\b", question):
        return Kind.VIEW_PLAN
    if options(question):
        return Kind.CHOICE
    return next((kind for kind, words in _ASKS.items() if re.search(words, question, re.IGNORECASE)), Kind.FREE)


def _line_of(question: str) -> Kind | None:
    """The kind whose format line of ours is in the question."""
    return next((kind for kind, line in FORMAT_LINES.items() if line and line in question), None)


def answer(question: str, findings: Sequence[str], seed: random.Random) -> str:
    """A reply to a question's text, given the texts of findings; the bare answer where no format line asks for more."""
    write = _WRITERS.get(kind_of(question))
    text = write(question, "\n".join(findings), seed) if write else "I cannot say more than the question does."
    last = text.rpartition("\n")[2]
    return text if _line_of(question) or bare(last) == last else bare(last)


def favoured(finding: str, choices: Mapping[str, str]) -> str | None:
    """The letter of the choice that a finding's text speaks for, or None.

    The first sentence that names one decides, because a finding starts with its main statement: after words like
    "favours" the last choice named there, before words like "nearer" the one said to be so ("A is nearer than B" is A).
    A finding that calls itself undecided speaks for none, whatever its numbers are. A first line that names a single
    choice needs no such word ("B of image 2 is the point of image 1").
    """
    stated = _stated(finding, choices)
    if stated:
        return stated
    for sentence in re.split(r"(?<=[.;!])\s+|\n+", finding):
        if _UNDECIDED.search(sentence):
            return None
        named = _NAMES.search(sentence)
        compared = _COMPARES.search(sentence)
        if named:
            before, after = sentence[: named.start()], sentence[named.end() :].split(" than ")[0]
            found = _mentioned(after, choices) or _mentioned(before, choices)
        elif compared:
            before, after = sentence[: compared.start()], sentence[compared.end() :].split("than ")[0]
            found = _mentioned(before, choices) or _mentioned(after, choices)
        else:
            found = None
        if found:
            return found
    return None


def _stated(finding: str, choices: Mapping[str, str]) -> str | None:
    """The one choice that a finding's first line names, by letter or else by words; None for none or several."""
    lines = [line for line in finding.split("\n") if line.strip() and not line.startswith("on img:")]
    if not lines or _UNDECIDED.search(lines[0]):
        return None
    by_letter = {letter for letter in choices if re.search(rf"(?<!\w){letter}(?!\w)", lines[0])}
    plain = {letter: words.lower().removeprefix("the ").strip() for letter, words in choices.items()}
    by_words = {
        letter
        for letter, words in plain.items()
        if len(words) > 2 and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", lines[0].lower())
    }
    for named in (by_letter, by_words):
        if len(named) == 1:
            return named.pop()
    return None


def _mentioned(text: str, choices: Mapping[str, str]) -> str | None:
    """The last choice mentioned in a text: by letter, by its own words, or by its number."""
    found: list[tuple[int, str]] = []
    for letter, words in choices.items():
        found += [(match.start(), letter) for match in re.finditer(rf"(?<!\w){letter}(?!\w)", text)]
        if len(words) > 1 and (at := text.lower().rfind(words.lower())) >= 0:
            found.append((at, letter))
    for match in _ORDINAL.finditer(text):
        numbered = _numbered(match.group(1).lower(), int(match.group(2)), choices)
        found += [(match.start(), numbered)] if numbered else []
    return max(found)[1] if found else None


def _numbered(noun: str, number: int, choices: Mapping[str, str]) -> str | None:
    """The choice behind "candidate 2" (the second), or behind "image 2" where choices read "the second image"."""
    if noun == "image":
        said = [text.lower() for text in choices.values()]
        ordinals = [next((n for n, word in enumerate(_WORDS, 1) if word in text), None) for text in said]
        if any(ordinals):
            return next((letter for letter, n in zip(choices, ordinals, strict=True) if n == number), None)
    letters = list(choices)
    return letters[number - 1] if 1 <= number <= len(letters) else None


def _choice(question: str, finding: str, seed: random.Random) -> str:
    offered = options(question) or dict.fromkeys(LETTERS[:4], "")
    letter = favoured(finding, offered)
    if letter is None:
        return f"Nothing here decides it; this is a guess.\nAnswer: ({seed.choice(list(offered))})"
    return f"The finding speaks for ({letter}).\nAnswer: ({letter})"


def _verdict(finding: str, seed: random.Random) -> str:
    """Yes or no where a finding says so by itself ("no depth model" does not)."""
    said = _VERDICT.search(finding)
    return said.group(1).lower() if said else seed.choice(("yes", "no"))


def _integer(question: str, finding: str, seed: random.Random) -> str:
    match = _COUNTED.search(finding) or _COUNT.search(finding)
    return f"Answer: {next(filter(None, match.groups())) if match else seed.randint(1, 6)}"


def _order(question: str, finding: str, seed: random.Random) -> str:
    offered = list(options(question)) or list(LETTERS[:4])
    for match in _SEQUENCE.findall(finding):
        letters = re.findall(r"[A-H]", match)
        if sorted(letters) == sorted(offered):
            return f"Answer: {''.join(letters)}"
    return f"Answer: {''.join(seed.sample(offered, len(offered)))}"


def _scanpath(question: str, finding: str, seed: random.Random) -> str:
    """X and Y in 0..1, T in milliseconds; as many as the text asks for, else five."""
    found = [re.search(rf"\b{axis}\b[^=\n]{{0,50}}=\s*(\[[^\]\n]*\])", finding) for axis in "XYT"]
    if all(found):
        return "\n".join(f"{axis} = {match.group(1)}" for axis, match in zip("XYT", found, strict=True) if match)
    asked = re.search(r"\b(\d{1,2})\s+(?:fixations?|points?|values?)\b", question)
    count = max(1, int(asked.group(1))) if asked else 5
    x = [round(seed.gauss(0.5, 0.15) % 1.0, 3) for _ in range(count)]
    y = [round(seed.gauss(0.5, 0.15) % 1.0, 3) for _ in range(count)]
    t = [seed.randint(150, 350) for _ in range(count)]
    return f"X = {x}\nY = {y}\nT = {t}"


def _parts(question: str, finding: str, seed: random.Random) -> list[int]:
    """The parts that a finding names, else some of those that the question numbers."""
    if seen := _SEEN_PARTS.search(finding):
        return [int(number) for number in re.findall(r"\d+", seen.group(1))]
    numbers = [int(number) for number in dict.fromkeys(re.findall(r"\b([1-9]|1[0-6])\b", question))]
    return sorted(seed.sample(numbers or [1, 2, 3, 4], seed.randint(1, max(1, len(numbers) // 2))))


def _view_plan(question: str, finding: str, seed: random.Random) -> str:
    keys = [key for key in ("part", "keep", "shift") if re.search(rf"[\"']{key}[\"']", question)] or ["part"]
    plan: dict[str, object] = {}
    for key in keys:
        parts = _parts(question, finding, seed)
        as_list = re.search(rf"[\"']{key}[\"']\s*:\s*\[", question)
        plan[key] = parts if as_list else ", ".join(map(str, parts))
    if re.search(r"[\"']reason[\"']", question):
        plan["reason"] = "the finding names them" if _SEEN_PARTS.search(finding) else "a guess"
    return json.dumps(plan)


_WRITERS: Mapping[Kind, Callable[[str, str, random.Random], str]] = {
    Kind.CHOICE: _choice,
    Kind.YES_NO: lambda _, finding, seed: f"Answer: {_verdict(finding, seed)}",
    Kind.INTEGER: _integer,
    Kind.ORDER: _order,
    Kind.SCANPATH: _scanpath,
    Kind.VIEWS: lambda *asked: f"Answer: {', '.join(map(str, _parts(*asked)))}",
    Kind.CONTINUE: lambda _, finding, seed: _verdict(finding, seed),
    Kind.VIEW_PLAN: _view_plan,
}
