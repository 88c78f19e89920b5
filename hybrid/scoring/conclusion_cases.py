"""The cases of a conclusion: when each sentence is said, and its words; the site prints this table.

`gain`, `specialists` and `content` read one paired difference each, b minus a. It is said to be one only where its 95 %
interval excludes 0 under both rules of what a question without a readable answer counts; the interval printed is the
one of the two that is nearest to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One thing that a conclusion may say: `id` begins with the sentence that it belongs to."""

    id: str
    condition: str
    words: str
    """A format string of the fields that `conclusion.py` fills in."""


FAILED = "{failed} of {n} questions failed, more than 1 % (--allow-failed concludes all the same)"

CASES: tuple[Case, ...] = (
    Case(
        "nothing.answered", "every question of every solver failed", "No question was answered: nothing is concluded."
    ),
    # The hybrid next to its model alone.
    Case("gain.more", "interval above 0", "{answers}: a gain of {size} ({interval})."),
    Case("gain.less", "interval below 0", "{answers}: a loss of {size} ({interval})."),
    Case(
        "gain.open",
        "interval holds or touches 0",
        "{answers}: no difference that {n} questions can show ({interval}{unit}).",
    ),
    Case("gain.few", "no interval, from so few questions", "{answers}: too few questions to tell a difference."),
    Case(
        "gain.silent", "one of the two answers nothing", "{answers}: nothing to compare, as {silent} answers nothing."
    ),
    Case("gain.failed", "more than 1 % failed", f"Whether tools bring a gain is not tested: {FAILED}."),
    Case(
        "gain.units",
        "the metric counts other units for each",
        "{answers}: not tested, as {metric} does not count the same units for both.",
    ),
    Case(
        "gain.apart",
        "the pair shares no question, or --pairs leaves it out",
        "{hybrid} and {other} are not compared: they share no question, or --pairs leaves them out.",
    ),
    Case(
        "gain.absent",
        "the model alone was not asked",
        "What tools bring is not known, as the model alone was not asked: add --solver mllm to the run.",
    ),
    Case(
        "gain.several",
        "several solvers with tools, or several models",
        "Next to its model alone, over {n} questions and adjusted (Holm) for {tests}: {parts}.",
    ),
    # The hybrid next to the specialists.
    Case("specialists.more", "interval above 0", "{answers}: with tools the model is ahead by {size} ({interval})."),
    Case("specialists.less", "interval below 0", "{answers}: with tools the model is behind by {size} ({interval})."),
    Case(
        "specialists.open",
        "interval holds or touches 0",
        "{answers}: no difference that {n} questions can show ({interval}{unit}).",
    ),
    Case("specialists.few", "no interval, from so few questions", "{answers}: too few questions to tell a difference."),
    Case("specialists.silent", "they answer nothing", "The specialists alone give no answer to these questions."),
    Case("specialists.failed", "more than 1 % failed", f"The specialists alone are not compared: {FAILED}."),
    Case(
        "specialists.units",
        "the metric counts other units for each",
        "{answers}: not tested, as {metric} does not count the same units for both.",
    ),
    Case(
        "specialists.apart",
        "the pair shares no question, or --pairs leaves it out",
        "{hybrid} and {other} are not compared: they share no question, or --pairs leaves them out.",
    ),
    Case("specialists.absent", "they were not asked", "The specialists alone were not asked."),
    Case(
        "specialists.several",
        "several solvers with tools, or several models",
        "Next to the specialists alone: {parts}.",
    ),
    # What of it the findings bring: the hybrid next to itself with blank tools.
    Case(
        "content.source",
        "a gain, and interval above 0",
        "{answers}: the gain comes from what the tools say ({size}, {interval}).",
    ),
    Case(
        "content.unshown",
        "a gain, and interval holds, touches or is below 0",
        "{answers}: it is not shown that the gain comes from what the tools say ({interval}{unit}).",
    ),
    Case(
        "content.more",
        "no gain, and interval above 0",
        "{answers}: what the tools say brings a gain of {size} over that ({interval}).",
    ),
    Case(
        "content.less",
        "no gain, and interval below 0",
        "{answers}: what the tools say brings a loss of {size} ({interval}).",
    ),
    Case(
        "content.open",
        "no gain, and interval holds or touches 0",
        "{answers}: no difference that {n} questions can show ({interval}{unit}).",
    ),
    Case("content.few", "no interval, from so few questions", "{answers}: too few questions to tell a difference."),
    Case(
        "content.silent",
        "one of the two answers nothing",
        "{answers}: nothing to compare, as {silent} answers nothing.",
    ),
    Case("content.failed", "more than 1 % failed", f"What the tools' words bring is not tested: {FAILED}."),
    Case(
        "content.units",
        "the metric counts other units for each",
        "{answers}: not tested, as {metric} does not count the same units for both.",
    ),
    Case(
        "content.apart",
        "the blank run shares no question",
        "{hybrid} and {other} are not compared: they share no question.",
    ),
    Case(
        "content.absent",
        "no blank control",
        "Whether it comes from what the tools say is open, as no blank control was run: {command}",
    ),
    Case(
        "content.several",
        "several solvers with tools, or several models",
        "With tools next to blank tools: {parts}.",
    ),
    # Tasks, by the rule of the tables.
    Case(
        "tasks.lost",
        "a task's interval is below 0",
        "It is behind its model alone on {count} of {tasks} {by}: {parts}; {held} after adjustment (Holm).",
    ),
    Case("tasks.none", "no task's interval is below 0", "No loss is shown on any of {tasks} {by}."),
    Case(
        "tasks.several",
        "several solvers with tools, or several models",
        "{by} where the interval of the difference to the model alone is below 0: {parts}.",
    ),
    # No solver that calls tools.
    Case(
        "solvers.one",
        "one solver, no model with tools",
        "{best} has {metric} {value} over {n} questions ({interval}).",
    ),
    Case(
        "solvers.best",
        "several solvers, no model with tools",
        "Of {count} solvers, none of them a model with tools, {best} has the highest {metric}, {value} over {n} "
        "questions ({interval}).",
    ),
    Case(
        "solvers.ties",
        "several share the highest value",
        "Of {count} solvers, none of them a model with tools, {best} share the highest {metric}, {value} over {n} "
        "questions ({interval}).",
    ),
    Case("solvers.silent", "none has a readable answer", "No solver gives a readable answer."),
    Case(
        "ahead.some",
        "it is ahead of some after adjustment",
        "It is ahead of {parts}, adjusted (Holm) for {tests}.",
    ),
    Case(
        "ahead.none",
        "of none",
        "Adjusted (Holm) for {tests} no difference to the others is shown.",
    ),
    Case("ahead.untested", "no pair of it was tested", "It is compared with none of the others: {why}."),
    # Parts of the last sentence, joined by semicolons.
    Case("limits.failed", "questions failed", "{failed} of {n} answers failed and are left out"),
    Case("limits.open", "questions are not asked yet", "{open} are not asked yet"),
    Case("limits.none", "answers without a reading", "{none} of {n} answers are unreadable or none (counted {counts})"),
    Case(
        "limits.unreadable",
        "calls that could not be read in more than 5 % of the questions",
        "{solver} wrote calls that could not be read about {unread} of {n} questions",
    ),
    Case("limits.generated", "generated questions", "generated questions say nothing of real pictures"),
    Case("limits.recorded", "recorded model", "the model's answers are recordings"),
    Case(
        "limits.size",
        "four questions or more",
        "{n} questions show a difference of about {size} or more in four cases of five",
    ),
)

WORDS: Mapping[str, str] = {case.id: case.words for case in CASES}
