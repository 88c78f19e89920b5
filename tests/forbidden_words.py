"""Words that no text for a model may contain: they refer to a benchmark, its data, results on it, or how this project
is made.

Tests get it as the fixture `forbidden_words`.
"""

import re

from hybrid.plugins.registry import names

_NAMED = [r"[ _-]?".join(map(re.escape, re.split(r"[ _-]", name))) for name in names("hybrid.benchmarks")]
# Names of tasks are forbidden only as the data spells them: "relative depth" also describes what a tool measures.
_TASKS = ["Relative_Depth", "Object_Localization", "Art_Style", "IQ_Test", "BasicVisQA", "KnowVisQA", "BeyondVisQA"]
ABOUT_DATA = re.compile(
    rf"(?i)\b(?:{'|'.join([*_NAMED, *_TASKS])}|val|validation|(?:test|training) (?:set|split|items?|questions?)|"
    r"data ?sets?|benchmarks?|leaderboard|published)\b"
)
COUNTED = re.compile(
    r"(?i)\b\d+ of (?:the )?\d+\b|\b\d+/\d+\b|\d ?%|\b0\.\d+ (?:of|right)\b|\bright (?:in|on) \d|"
    r"\b(?:accuracy|measured|measurements?|reliability|evaluat\w+)\b|"
    r"(?<!at least )(?<!at most )(?<!exactly )\b\d+ (?:val |test )?items\b"
)
OURS = re.compile(
    r"(?i)\b(?:arbiter|trust files?|backends?|checkpoints?|weights?|random weights|mark finder|caches?|manifest|"
    r"rapidocr|hybrid|baselines?|solvers?|pytest|CPU|GPU)\b|\bbench/|(?<!\w)--[a-z]|@[0-9a-f]{8}"
)


def unfit(text: str, *, finding: bool = False) -> list[str]:
    """Return the forbidden words in a text. A tool output (`finding`) may contain counts of things in its own
    picture."""
    patterns = (ABOUT_DATA, OURS) if finding else (ABOUT_DATA, COUNTED, OURS)
    return [match[0] for pattern in patterns for match in pattern.finditer(text)]
