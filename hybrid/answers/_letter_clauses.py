"""The clause rules of `hybrid.answers.letters`, for short replies that contrast the choices.

They run if no explicit rule decides; each takes a reply and returns a label or None.
"""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Final

from hybrid.answers._letter_claims import CONCLUSION, SO, claim
from hybrid.answers._letter_reply import NOUN, LetterReply, group, label
from hybrid.answers._letter_rules import Rules, only_letter
from hybrid.answers.base import bare

# Maximum number of characters of a reply for these rules: in a longer reply, the meaning of a clause depends on the
# clauses around it.
TERSE: Final = 200

_FOR: Final = r"(?:yes|true|correct|right|fits|✓|✔|✅)"
_AGAINST: Final = r"(?:no|false|incorrect|wrong|✗|✘|❌)"
_VERDICT_WORDS: Final = frozenset({"yes", "no", "true", "false", "correct", "incorrect", "right", "wrong"})


def verdicts(reply: LetterReply) -> str | None:
    """Return the one option with a good verdict, if all other verdicts are bad, as in `C: yes. D: no.`."""
    verdict = rf"(?i:({_FOR})|({_AGAINST})|\w+)(?=\s?(?:[.,;!\n]|and\b|$)|(?<=[✓✔✅✗✘❌]))"
    pattern = rf"{label(reply.letters)}(?:\s?[:=–—-]\s?|\sis\s|(?<=[)\]])\s){verdict}"
    matches = list(re.finditer(pattern, reply.text))
    # If "no" is a choice, `A: no` may state the text of A instead of a verdict; `(A) wrong, (B) right` states verdicts.
    if {form for form, _ in reply.forms} & {(m[3] or m[4] or "").casefold() for m in matches}:
        return None
    stated = [(m[1] or m[2], m[3] is not None, m[4] is not None) for m in matches]
    good = {name for name, yes, _ in stated if yes}
    other = {name for name, yes, _ in stated if not yes}
    turned_down = other and all(no for _, yes, no in stated if not yes)
    return good.pop() if len(good) == 1 and turned_down and not good & other else None


_CLAUSES: Final = re.compile(
    r"[,;:.!?。、—–\n]+\s*|\s[-→]\s|\s=>\s|\s\((?=not|rather than|instead of)"
    r"|\s(?:->|–>|→)\s|\s(?=(?:(?:which|that) )?leaves\b)"
    r"|\s(?=(?:but|sondern|sino|so|leaving|instead of|rather than|and not)\b)"
    # Split at the "and" before a positive verdict: `(A) is wrong and (B) is right`
    r"|\sand\s(?=(?:[a-z]+\s)?[(\[]?[A-Z][)\]]?\s(?:is|must be)\s(?:right|correct|true|it|the|best)\b)"
)
# The commas of a list belong to it: `A, B and D are out`.
_LISTED: Final = (
    r"(?:[(\[]?[A-Z][)\]]?,\s)+[(\[]?[A-Z][)\]]?,?\s(?:(?:and|or|nor)\s|(?=(?:are|were|do|don't|fail|can|cannot)\b))"
)
_DENIES: Final = re.compile(
    r"(?i)\b(?:not|no|neither|nor|never|cannot|wrong|incorrect|false|impossible|implausible|invalid"
    r"|out(?! of)|second (?:answer|choice)"
    r"|exclu(?:ded?|ding)|reject(?:ed)?|eliminat(?:ed?|ing)|discard(?:ed|ing)?|dismiss(?:ed|ing)?"
    r"|unlikely|rul(?:e|ed|ing) out|fails?|rather than|instead of"
    r"|nicht|weder|kein|falsche|mauvaise|неправильный|не)\b|n't\b|不是|错误"
)
# Rejected labels under a heading: `Rejected: A, B`, `"wrong option": "A"`
_HEADED: Final = re.compile(
    r"(?i)\b(?:not (?:an?|the) \w+|wrong|incorrect|second (?:answer|choice)|exclu|reject|eliminat|unlikely|ruled out"
    r"|неправильный|错误)[^.;:?\n]{0,30}:[^.;:?\n]*"
)
_OFFERS: Final = re.compile(
    r"(?i)(?:so\s)?(?:between|(?:out )?of|options?|choices|comparing|given|which|whether|is it)\b|.*\b(?:vs|versus)\b"
    r"|(?:either\s)?\W?[A-Z]\W?\sor\s\W?[A-Z]\W*$"
)
# Words for other choices in a denial: `The second image fits, the third does not.`
_OTHERS: Final = re.compile(r"(?i)\bthe (?:first|second|third|fourth|fifth|sixth|others?|rest)\b")
_DOUBTS: Final = re.compile(
    r"(?i)\b(?:maybe|perhaps|might|could|may|either|unclear|unsure|torn|depends?|can't|cannot|hard|both|neither|or|if"
    r"|all|everything|anything|any)\b|%"
)
# `though A is possible`, `D second`: asides before or after the choice.
_BESIDE: Final = re.compile(
    r"(?i)^(?:but|though|although|while|even though|and)\s.*\b(?:is|could be|may be|might be|seems|comes)\s"
    r"(?:also\s|still\s)?(?:possible|plausible|close|a possibility|second)\b|\b(?:second|third|runner-up)[.!]?$"
    r"|\bsecond (?:best|choice|place)\b|\(second\)"
)
_BUT: Final = re.compile(r"(?i)^(?:but|though|although|and)\s")
_FILLER: Final = (
    r"(?:(?:is|it's) (?:right|correct|true|it|the one)|which leaves|that leaves|leaves|"
    r"but|so|then|first|best|rather|instead|it's|it is|it must be|must be|is|it|does|only|simply|just|the|answer"
    r"|option|choice|leaving|remains|i'd|i'll|i|would|see|think|believe|say|guess|pick|choose|go with|probably|most"
    r"|likely|definitely|clearly|sondern|sino|es|是|therefore|thus|hence)"
)


def remaining(reply: LetterReply) -> str | None:  # noqa: C901, PLR0912 - one pass over the clauses
    """Return the one choice that a clause gives while others are denied or only offered: `Not A; B`, `A or B? B`.

    A clause gives a choice if it contains nothing else, or if it claims the choice and another clause denies or offers
    others.
    """
    if len(reply.text) > TERSE or len(re.findall(r"\w+", reply.text)) < 2:
        return None
    # If "no" is a choice, a clause that gives this choice looks like a denial, so only letters count as choices.
    if any(_DENIES.search(form) for form, _ in reply.forms):
        if _with_own_text(reply):
            return None
        reply = reply.by_letter
    picks, against, asked_of, claimed = set[str](), set[str](), set[str](), set[str | None]()
    has_offer = False
    for preceding, clause in pairwise(["", *_clauses(reply.text.replace("_", " "))]):
        letters = reply.find_labels(clause)
        is_question = clause.endswith("?")
        if letters and _BESIDE.search(clause):
            has_offer = True
        elif _DENIES.search(clause):
            if picks and not letters and not _OTHERS.search(clause):
                return None
            # A denial without a label rejects the label that was asked about: `A? No: B.`
            against |= letters or asked_of
        elif len(letters) > 1 and (is_question or _OFFERS.match(clause)):
            has_offer = True
        elif is_question and _bare(reply, clause):
            asked_of |= letters
        elif _bare(reply, clause):
            picks |= letters
        elif letters:
            # If a clause names a choice without claiming it, `claim` returns None. This counts as another claim, so the
            # reply stays open.
            claimed.add(claim(reply, _BUT.sub("", clause)))
        # A "yes" selects the option that was asked about: `A? No. B? Yes.` If that option was rejected before, the
        # "yes" contradicts the rejection: `Not A. B. A? Yes.`
        elif asked_of and re.fullmatch(_FOR, bare(clause)):
            picks |= reply.find_labels(preceding) if preceding.endswith("?") else asked_of - against
        elif picks or _DOUBTS.search(clause):
            return None
    positive = picks | claimed
    # `A? B.` leaves A open.
    settled = (picks or against or has_offer) and not positive & against and asked_of <= positive | against
    return next(iter(positive)) if len(positive) == 1 and settled else None


def _with_own_text(reply: LetterReply) -> bool:
    """Return whether a letter is followed by the text of its own choice, as in a list of the options: `(A) no`."""
    labels = re.finditer(label(reply.letters), reply.text)
    starts = ((group(match), reply.choice_at_start(reply.text[match.end() :].lstrip(" .:)-"))) for match in labels)
    return any(start is not None and start[0] == name for name, start in starts)


def _clauses(text: str) -> list[str]:
    """Split a text into clauses, each with its final punctuation; a list such as `A, B and D` stays in one clause."""
    flat_text = re.sub(_LISTED, lambda match: match[0].replace(",", " and"), text)
    flat_text = _HEADED.sub(lambda match: re.sub("[,:]", " ", match[0]), flat_text)
    marks = [0, *(match.end() for match in _CLAUSES.finditer(flat_text)), len(flat_text)]
    return [flat_text[start:end].strip() for start, end in pairwise(marks)]


def _bare(reply: LetterReply, clause: str) -> bool:
    """Return whether a clause that names one choice contains nothing else."""
    rest = re.sub(rf"(?:{NOUN}\s)?{label(reply.letters)}", " ", clause)
    texts = set()
    for form, name in reply.forms:
        rest, count = re.subn(rf"(?i)(?<!\w){re.escape(form)}(?!\w)", " ", rest)
        texts |= {name} if count else set()
    # Choice texts that are too short to count in prose count here: `red/green`.
    return len(texts) < 2 and not bare(re.sub(rf"(?i)(?<!\w){_FILLER}(?!\w)", " ", rest))


_STATED: Final = re.compile(
    r"(?i)(?P<of>(?:the|this|that|these|those|it|its|his|her|their)\b(?:\s[\w'-]+){0,8}?)"
    r"\s(?:is|are|looks?|seems?|appears?)(?:\sto\sbe)?\s(?P<choice>[^,;:?\n]+)(?:,\s(?:and\s)?not\s[^.?\n]+)?[.!]?"
)


def stated_choice(reply: LetterReply) -> str | None:
    """Return the choice that a reply of one sentence identifies with a thing, as in `The color is blue.`."""
    match = _STATED.fullmatch(reply.text) if len(reply.text) <= TERSE else None
    if match is None or _DENIES.search(match["of"]) or _DOUBTS.search(match["of"]):
        return None
    # `That is right` agrees with an earlier statement.
    if bare(match["choice"]) in _VERDICT_WORDS and match["of"].casefold() in ("that", "this"):
        return None
    start = reply.choice_at_start(match["choice"])
    return start[0] if start and not bare(match["choice"][start[1] :]) else None


def denied_comparison(reply: LetterReply) -> str | None:
    """Return the opposite of a denied comparison: for `A is not closer than B`, the offered choice `B is closer`."""
    compared = r"(.{1,60}?)\s(is|are|was|were)(?:\snot|n't)\s(.{1,40}?)\sthan\s(.{1,60}?)[.!]?"
    match = re.fullmatch(compared, reply.text.casefold())
    forms = dict(reply.forms)
    if match is None or len(reply.offered) != 2:
        return None
    denied, other = (forms.get(f"{bare(name)} {match[2]} {match[3]}") for name in (match[1], match[4]))
    return other if denied and denied != other else None


def concluding_letter(reply: LetterReply) -> str | None:
    """Return the letter with which the reply concludes, even if it names others before: `The dog is larger, so A.`."""
    *earlier, clause = SO.split(reply.sentences[-1])
    conclusion = CONCLUSION.match(clause)
    if not (earlier or conclusion) or clause.endswith("?"):
        return None
    return only_letter(replace(reply, text=clause[conclusion.end() if conclusion else 0 :]))


CLAUSE_RULES: Final[Rules] = (denied_comparison, verdicts, remaining, concluding_letter, stated_choice)
