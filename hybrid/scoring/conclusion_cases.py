"""The cases of a conclusion: when each sentence is said, and its words; the site prints this table.

`gain`, `specialists` and `content` read one paired difference each, b minus a. It is said to be one only where its 95 %
interval excludes 0, by the rule of the output of what a question without a readable answer counts; where the other rule
has another verdict, the last sentence says so.
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


WAITING = "{left} questions are not asked yet: {command}"
FAILED = "{failed} of {n} questions failed, more than 1 % (--allow-failed concludes all the same)"

CASES: tuple[Case, ...] = (
    Case(
        "nothing.answered", "every question of every solver failed", "No question was answered: nothing is concluded."
    ),
    # The hybrid next to its model alone.
    Case("gain.more", "interval above 0", "{answers}: {size} ({interval}){counts}{called}."),
    Case("gain.less", "interval below 0", "{answers}: {size} ({interval}){counts}{called}."),
    Case(
        "gain.open",
        "interval holds or touches 0",
        "{answers}; {open}{counts}{called}.",
    ),
    Case(
        "gain.few", "no interval, from so few questions", "{answers}: too few questions to tell a difference{called}."
    ),
    Case(
        "gain.silent",
        "one of the two answers nothing",
        "{answers}: nothing to compare, as {silent} answers nothing{called}.",
    ),
    Case("gain.failed", "more than 1 % failed", f"Whether tools bring a gain is not tested: {FAILED}{{called}}."),
    Case(
        "gain.waiting",
        "a mean over tasks, or nothing in common, and questions are open",
        f"What tools bring is not told, as {WAITING}",
    ),
    Case(
        "gain.units",
        "the metric counts other units for each",
        "{answers}: not tested, as {metric} does not count the same units for both{called}.",
    ),
    Case(
        "gain.apart",
        "the pair shares no question, or --pairs leaves it out",
        "{hybrid} and {other} are not compared: they share no question, or --pairs leaves them out{called}.",
    ),
    Case(
        "gain.absent",
        "the model alone was not asked",
        "What tools bring is not known, as the model alone was not asked: add --solver mllm to the run{called}.",
    ),
    Case(
        "gain.several",
        "several solvers with tools, or several models",
        "Next to its model alone, over {n} questions and adjusted (Holm) for {tests}: {parts}{called}.",
    ),
    Case(
        "called.few",
        "part of the sentences above: a tool was called on less than 20 % of the questions",
        "{name} called a tool on {count} of {n} questions",
    ),
    # The hybrid next to the specialists.
    Case("specialists.more", "interval above 0", "{answers}: {whom} {size} ({interval}){rest}."),
    Case("specialists.less", "interval below 0", "{answers}: {whom} {size} ({interval}){rest}."),
    Case("specialists.open", "interval holds or touches 0", "{answers}; {open}{rest}."),
    Case(
        "specialists.few",
        "no interval, from so few questions",
        "{answers}: too few questions to tell a difference{rest}.",
    ),
    Case("specialists.silent", "they answer nothing", "The specialists alone give no answer to these questions."),
    Case("specialists.failed", "more than 1 % failed", f"The specialists alone are not compared: {FAILED}."),
    Case(
        "specialists.waiting",
        "a mean over tasks, or nothing in common, and questions are open",
        "The specialists alone are not compared: questions are not asked yet.",
    ),
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
        "Next to the specialists alone, on the questions that they answer: {parts}.",
    ),
    # What of it blank tools bring (presence) and what the tools say, each shown where it holds after adjustment (Holm).
    Case(
        "content.source",
        "a gain; what the tools say is shown and more than half of it, presence is not shown",
        "The gain comes from what the tools say ({content}); that blank tools bring any is not shown ({presence}).",
    ),
    Case(
        "content.shared",
        "a gain; both are shown and above 0",
        "Of the {gain}, {presence} come with blank tools already; what the tools say adds {content}.",
    ),
    Case("content.parts", "any other", "{presence}; {content}."),
    Case("content.alone", "the model alone was not asked", "Next to blank tools {content}."),
    Case("presence.more", "part of content.parts: shown, above 0", "Blank tools already bring {size} ({ends})"),
    Case("presence.less", "part of content.parts: shown, below 0", "Blank tools alone cost {size} ({ends})"),
    Case(
        "presence.open",
        "part of content.parts: not shown",
        "That blank tools alone make a difference is not shown ({size}, {ends})",
    ),
    Case("content.more", "part of content.parts: shown, above 0", "what the tools say adds {size} ({ends})"),
    Case("content.less", "part of content.parts: shown, below 0", "what the tools say costs {size} ({ends})"),
    Case(
        "content.open",
        "part of content.parts: not shown",
        "that what the tools say makes a difference is not shown ({size}, {ends})",
    ),
    Case(
        "content.few", "no interval, from so few questions", "With blank tools: too few questions to tell a difference."
    ),
    Case(
        "content.silent",
        "one of them answers nothing",
        "With blank tools there is nothing to compare, as {silent} answers nothing.",
    ),
    Case("content.failed", "more than 1 % failed", f"What the tools' words bring is not tested: {FAILED}."),
    Case(
        "content.waiting",
        "a mean over tasks, or nothing in common, and questions are open",
        "What the tools' words bring is not told: questions are not asked yet.",
    ),
    Case(
        "content.units",
        "the metric counts other units for each",
        "What the tools' words bring is not tested, as {metric} does not count the same units for both.",
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
    # The form of the tools: the run of a study that has that of the model's training, next to the one in ours.
    Case(
        "trained.more",
        "shown after adjustment (Holm), above 0",
        "In the form in which it was trained ({style}) the model does better with the same tools: {size} ({ends}).",
    ),
    Case(
        "trained.less",
        "shown after adjustment (Holm), below 0",
        "In the form in which it was trained ({style}) the model does worse with the same tools: {size} ({ends}).",
    ),
    Case(
        "trained.open",
        "not shown",
        "That the form of the tools in its training ({style}) makes a difference is not shown ({size}, {ends}).",
    ),
    Case(
        "trained.untested",
        "no interval",
        "What the form of the tools in which it was trained ({style}) comes to is not tested.",
    ),
    # Tasks: what holds after adjustment over all tasks of the table.
    Case("tasks.shown", "of a task a difference holds", "After adjustment (Holm) over {tasks} {by}: {parts}."),
    Case("tasks.none", "of none", "{rest}."),
    Case(
        "tasks.rest",
        "part of the two above: no loss holds",
        "no single {one} is shown to be worse ({sizes} questions each{largest})",
    ),
    Case(
        "tasks.several",
        "several solvers with tools, or several models",
        "{by} worse than alone after adjustment (Holm): {parts}.",
    ),
    # No solver that calls tools.
    Case(
        "solvers.one",
        "one solver, no model with tools",
        "{best} has {metric} {value}{again} over {n} questions ({interval}).",
    ),
    Case(
        "solvers.best",
        "several solvers, no model with tools",
        "Of {count} solvers, none of them a model with tools, {best} has the highest {metric}, {value}{again} "
        "over {n} questions ({interval}).",
    ),
    Case(
        "solvers.ties",
        "several share the highest value",
        "Of {count} solvers, none of them a model with tools, {best} share the highest {metric}, {value}{again} "
        "over {n} questions ({interval}).",
    ),
    Case(
        "solvers.waiting",
        "a mean over tasks, or nothing in common, and questions are open",
        f"How right each is, is not told, as {WAITING}",
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
    Case("limits.failed", "questions failed", "{failed} of {n} answers{asks} failed and are left out"),
    Case("limits.partial", "the data have fewer questions than the benchmark", "the data hold {parts}"),
    Case("limits.open", "questions are not asked yet", "{open} are not asked yet"),
    Case(
        "limits.none",
        "answers without a reading",
        "{none} of {n} answers{asks} are unreadable or none (counted {counts})",
    ),
    Case(
        "limits.unreadable",
        "calls that could not be read in more than 5 % of the questions",
        "{solver} wrote calls that could not be read about {unread} of {n} questions",
    ),
    Case("limits.faults", "5 % of a tool's calls or more ended in faults", "{solver} called {tools}"),
    Case(
        "limits.rule",
        "the other rule of what no answer counts has another verdict",
        "with no answer counted {counts}, {parts}",
    ),
    Case("limits.generated", "generated questions", "generated questions say nothing of real pictures"),
    Case("limits.recorded", "recorded model", "the model's answers are recordings"),
    Case(
        "limits.weight",
        "in a mean over tasks, a task with three times the weight of its questions",
        "{tasks} of {total} and {share} of the weight",
    ),
    Case(
        "limits.power",
        "a difference of two solvers that was tested",
        "80 % power from about {size} on ({questions}, the spread of this run)",
    ),
    Case("limits.powerless", "questions too few for any difference", "{questions} cannot show any difference"),
)

WORDS: Mapping[str, str] = {case.id: case.words for case in CASES}
