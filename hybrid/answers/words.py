"""Parse a reply to a question that asks for one or a few words, and compare it with the accepted answers.

Answers are compared as in VQA's evaluation (Antol et al., ICCV 2015; VQAEval.processPunctuation and
processDigitArticle in github.com/GT-Vision-Lab/VQA, PythonEvaluationTools): without case, punctuation and the articles
a, an, the. Unlike in VQA, NFKC is applied first, and there are no tables of contractions and number words.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from hybrid.answers.base import Parsed, answer_part, undecided

_CUE: Final = re.compile(r"(?i)(?:^|\n|[.!?]\s)(?:so,? |therefore,? )?(?:the |my )?(?:final )?answer(?: is|:)\s?:?\s?")
_APOSTROPHES: Final = str.maketrans("", "", "'’`´")
_ARTICLE: Final = re.compile(r"\b(?:a|an|the)\b")
_POINT_IN_NUMBER: Final = re.compile(r"(?<=[0-9])[.,](?=[0-9])")
_KEPT: Final = "\ue000"


def comparable(text: str) -> str:
    """Return a text in the form for comparison: NFKC, case folded, no punctuation, no articles, single blanks."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    # A point between digits is part of the number; a comma there only groups them.
    folded = _POINT_IN_NUMBER.sub(lambda mark: _KEPT if mark[0] == "." else "", folded)
    characters = "".join(
        char if char == _KEPT or unicodedata.category(char)[0] not in "PSZC" else " " for char in folded
    ).replace(_KEPT, ".")
    words = " ".join(_ARTICLE.sub(" ", characters).split())
    return words or " ".join(characters.split())


def same(answer: str, accepted: Iterable[str]) -> bool:
    """Return whether an answer is one of the accepted spellings."""
    read = comparable(answer)
    return bool(read) and any(read == comparable(answer) for answer in accepted)


def parse_text(text: str) -> Parsed[str]:
    """Read the answer in any text: the first line after the last `Answer:`, else the whole text; None if empty."""
    clean = answer_part(text)
    cues = list(_CUE.finditer(clean))
    if cues and (announcement := clean[cues[-1].end() :].strip().split("\n")[0].strip()):
        return Parsed(announcement.rstrip(" ."), "announced") if announcement.rstrip(" .") else undecided()
    return Parsed(clean, "text") if clean else undecided()
