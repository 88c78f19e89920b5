"""The reason rule of `hybrid.answers.letters`: a letter and why, as in `Option A, because the dog is larger`.

Only letters determine the answer: the text of a choice inside of the reason, as in `B because no dog is there` if "no"
is a choice, does not name that choice.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from hybrid.answers._letter_claims import claim, declines
from hybrid.answers._letter_reply import NOUN, LetterReply, group, label
from hybrid.answers._letter_rules import REJECTED, SEPARATOR, announced_choice, only_letter
from hybrid.answers.base import bare

# Words before the letter that say nothing about it.
_BEFORE: Final = (
    r"(?i:(?:so|therefore|thus|hence|well|ok|okay|hmm|probably|(?:most )?likely|definitely|clearly|surely|certainly"
    r"|i'd say|i would say|i say|i think|i believe|i guess|the)\b[\s,:]{1,2}){0,3}"
)
_SURE: Final = r"(?i:,?\s(?:probably|(?:most )?likely|definitely|clearly|i (?:think|believe|guess|would say)|i'd say))?"
# A reason follows these words, with or without a comma. `B as well`, `B, as is C` give no reason.
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
# Words that begin an aside after a comma: `B, which shows the dog`.
_ASIDE: Final = r"which|whose|where(?!as)|for(?!\s(?:example|instance|one|now|me)\b)"
_FINITE: Final = (
    r"(?:is|are|was|were|has|have|had|does|do|did|can|could|would|will|might|may|must|should|cannot|seems?|appears?"
    r"|looks?|fits?|matches|wins?|isn't|doesn't|can't|wouldn't)"
)
# The letter is the subject of a sentence: `Option A, because of its colour, is unlikely`; `Point B as seen from here is
# closer`.
_SUBJECT: Final = re.compile(rf"(?i)[,)–—]\s(?:\w+ly\s|not\s|then\s)?{_FINITE}\b")
_LINKED: Final = re.compile(rf"(?i)\b(?:that|which|who|it|they|there|because|since|as|while|and|than)\b|{_FINITE}\b")
_SEEN: Final = re.compile(r"(?i)as\s\w+(?:ed|en|wn)\b")
# A full sentence after a dash, colon or bracket: `Option B - it is nearer`, `B (the dog is nearer)`.
_SENTENCE: Final = re.compile(
    rf"(?i)(?:it|its|this|that|they|their|these|those|there|the|he|she|both|all|no)\b[^.;!?\n]*?\b{_FINITE}\b"
)
_DENIED: Final = re.compile(
    r"(?i)\b(?:not|no|never|nothing|wrong|incorrect|false|too|unlikely|impossible|unclear|less|cannot|fails?|lacks?)\b"
    r"|n't\b"
)
_TURN: Final = re.compile(r"(?i)\b(?:but|however|though|although|yet|so|therefore|hence|thus|still|instead)\b,?\s")
_ANSWER: Final = re.compile(r"(?i)\b(?:answer|choice|option|choose|pick|select|conclusion)\b")


# An alternative that is rejected between the letter and its reason: `B, not A, because ...`
_CONTRASTED: Final = r",?\s(?i:(?:and\s)?(?:not|rather than|instead of|as opposed to|over|unlike)\s)"
_NO: Final = r"(?i:(?:(?:hm+|well|oh|nah)\b[,.\s]{1,2})?(?:no|nope|wrong|incorrect)\b)"
_YES: Final = r"(?i:(?:yes|yeah|yep|correct|right|exactly|indeed)\b)"
_ASKING: Final = r"(?i:(?:is it|(?:could|can|might|would) it be|what about|how about|maybe|perhaps)\s)?"
# Nouns that may name the subject of the question instead of an option: `Point A? Yes, because ...` as a reply to "Is A
# closer?".
_THING: Final = re.compile(r"(?i)\b(?:point|box|picture|image|figure)\s\w\s?\?")
_CAUSE: Final = re.compile(rf"(?i)\b(?:{_CLAUSE}|{_PHRASE})\b")


class _Patterns(NamedTuple):
    """Patterns for replies that give reasons.

    `start` is the first label with its reason, `other` another label with a reason, `last` an alternative added at the
    end (`..., or B`), `rejection` a rejected label, and `confirmed` a label that is asked about and confirmed
    (`A? Yes`).
    """

    start: re.Pattern[str]
    other: re.Pattern[str]
    last: re.Pattern[str]
    rejection: re.Pattern[str]
    confirmed: re.Pattern[str]


@lru_cache(maxsize=64)
def _reason_patterns(letters: str) -> _Patterns:
    """Compile the patterns of replies with these labels."""
    k = re.escape(letters)
    # A lone "I" means the speaker.
    lone = re.escape(letters.replace("I", "")) or "(?!)"
    noun = rf"{NOUN}(?i:\s(?:labell?ed|marked|called|named))?\s"
    letter = (
        rf"(?:(?:{noun})?[(\[]\s?([{k}])\s?[)\]]|{noun}[\"']?([{k}])[\"']?(?![\w'])|[\"']?([{lone}])[\"']?(?![\w']))"
    )
    cause = rf"(?i:(?P<phrase>{_PHRASE})|{_CLAUSE})(?!\w)|因为|因為|由于|なぜなら|왜냐하면"
    reason = rf"[,;:.]?\s?[–—-]{{0,2}}\s?\(?(?P<why>{cause})"
    aside = rf",\s(?P<aside>(?i:{_ASIDE})\b)"
    dash = r"(?:\s?(?P<dash>[–—-]|\(|,(?=\s))\s?|(?P<colon>:)\s)(?=[A-Za-z])"
    labelled = rf"(?:{NOUN}\s)?{label(letters)}"
    listing = rf"{labelled}(?:{SEPARATOR}{labelled})*"
    start = rf"\W*{_BEFORE}{letter}{_SURE}(?:{_CONTRASTED}{listing})?(?:{reason}|{aside}|{dash})"
    other = rf"{label(letters)}(?:[.,;]?\s?(?i:{_CLAUSE}|{_PHRASE})\b|\s?(?:[:–—-]\s|\((?!\w\))))"
    last = rf"(?:,\sor|\bor\s(?:maybe|perhaps|possibly|even|also))\b[^.\n]{{0,20}}?{label(letters)}"
    # A rejection ends before the next clause and names no further label.
    end = rf"(?:(?!{label(letters)})[^.?!;\n]){{0,80}}?(?:\s?[.,;:!–—-]+\s|\s(?=but\b))"
    rejection = (
        rf"\W*{_BEFORE}(?:{_ASKING}{labelled}\s?\?\s{_NO}|(?i:(?:it(?:'s| is) )?(?:not|neither)\s){listing}"
        rf"|(?P<wrong>{listing}\s?,?\s(?i:{REJECTED}))){end}(?i:(?:but|instead|rather|it(?:'s| is)|it must be)\b,?\s)?"
    )
    confirmed = rf"\W*{_BEFORE}{_ASKING}({labelled})\s?\?\s{_YES}[.,;:!–—\s-]*"
    return _Patterns(*map(re.compile, (start, other, last, rejection, confirmed)))


def reasoned_letter(reply: LetterReply) -> str | None:
    """Return the letter that a reply begins with, if a reason follows: `A because it is nearer`, `Choice A, since ...`.

    Other letters may be rejected before it: `Option A? No, option B because it is nearer`, `(A) is wrong. (B), as ...`.
    """
    reply, rejected, is_elliptic = _skip_rejected(reply)
    patterns = _reason_patterns(reply.letters)
    match = patterns.start.match(reply.text)
    if match is None or reply.sentences[0].endswith("?") or match.end() > len(reply.sentences[0]) + 1:
        return None
    name, tail = group(match), reply.text[match.end() :]
    first = re.split(r"[.;!?\n]", tail, maxsplit=1)[0]
    if name in rejected or (is_elliptic and _DENIED.search(first)):
        return None
    if _is_subject(reply, match, first) or patterns.last.search(tail):
        return None
    if {group(candidate) for candidate in patterns.other.finditer(tail)} - {name}:
        return None
    if (match["dash"] or match["colon"]) and not _explains(reply, match, tail):
        return None
    return name if not _claimed_later(reply, name, tail) else None


def _skip_rejected(reply: LetterReply) -> tuple[LetterReply, frozenset[str], bool]:
    """Cut the labels that a reply rejects at its start; return the rest and these labels.

    `A? Yes, ...` becomes `A, because ...`. The third value tells whether the same verb may reject the next label, as in
    `A is wrong, B because it is too dark`.
    """
    patterns, text, rejected, is_elliptic = _reason_patterns(reply.letters), reply.text, set[str](), False
    # If "yes" or "no" is a choice, these words answer a question about a point or box.
    if _THING.search(text) and {"yes", "no"} & {form for form, _ in reply.forms}:
        return reply, frozenset(), False
    while (match := patterns.rejection.match(text)) is not None:
        is_elliptic = match["wrong"] is not None and match[0].rstrip().endswith(",")
        # The reason for B may also be a reason against it: `A is wrong because it is dark, B because it is blurred`
        if is_elliptic and _CAUSE.search(match[0]):
            return reply, frozenset(), False
        rejected |= {group(candidate) for candidate in re.finditer(label(reply.letters), match[0])}
        text = text[match.end() :]
    confirmed = patterns.confirmed.match(text)
    if confirmed is not None and (explanation := text[confirmed.end() :]):
        text = (
            f"{confirmed[1]}, {explanation}" if _CAUSE.match(explanation) else f"{confirmed[1]}, because {explanation}"
        )
    return replace(reply, text=text), frozenset(rejected), is_elliptic


def _is_subject(reply: LetterReply, match: re.Match[str], first: str) -> bool:
    """Return whether the letter is the subject of a sentence and is followed by an aside or a phrase."""
    if _SUBJECT.search(first):
        return True
    if not match["phrase"] and not _SEEN.match(match.string, match.start("why")):
        return False
    verb = _LINKED.search(first)
    if verb is None or re.fullmatch(f"(?i:{_FINITE})", verb[0]) is None:
        return False
    # In `B, because of the two points A is farther`, the verb has its own subject.
    return re.search(rf"{label(reply.letters)}\s$", first[: verb.start()]) is None


def _explains(reply: LetterReply, match: re.Match[str], tail: str) -> bool:
    """Return whether the text after a dash, bracket or colon is a reason; a letter with a colon heads an analysis."""
    clause = re.split(r"[.;!?\n]", tail, maxsplit=1)[0]
    headed = match["colon"] is not None and match[2] is None
    if match["dash"] == ",":
        # After a comma, the next item of a list or the text of another choice may follow.
        others = {dict(reply.forms).get(bare(clause)), *reply.by_letter.find_labels(tail)}
        if others - {None, group(match)}:
            return False
    names_another = any(reply.by_letter.find_labels(sentence[:12]) - {group(match)} for sentence in reply.sentences[1:])
    return (
        not (headed or names_another or _DENIED.search(clause) or declines(reply))
        and _SENTENCE.match(clause) is not None
    )


def _claimed_later(reply: LetterReply, name: str, tail: str) -> bool:
    """Return whether a later clause or sentence claims another letter: `A as it is near. But B is better`."""
    letters = reply.by_letter
    first, *later = re.split(r"(?<=[.;!?])\s|\n", tail)
    pieces = [*_TURN.split(first)[1:], *(piece for sentence in later for piece in _TURN.split(sentence))]
    announced = [announced_choice(replace(reply, text=piece)) for piece in pieces if _ANSWER.search(piece)]
    announced += [only_letter(replace(reply, text=piece)) for piece in pieces if piece]
    claimed = [claim(letters, piece) for piece in pieces if piece]
    return any(other not in (None, name) for other in (*announced, *claimed))
