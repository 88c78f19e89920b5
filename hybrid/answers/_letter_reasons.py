"""The reason rule of `hybrid.answers.letters`: a letter and why, as in `Option A, because the dog is larger`.

Which letter is given is a matter of letters alone: a choice's text inside of the reason, `B because no dog is there`
where "no" is a choice, names nothing.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from hybrid.answers._letter_claims import claim, declines
from hybrid.answers._letter_reply import NOUN, LetterReply, group, label
from hybrid.answers._letter_rules import announced_choice

# What goes before the letter and says nothing of it.
_BEFORE: Final = (
    r"(?i:(?:so|therefore|thus|hence|well|ok|okay|hmm|probably|(?:most )?likely|definitely|clearly|surely|certainly"
    r"|i'd say|i would say|i say|i think|i believe|i guess|the)\b[\s,:]{1,2}){0,3}"
)
_SURE: Final = r"(?i:,?\s(?:probably|(?:most )?likely|definitely|clearly|i (?:think|believe|guess|would say)|i'd say))?"
# Behind these comes why, with or without a comma. `B as well`, `B, as is C` give no reason.
_CLAUSE: Final = (
    r"because|'?cause|cuz|since|as(?!\s(?:well|is|are|was|do|does|did|an? (?:choice|option|answer|candidate|whole))\b)"
    r"|given (?:that|how)|considering (?:that|how)|seeing (?:that|as|how)|in that|on the grounds|the reason being"
    r"|weil|denn|porque|ya que|puesto que|já que|parce que|puisque|perché|poiché|потому что|так как|поскольку"
)
_PHRASE: Final = (
    r"due to|owing to|thanks to|because of|given (?:its|the|their|both|what)|considering (?:its|the|their)"
    r"|for (?:its|the|their|being|having|both|two|several)|based on|judging (?:by|from)|by virtue of|on account of"
    r"|in (?:view|light) of|wegen|debido a|grâce à|à cause de|a causa di|por causa de|из-за"
)
# An aside needs its comma: `B, which shows the dog`.
_ASIDE: Final = r"which|whose|where(?!as)|for(?!\s(?:example|instance|one|now|me)\b)"
_FINITE: Final = (
    r"(?:is|are|was|were|has|have|had|does|do|did|can|could|would|will|might|may|must|should|cannot|seems?|appears?"
    r"|looks?|fits?|matches|wins?|isn't|doesn't|can't|wouldn't)"
)
# `Option A, because of its colour, is unlikely`; `Point B as seen from here is closer`: a sentence about a choice.
_SUBJECT: Final = re.compile(rf"(?i)[,)–—]\s(?:\w+ly\s|not\s|then\s)?{_FINITE}\b")
_LINKED: Final = re.compile(rf"(?i)\b(?:that|which|who|it|they|there|because|since|as|while|and|than)\b|{_FINITE}\b")
_SEEN: Final = re.compile(r"(?i)as\s\w+(?:ed|en|wn)\b")
# `Option B - it is nearer`, `B (the dog is nearer)`: a sentence about something behind a dash, colon or bracket.
_SENTENCE: Final = re.compile(
    rf"(?i)(?:it|its|this|that|they|their|these|those|there|the|he|she|both|all|no)\b[^.;!?\n]*?\b{_FINITE}\b"
)
_DENIED: Final = re.compile(
    r"(?i)\b(?:not|no|never|nothing|wrong|incorrect|false|too|unlikely|impossible|unclear|less|cannot|fails?|lacks?)\b"
    r"|n't\b"
)
_TURN: Final = re.compile(r"(?i)\b(?:but|however|though|although|yet|so|therefore|hence|thus|still|instead)\b,?\s")
_ANSWER: Final = re.compile(r"(?i)\b(?:answer|choice|option|choose|pick|select|conclusion)\b")


@lru_cache(maxsize=64)
def _reason_patterns(letters: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of a letter at the start with its reason, of another one with a reason, and of a last "or B"."""
    k = re.escape(letters)
    # A lone "I" is the speaker.
    lone = re.escape(letters.replace("I", "")) or "(?!)"
    noun = rf"{NOUN}(?i:\s(?:labell?ed|marked|called|named))?\s"
    letter = (
        rf"(?:(?:{noun})?[(\[]\s?([{k}])\s?[)\]]|{noun}[\"']?([{k}])[\"']?(?![\w'])|[\"']?([{lone}])[\"']?(?![\w']))"
    )
    cause = rf"(?i:(?P<phrase>{_PHRASE})|{_CLAUSE})(?!\w)|因为|因為|由于|なぜなら|왜냐하면"
    reason = rf"[,;:.]?\s?[–—-]{{0,2}}\s?\(?(?P<why>{cause})"
    aside = rf",\s(?P<aside>(?i:{_ASIDE})\b)"
    dash = r"(?:\s?(?P<dash>[–—-]|\()\s?|(?P<colon>:)\s)(?=[A-Za-z])"
    start = rf"\W*{_BEFORE}{letter}{_SURE}(?:{reason}|{aside}|{dash})"
    other = rf"{label(letters)}(?:[.,;]?\s?(?i:{_CLAUSE}|{_PHRASE})\b|\s?(?:[:–—-]\s|\((?!\w\))))"
    last = rf"(?:,\sor|\bor\s(?:maybe|perhaps|possibly|even|also))\b[^.\n]{{0,20}}?{label(letters)}"
    return re.compile(start), re.compile(other), re.compile(last)


def reasoned_letter(reply: LetterReply) -> str | None:
    """The reply begins with a letter and says why: `A because it is nearer`, `Choice A, since ...`, `B - it is red`."""
    start, other, last = _reason_patterns(reply.letters)
    match = start.match(reply.text)
    sentence = reply.sentences[0]
    if match is None or sentence.endswith("?") or match.end() > len(sentence) + 1:
        return None
    name, tail = group(match), reply.text[match.end() :]
    first = re.split(r"[.;!?\n]", tail, maxsplit=1)[0]
    if _is_subject(reply, match, first) or last.search(tail):
        return None
    if {group(candidate) for candidate in other.finditer(tail)} - {name}:
        return None
    if (match["dash"] or match["colon"]) and not _explains(reply, match, tail):
        return None
    return name if not _claimed_later(reply, name, tail) else None


def _is_subject(reply: LetterReply, match: re.Match[str], first: str) -> bool:
    """Whether the letter is the subject of a sentence, what follows it being an aside or a phrase."""
    if _SUBJECT.search(first):
        return True
    if not match["phrase"] and not _SEEN.match(match.string, match.start("why")):
        return False
    verb = _LINKED.search(first)
    if verb is None or re.fullmatch(f"(?i:{_FINITE})", verb[0]) is None:
        return False
    # `B, because of the two points A is farther`: the verb has a subject of its own.
    return re.search(rf"{label(reply.letters)}\s$", first[: verb.start()]) is None


def _explains(reply: LetterReply, match: re.Match[str], tail: str) -> bool:
    """Whether what stands behind a dash, bracket or colon is a reason; a lone letter with a colon heads an analysis."""
    clause = re.split(r"[.;!?\n]", tail, maxsplit=1)[0]
    headed = match["colon"] is not None and match[2] is None
    names_another = any(reply.by_letter.find_labels(sentence[:12]) - {group(match)} for sentence in reply.sentences[1:])
    return (
        not (headed or names_another or _DENIED.search(clause) or declines(reply))
        and _SENTENCE.match(clause) is not None
    )


def _claimed_later(reply: LetterReply, name: str, tail: str) -> bool:
    """Whether a turn or a later sentence claims another letter: `A as it is near. But B is better`."""
    letters = reply.by_letter
    first, *later = re.split(r"(?<=[.;!?])\s|\n", tail)
    pieces = [*_TURN.split(first)[1:], *(piece for sentence in later for piece in _TURN.split(sentence))]
    announced = [announced_choice(replace(reply, text=piece)) for piece in pieces if _ANSWER.search(piece)]
    claimed = [claim(letters, piece) for piece in pieces if piece]
    return any(other not in (None, name) for other in (*announced, *claimed))
