"""The explicit rules of `hybrid.answers.letters`, for marked answers; each takes a reply and gives a label or None.

An explicit rule may give a label that was not offered: the reply then chose something that does not exist, and the
caller returns None.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import zip_longest
from typing import Final

from hybrid.answers._letter_reply import NOUN, LetterReply, group, label
from hybrid.answers.base import CUE, bare, is_asked

Rule = Callable[[LetterReply], str | None]
Rules = tuple[Rule, ...]

# Longest full reply, or text after an option letter, that counts as short.
SHORT_REPLY: Final = 60
SHORT_OPTION: Final = 40
# Distance after a label within which alternatives are searched, and maximum length of a listed option's text.
LOOK_AHEAD: Final = 400
LIST_GAP: Final = 120
_SHARE: Final = r"[0-9]{1,3}(?:\.[0-9]{1,6})?\s?%"


_CROSS: Final = re.compile(r"[✗✘❌✖]")


def only_letter(reply: LetterReply) -> str | None:
    """Return the letter if the reply is nothing else: `B`, `(b)`, `A.`, `[C]`, `Point D`, `Option (A)`."""
    if len(reply.text) > SHORT_REPLY or _CROSS.search(reply.text):
        return None
    labels = re.escape(reply.letters)
    prefix = rf"(?:(?i:the\s)?{NOUN}(?:\s(?i:labell?ed|marked|called|named|with label))?(?:\W+|(?<=[^\x00-\x7f])))?"
    hedge = r"(?i:(?:(?:most )?(?:probably|likely))\W+)?"
    confidence = rf"(?:\W+{_SHARE}(?:\s(?i:sure|confident|certain|confidence|likely))?)?"
    match = re.fullmatch(rf"\W*{hedge}{prefix}([{labels}{labels.lower()}]){confidence}\W*", reply.text)
    return None if match is None else match[1].upper()


_LIKELY: Final = re.compile(
    r"(?i)\b(?:P|Pr|prob\w*|likel\w*|confiden\w*|chances?|odds|sure|certain\w*|belie\w+|answer|guess|votes?|I)\b"
)


def largest_share(reply: LetterReply) -> str | None:
    """Return the choice with the largest share if each named choice has one: `A: 20%, B: 80%`, `P(A)=0.2, P(B)=0.8`."""
    shares: dict[str, float] = {}
    name, end = rf"[(\[]?\b([{re.escape(reply.letters)}])\b[)\]]?", 0
    # A bare 0.8 may be a score or a depth, so a share without a percent sign needs a word for probability.
    likely = rf"\b(?:P|Pr|prob(?:ability)?)(?:\sof)?\s?{name}\s?[=:≈~]\s?([01]?\.[0-9]{{1,6}}|[01])"
    # `A has 30% opacity` is not a share of the choices.
    share_first = (
        rf"{name}(?:\s(?:is|has|at|with|about))?[\s:=≈~(|–-]{{0,4}}({_SHARE})(?!\s(?!and\b|likely|chance|sure)[a-z])"
    )
    share_last = rf"({_SHARE})\s(?:(?:chance|likely)\s)?(?:(?:on|for|to|that it is|of)\s)?{name}"
    for match in re.finditer(rf"{likely}|{share_first}|{share_last}", reply.text):
        name, share = sorted(filter(None, match.groups()), key=str.isalpha, reverse=True)
        if name in shares or reply.is_choice(name, share):
            return None
        shares[name], end = float(share.rstrip(" %")) / (100 if "%" in share else 1), match.end()
    ranked = sorted(shares, key=lambda name: -shares[name])
    # A heading may give the shares another meaning: `Brightness: A 40%, B 60%`
    if re.match(r"\W*[^\W\d]{2,}", reply.text) and not _LIKELY.search(reply.text):
        return None
    # The shares must sum to one; a label after them is the answer itself.
    if len(ranked) < 2 or not 0.9 < sum(shares.values()) < 1.05 or reply.find_labels(reply.text[end:]):
        return None
    return ranked[0] if shares[ranked[0]] > shares[ranked[1]] else None


_TICK: Final = re.compile(
    r"(?i)[✅✓✔☑☒]|\[x\]|(?:←|<--?|⬅)(?!\s?(?:not|no|wrong|incorrect|false|too)\b)|\((?:correct|the answer|answer)\)"
)


def ticked(reply: LetterReply) -> str | None:
    """Return the only ticked option of a list with one option per line: `- A: far` and then `- B: near ✅`."""
    with_tick = [line for line in reply.lines if _TICK.search(line)]
    if len(with_tick) != 1 or len(reply.lines) < 2 or _CROSS.search(with_tick[0]):
        return None
    # A ticked line without an option does not count (`✅ edges of A checked`), nor does a tick if prose after the list
    # names a label.
    option = _TICK.sub("", with_tick[0]).strip("-•|[] ")
    later_lines = reply.lines[reply.lines.index(with_tick[0]) + 1 :]
    if not _labelled(reply, option) or any(
        reply.find_labels(line) and not _labelled(reply, line) for line in later_lines
    ):
        return None
    letters = reply.find_labels(option)
    return next(iter(letters)) if len(letters) == 1 else None


def _labelled(reply: LetterReply, line: str) -> bool:
    """Return whether a line of a list begins with a label or a choice."""
    bare_line = re.sub(r"\A[^\w(]+|\A[0-9]+[.)]\s", "", line)
    begins = re.match(rf"(?:{NOUN}\s)?{label(reply.letters)}", bare_line)
    return begins is not None or bool(reply.choice_at_start(bare_line))


def only_choice(reply: LetterReply) -> str | None:
    """Return the choice whose text is the whole reply: `left`, `Yes.`, `the third image`, `左`."""
    return dict(reply.forms).get(bare(reply.text))


_TURNED_DOWN: Final = re.compile(
    r"(?i)(?:is |was )?(?:no|not|false|incorrect|wrong|✗|✘|❌)(?=\s*(?:[.,;!]|$))|(?:is|was)(?:n't| not)\b"
)
# These words reject an option only if the text after them names another letter: `(A) cannot be right, so (B)`, because
# `(D) cannot be determined` may be the text of an unknown option.
REJECTED: Final = (
    r"(?:(?:both|all|each)\s)?"
    r"(?:(?:(?:is|was|are|were|(?:can|could|should|must|may)(?: safely)? be|(?:has|have) been|gets?)\s"
    r"(?:\w+ly\s|just\s|both\s|all\s)?)?"
    r"(?:wrong|incorrect|false|impossible|implausible|unlikely|invalid|out(?!\sof\b)|(?:rul|cross)ed out|excluded"
    r"|eliminated|rejected|discarded|dismissed)\b"
    r"|(?:is|was|are|were|do|does|did|can|could|would|will)(?:n't|\snot)\b|cannot\b|fails?\b)"
)
_REJECTED: Final = re.compile(f"(?i){REJECTED}")
# Separators of the labels of a list: `(A), (B) and (C) are wrong`.
SEPARATOR: Final = r"(?:\s?[,/&]\s?(?:(?:and|or|nor)\s)?|\s(?:and|or|nor|as well as)\s)"


# A label that the reply questions: `(A)? No`, `(A) 3? Let me count: ...`
_ASKED: Final = re.compile(
    r"(?i)(?P<what>[^.,;!?\n]{0,40})\?\s*(?:$|(?:no|not|nope|hmm|wait|wrong|incorrect|let me|actually|i don't)\b)"
)


def _turned_down(reply: LetterReply, name: str, rest: str) -> bool:
    """Return whether the text after a label rejects it (`(A) is incorrect`, `D: no`) and is not the text of its choice.

    A text also rejects the label if it questions it, `(A)? No`, or gives its share next to those of others, `A: 50%, B:
    50%`.
    """
    shared = re.match(rf"\W*{_SHARE}[\s\w]{{0,20}}[,;|]", rest) and reply.find_labels(rest) - {name}
    # The label is questioned, and another label follows: `(C)? Yes, but the answer is (D)`
    if rest.startswith("?") and not reply.asks(name) and reply.find_labels(rest) - {name}:
        return True
    question_match = _ASKED.match(rest)
    if shared or (question_match is not None and (not question_match["what"].strip() or not reply.asks(name))):
        return True
    # A predicate after a list of labels applies to each of them: `(A), (B) and (C) are wrong`
    letter_list = re.match(rf"(?:{SEPARATOR}(?:{NOUN}\s)?{label(reply.letters)})*", rest)
    is_list = letter_list is not None and bool(letter_list[0])
    predicate = rest[letter_list.end() if letter_list else 0 :].lstrip(" ,")
    clause = re.split(r"[.,;!\n]", predicate, maxsplit=1)[0]
    if bare(clause) and not is_list and reply.is_choice(name, clause):
        return False
    rejected = _REJECTED.match(predicate)
    if rejected and reply.by_letter.find_labels(predicate[rejected.end() :]) - {name}:
        return bare(clause) not in reply.text_of(name)
    return _TURNED_DOWN.match(predicate) is not None


def _option_of(reply: LetterReply, line: str) -> str | None:
    """Return the letter of a line that is an option, not an analysis: `(B) no`, `C. Point C`, `Point C`, `B`."""
    k = re.escape(reply.letters)
    marked = rf"(?:{NOUN}\s)?(?:[(\[]([{k}])[)\]][.:]?|([{k}])[).:](?!\w))(?P<rest>.*)"
    match = re.fullmatch(rf"[-•>\s]*(?:{marked}|(?:{NOUN}\s)?[\"']?([{k}])[\"']?\.?)", line)
    if match is None:
        # A bare letter counts only with the text of its own choice: `B (no)`, `B - no`, `B, no`
        option_line = re.fullmatch(rf"[-•>\s]*(?:{NOUN}\s)?[\"']?([{k}])[\"']?(?P<own>(?:,?\s|\s?[–—=(\[]).+)", line)
        return option_line[1] if option_line and reply.is_choice(option_line[1], bare(option_line["own"])) else None
    rest = (match["rest"] or "").strip()
    if _turned_down(reply, group(match), match["rest"] or ""):
        return None
    # A second option next to the first leaves both open: `(A) or (B)`, `(A) yes (B) no`.
    if offers_another(reply, group(match), rest):
        return None
    rest = rest.lstrip(", ")
    start = reply.choice_at_start(rest)
    ends = start is not None and rest[start[1] : start[1] + 1] in ("", ".", ";", ":")
    return group(match) if len(rest) <= SHORT_OPTION or ends else None


def _single_options(reply: LetterReply) -> list[str | None]:
    """Return, per line, the letter of its only option; options on consecutive lines are a list and decide nothing."""
    options = [_option_of(reply, line) for line in reply.lines]
    # A list may begin in the line that announces it: `The answer is: (A) yes` and then `(B) no`.
    heads = [_option_of(reply, line.rpartition(": ")[2]) for line in reply.lines]
    padded = [None, *(option or head for option, head in zip(options, heads, strict=True)), None]
    return [
        option if option is not None and previous in (None, option) and after in (None, option) else None
        for previous, option, after in zip(padded, options, padded[2:], strict=False)
    ]


def closing_option(reply: LetterReply) -> str | None:
    """Return the option in the last line: `The correct answer is:` and then `(B) right`."""
    return _single_options(reply)[-1]


_OR: Final = r"(?:or|oder|ou)"
_AND: Final = r"(?:and|und|et|y|o|u|e)"
_IS: Final = r"(?:is|was|are|ist|es|est|é|è)"
_WRONG: Final = r"(?:wrong|incorrect|false|not|nicht|falsch|no|incorrecta|falsa|pas|fausse|incorrecte)"


@lru_cache(maxsize=64)
def _announcement(letters: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile patterns that announce a letter and that offer another (`A or B`, `(A), (B)`, not `A and B is wrong`)."""
    token = label(letters)
    adverb = r"(?:(?:most\s)?(?:likely|probably|clearly|therefore|thus|indeed|simply|only|the|now)\s)?"
    between = rf"(?:[^.\n]{{0,60}}?\b{_OR}\b|\s?(?:[,/、]|{_AND}\b|или|还是|或者?|和|か|または|또는|이나))"
    other = rf"{between}\s?(?:{NOUN}\s?)?{token}(?!\s{_IS}\b)"
    announced = rf"(?i:{CUE})[\s:=\"'\-]{{0,6}}{adverb}(?:{NOUN}\s)?[\"']?{token}(?!\s{_IS}\s{_WRONG}\b)"
    return re.compile(announced), re.compile(other)


# A list of options has bare texts: a statement about an option is not a list.
_SAYS: Final = re.compile(
    r"(?i)\b(?:is|are|was|were|be|has|have|does|do|can|would|seems?|appears?|shows?|because|since|as|while|whereas|not|but"
    r"|than|or|and|if|so)\b|[.!?]\s+[a-z]"
)


@lru_cache(maxsize=64)
def _mark(letter: str) -> re.Pattern[str]:
    """Return a pattern for the mark of one option in a list: `(B)`, `[B]`, `B.`, `B)`, `B:`."""
    k = re.escape(letter)
    return re.compile(rf"(?<![A-Za-z0-9_'])(?:[(\[]{k}[)\]]|{k}[).:](?!\w))")


def _lists_options(reply: LetterReply, name: str, rest: str) -> bool:
    """Return whether a label and the text after it begin a list of options: `(A)`, and then ` yes (B) no`.

    The first label is followed by all others in order with their texts, or by at least two with bare words.
    """
    if name != reply.letters[0]:
        return False
    position, are_choices, count = 0, True, 1
    for letter, following in zip_longest(reply.letters[:-1], reply.letters[1:]):
        mark = _mark(following).search(rest, position, position + LIST_GAP) if following else None
        text = rest[position : mark.start()] if mark else re.split(r"\n|[.!?]\s", rest[position:], maxsplit=1)[0]
        if mark is not None and _mark(letter).search(text):
            return False
        is_choice = reply.is_choice(letter, text)
        if not is_choice and (len(text) > LIST_GAP or _SAYS.search(text)):
            return False
        are_choices &= is_choice
        if mark is None:
            break
        count, position = count + 1, mark.end()
    return count >= 3 or (are_choices and count == len(reply.offered) > 1)


def offers_another(reply: LetterReply, name: str, rest: str) -> bool:
    """Return whether the text after label `name` offers another: ` or B`, `, (B)`, ` yes (B) no`; not `, Point A`."""
    other, position = _announcement(reply.letters)[1], 0
    while (match := other.match(rest, position)) is not None:
        if group(match) != name:
            return True
        position = match.end()
    return _lists_options(reply, name, rest)


# Announcements that do not count: `At first I would guess A`, `If it were brighter I'd pick A`; `The answer is A? No`
_AT_FIRST: Final = re.compile(r"(?i)(?:at first|initially|if (?!i )[^.,;:?!\n]{1,40} (?:were|was|had))\b")
_ASKED_BACK: Final = re.compile(r"(?i)\W{0,2}\?\s(?:no|nope|not|hmm|wait|nein|non|não)\b")


def announcements(reply: LetterReply) -> tuple[tuple[str, bool], ...]:
    """Return the labels announced as the answer, in order, and whether each leaves the choice open."""
    announcement, other = _announcement(reply.letters)
    results: list[tuple[str, bool]] = []
    alternative = 0
    for match in announcement.finditer(reply.text):
        clause = re.split(r"[.!?;\n]|\bbut\b", reply.text[max(0, match.start() - LIST_GAP) : match.start()])[-1]
        if _AT_FIRST.match(clause.strip()) or _ASKED_BACK.match(reply.text, match.end()) or is_asked(match):
            continue
        left_open = offers_another(reply, group(match), reply.text[match.end() : match.end() + LOOK_AHEAD])
        # In `選択肢Aか選択肢B`, the second label is an alternative to the first.
        results.append((group(match), left_open or match.end() <= alternative))
        next_match = other.match(reply.text, match.end())
        alternative = next_match.end() if next_match and left_open else alternative
    return tuple(results)


def announced_letter(reply: LetterReply) -> str | None:
    """Return the last letter announced as the answer: `So the answer is B`, `Answer: (C)`, `答案是 B`."""
    names = [name for name, left_open in announcements(reply) if not left_open]
    return names[-1] if names else None


# Text between an announced choice and an alternative to it: `red or maybe green`, `red/green`
_SECOND: Final = re.compile(rf"[^.\n]{{0,60}}?\b{_OR}\s(?:(?:\w+ly|maybe|perhaps)\s)?|\s?/\s?")


def announced_choice(reply: LetterReply) -> str | None:
    """Return the last choice announced by its text as the answer: `the answer is the third image`, `Answer: no`."""
    for match in reversed(list(re.finditer(rf"(?i:{CUE})[\s:=\"'\-]{{0,6}}(?:either\s)?", reply.text))):
        piece = reply.text[match.end() : match.end() + LOOK_AHEAD]
        start = reply.choice_at_start(piece)
        if start is not None and not is_asked(match):
            second = _SECOND.match(piece, start[1])
            other = reply.choice_at_start(piece[second.end() :]) if second else None
            return start[0] if other is None or other[0] == start[0] else None
    return None


def opening_option(reply: LetterReply) -> str | None:
    """Return the option in the first line, which the rest explains: `(A) yes` and then prose."""
    return _single_options(reply)[0]


def lone_option(reply: LetterReply) -> str | None:
    """Return the option that has its own line in the prose, if no line gives another letter."""
    options = set(_single_options(reply)) - {None}
    return options.pop() if len(options) == 1 and options == _line_starts(reply) else None


def opening_choice(reply: LetterReply) -> str | None:
    """Return the choice whose text is the first clause of the reply: `No, the cat is ...`, `Yes. It ...`."""
    start = reply.choice_at_start(reply.text[:200])
    if start is None or not re.match(r"[.,;:!](?![0-9])|\n", reply.text[start[1] :]):
        return None
    # A letter is a letter even if another option has it as its text: `B, as it is nearer`.
    if reply.text[: start[1]] in set(reply.offered) - {start[0]}:
        return None
    # "Right" may only confirm something, and another choice follows: `Right. The camera moved left.`
    if start[0] == dict(reply.forms).get("right") and {
        name for form, name in reply.forms if re.search(rf"\b{re.escape(form)}\b", reply.text[start[1] :].casefold())
    } - {start[0]}:
        return None
    return start[0]


def _line_starts(reply: LetterReply) -> set[str]:
    """Return the letters with which lines of the reply start, as an option or as the heading of its analysis."""
    k = re.escape(reply.letters)
    start = re.compile(rf"[-•\s]*(?:{NOUN}\s)?(?:[(\[]([{k}])[)\]]|([{k}])(?:[).:](?=\s)|$))|{NOUN}\s([{k}])(?!\w)")
    return {group(m) for m in map(start.match, reply.lines) if m is not None}


def opening_letter(reply: LetterReply) -> str | None:
    """Return the marked letter at the start of the reply (`B. The ...`), if no line gives another letter."""
    k = re.escape(reply.letters)
    match = re.match(rf"[-•\s]*(?:[(\[]([{k}])[)\]]|([{k}])[).:](?=\s))", reply.text)
    rest = reply.text[match.end() : match.end() + LOOK_AHEAD] if match else ""
    if match is None or offers_another(reply, group(match), rest) or _turned_down(reply, group(match), rest):
        return None
    return group(match) if _line_starts(reply) == {group(match)} else None


# Rules for the whole reply, for its end or an announcement, and for its beginning. A letter with its reason has
# priority over an announced choice text, such as `it is red` in `B because it is red`.
_WHOLE: Final[Rules] = (only_letter, only_choice, largest_share, ticked)
_OPENING: Final[Rules] = (opening_option, lone_option, opening_choice, opening_letter)
STATED_RULES: Final[Rules] = (*_WHOLE, closing_option, announced_letter)
OTHER_RULES: Final[Rules] = (announced_choice, *_OPENING)
EXPLICIT_RULES: Final[Rules] = (*STATED_RULES, *OTHER_RULES)
